"""Draw ``docs/view.png``: the page in the middle of a real demo run.

Needs Playwright and a Chromium, in the path or named by MOTIONCUE_BROWSER.  Run it from the repository's root:
python docs/make_view_picture.py [FILE]
"""

import os
import shutil
import sys
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from motioncue.view.access import Address
from motioncue.view.server import Server
from motioncue.virtual.installation import Installation

PROFILE = "ccd-hexapod"
KNOBS = "cueing.algorithm=classical", "supervisor.hold_s=3"  # has gains to turn; a busy machine parks nothing
DRIVE = "turns"
CHANGE_S = 4.0  # of the settings
MOMENT_S = 22.0  # the second corner is over
CORNER = 0.2, 0.55  # of the plots' width
WIDTH, HEIGHT = 1500, 930


def draw(file: Path) -> None:
    """Drive, and keep what the page shows."""
    browser = os.environ.get("MOTIONCUE_BROWSER") or shutil.which("chromium") or "chromium"
    with (
        Installation(PROFILE, DRIVE, overrides=KNOBS) as installation,
        Server(installation.engine, Address("127.0.0.1", 0)) as server,
        sync_playwright() as running,
    ):
        wait_until(installation, CHANGE_S)
        installation.engine.retune({"cueing.sway.gain": 0.45, "cueing.tilt.sway_gain": 0.4})
        wait_until(installation, MOMENT_S)  # without a browser, which would take the car's time on a small machine
        chromium = running.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark")
        page.goto(server.url)
        page.get_by_role("group", name="Axis").get_by_role("button", name="sway").click()
        mark(page)
        page.screenshot(path=file)
        chromium.close()
    with Image.open(file) as drawn:
        small = drawn.convert("RGB").quantize(160)  # less than half of the size, without a difference that is seen
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


def wait_until(installation: Installation, moment_s: float) -> None:
    """Let the drive go on."""
    while (left_s := moment_s - int(installation.engine.newest()["index"][0]) / installation.profile.rate_hz) > 0.0:
        time.sleep(max(0.01, 0.5 * left_s))


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/view.png"))
