"""Draw ``docs/view.png``: the page in the middle of a real demo run.

Needs Playwright and a Chromium, in the path or named by MOTIONCUE_BROWSER.  Run it from the repository's root:
python docs/make_view_picture.py [FILE]
"""

import os
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from motioncue.view.access import Address
from motioncue.view.server import Server
from motioncue.virtual.installation import Installation

PROFILE = "ccd-hexapod"
KNOBS = ("cueing.algorithm=classical",)  # has gains to turn
DRIVE = "turns"
CHANGE_S = 4.0  # of the settings
MOMENT_S = 22.0  # the second corner is over
CORNER = 0.28, 0.62  # of the plots' width
WIDTH, HEIGHT = 1500, 930


def draw(file: Path) -> None:
    """Drive, and keep what the page shows."""
    browser = os.environ.get("MOTIONCUE_BROWSER") or shutil.which("chromium") or "chromium"
    with (
        Installation(PROFILE, DRIVE, overrides=KNOBS) as installation,
        Server(installation.engine, Address("127.0.0.1", 0)) as server,
        sync_playwright() as running,
    ):
        chromium = running.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark")
        page.goto(server.url)
        wait_until(page, installation, CHANGE_S)
        page.get_by_role("group", name="Axis").get_by_role("button", name="sway").click()
        for _ in range(4):
            page.get_by_role("button", name="stronger: less").click()
            page.wait_for_timeout(300)
        wait_until(page, installation, MOMENT_S)
        mark(page)
        page.screenshot(path=file)
        chromium.close()
    with Image.open(file) as drawn:
        small = drawn.convert("RGB").quantize(64)  # a third of the size, without a difference that is seen
    small.save(file, optimize=True)


def mark(page: Page) -> None:
    """Mark the corner, have it scored, and look at its worst moment beside the settings of the beginning."""
    box = page.locator(".plot .u-over").nth(1).bounding_box()
    assert box is not None
    left, right = (box["x"] + share * box["width"] for share in CORNER)
    page.mouse.move(left, box["y"] + 20)
    page.mouse.down()
    page.mouse.move((left + right) / 2, box["y"] + 20)
    page.mouse.move(right, box["y"] + 20)
    page.mouse.up()
    page.click("#score")
    page.get_by_role("button", name="Show B,").click(timeout=60_000)
    page.locator(".worst").last.click()
    page.mouse.move(10, 10)
    page.wait_for_timeout(1000)


def wait_until(page: Page, installation: Installation, moment_s: float) -> None:
    """Let the drive go on."""
    while (ticked := int(installation.engine.newest()["index"][0])) < moment_s * installation.profile.rate_hz:
        page.wait_for_timeout(max(10.0, 500.0 * (moment_s - ticked / installation.profile.rate_hz)))


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/view.png"))
