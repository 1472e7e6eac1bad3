"""What tests of the page in a Chromium share."""

import contextlib
import os
import shutil

import pytest
from view_rig import COLORS

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")

BROWSER = os.environ.get("MOTIONCUE_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

MARKS = [
    pytest.mark.timeout(300),  # a browser beside two busy lanes
    pytest.mark.rt,
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs a Chromium, in the path or named by MOTIONCUE_BROWSER"),
]


@contextlib.contextmanager
def launched():
    """Run a Chromium."""
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page in the browser, with what went wrong in it and what it asked for."""

    def __init__(self, browser, server, *, first="offline", **options):
        self.context = browser.new_context(**{"viewport": {"width": 1500, "height": 900}, **options})
        self.page = self.context.new_page()
        self.errors, self.asked = [], []
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(server.url)
        self.shows("#state", first)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def shows(self, where, text):
        """Wait until an element has a text."""
        playwright.expect(self.page.locator(where)).to_contain_text(text, timeout=120_000)

    def pixels(self, canvas):
        """Return the number of different colors of a canvas' pixels, or of the first one in an element."""
        return self.page.evaluate(f"id => ({COLORS})(id)", canvas)
