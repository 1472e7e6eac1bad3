"""Draw ``docs/view.png``: the page in the middle of a real demo run.

Needs Playwright and a Chromium, in the path or named by MOTIONCUE_BROWSER.  Run it from the repository's root:
python docs/make_view_picture.py [FILE]
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from motioncue.view.access import Address
from motioncue.view.server import Server
from motioncue.virtual.installation import Installation

PROFILE = "ccd-dk-washout"
PLATFORM = ("platform.preset=hexapod-simona", "cueing.preset=auto")
DRIVE = "trouble"
CHANGE_S = 12.0  # the last minute before it is judged until the picture is drawn
MOMENT_S = 26.0  # a teleport was caught, the cue is whole again, the second corner begins
WIDTH, HEIGHT = 1500, 930


def draw(file: Path) -> None:
    """Drive, and keep what the page shows."""
    browser = os.environ.get("MOTIONCUE_BROWSER") or shutil.which("chromium") or "chromium"
    with (
        Installation(PROFILE, DRIVE, overrides=PLATFORM) as installation,
        Server(installation.engine, Address("127.0.0.1", 0)) as server,
        sync_playwright() as running,
    ):
        chromium = running.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark")
        page.goto(server.url)
        wait_until(page, installation, CHANGE_S)
        gain = page.locator('[data-key="cueing.surge.gain"] input.number')
        gain.fill("0.3")
        gain.press("Enter")
        gain.blur()
        wait_until(page, installation, MOMENT_S)
        page.screenshot(path=file)
        chromium.close()


def wait_until(page: Page, installation: Installation, moment_s: float) -> None:
    """Let the drive go on."""
    while (ticked := int(installation.engine.newest()["index"][0])) < moment_s * installation.profile.rate_hz:
        page.wait_for_timeout(max(10.0, 500.0 * (moment_s - ticked / installation.profile.rate_hz)))


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/view.png"))
