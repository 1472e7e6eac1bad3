"""What was driven, in a Chromium: scrubbed, marked, scored, compared; a recording ends, a restart begins anew."""

import pytest
from kept_drives import path_of
from view_chromium import MARKS, Tab, launched, playwright
from view_rig import driven, profile, soon

from motioncue.engine.engine import Engine
from motioncue.recording.recording import read
from motioncue.view.access import Address
from motioncue.view.playback import Played
from motioncue.view.server import Server

pytestmark = MARKS

MOMENT = "Number(document.getElementById('moment').value)"


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


def scored(tab):
    """Mark some seconds of what was driven, and have them scored."""
    for _ in range(6):
        tab.page.locator("#moment").press("PageDown")
    tab.shows("#tools", "s ago")
    tab.page.click("#mark-begin")
    for _ in range(3):
        tab.page.locator("#moment").press("PageUp")
    tab.page.click("#mark-end")
    tab.shows("#tools", "marked")
    tab.page.click("#score")
    tab.shows("#minute", "travel used")


def test_a_corner_is_marked_scored_compared_and_taken(browser, tmp_path):
    with (
        Engine(profile()) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
        Tab(browser, server) as tab,
    ):
        begin = engine.requested
        driven(engine, 7.0)
        tab.page.get_by_role("button", name="stronger: less").click()
        soon(lambda: engine.requested != begin)
        scored(tab)
        tab.shows("#minute", "worst at")
        tab.page.get_by_role("button", name="Show B").click()
        playwright.expect(tab.page.get_by_role("button", name="Show B")).to_have_attribute("aria-pressed", "true")
        tab.page.click("#loop")
        tab.page.get_by_role("button", name="Take B").click()
        soon(lambda: engine.requested == begin)
        tab.page.click("#live")
        playwright.expect(tab.page.locator("#live")).to_have_attribute("aria-pressed", "true")
        assert tab.errors == []


def test_a_phone_that_is_locked_takes_no_settings(browser, tmp_path):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with (
        Engine(profile()) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
        Tab(browser, server, **phone) as tab,
    ):
        engine.retune({"cueing.surge.gain": 0.6})
        driven(engine, 7.0)
        scored(tab)
        tab.page.get_by_role("button", name="Take B").click()
        tab.shows("#notice", "locked")
        assert engine.requested.cueing.surge.gain == 0.6
        tab.page.click("#unlock")
        tab.page.get_by_role("button", name="Take B").click()
        soon(lambda: engine.requested.cueing.surge.gain != 0.6)


def test_what_was_driven_is_there_after_a_reload(browser, tmp_path):
    with Engine(profile()) as engine, Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server:
        driven(engine, 3.0)
        with Tab(browser, server) as tab:
            tab.page.locator("#moment").focus()
            tab.page.keyboard.press("Home")
            soon(lambda: float(tab.page.locator("#moment").get_attribute("aria-valuetext").split()[0]) < 0.5)


def test_a_recording_has_its_end_and_begins_again_when_played(browser):
    played = Played(read(path_of("city-car-driving")))
    with Server(played, Address("127.0.0.1", 0), plays=True) as server, Tab(browser, server, first="") as tab:
        tab.shows("#engage", "Play")
        soon(lambda: " of " in tab.page.inner_text("#tools") and " of 0.0" not in tab.page.inner_text("#tools"))
        tab.page.locator("#moment").focus()
        tab.page.keyboard.press("End")
        tab.shows("#tools", "the end")
        tab.shows("#state", "at the end")
        tab.page.click("#engage")
        soon(lambda: tab.page.evaluate(MOMENT) < 1000)
        tab.page.click("#park")
        soon(lambda: tab.page.evaluate(MOMENT) == 0)
        tab.shows("#state", "paused")
        assert tab.errors == []


def test_a_restart_is_another_run_on_the_open_page(browser, tmp_path):
    with Engine(profile()) as engine, Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        tab = Tab(browser, server)
        driven(engine, 2.0)
        tab.page.get_by_role("button", name="stronger: less").click()
        tab.shows("#differs", "changed since the beginning")
        tab.shows("#events", "engaging")
        assert tab.page.evaluate("document.title.startsWith(document.getElementById('state').textContent)")
    try:
        tab.shows("#state", "connection lost")
        assert tab.page.evaluate("document.body.dataset.stale") == "yes"
        assert tab.page.title().startswith("connection lost")
        other = profile("platform.preset=seat-2", "cueing.surge.gain=0.3")
        with Engine(other) as engine, Server(engine, Address("127.0.0.1", port), folder=tmp_path):
            tab.shows("#caption", "posts")
            tab.shows("#differs", "as at the beginning")
            playwright.expect(tab.page.locator(".bar")).to_have_count(2)
            playwright.expect(tab.page.locator("#events li")).to_have_count(0)
            number = tab.page.locator('[data-key="cueing.surge.gain"] input.number')
            playwright.expect(number).to_have_value("0.3")
            playwright.expect(tab.page.locator('.parameter[data-changed="yes"]')).to_have_count(0)
            assert tab.page.evaluate("document.body.dataset.stale") == ""
    finally:
        tab.context.close()
