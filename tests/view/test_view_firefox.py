"""The page in Firefox: it draws, parks, tunes the real engine, and asks nobody else for anything."""

import os
import shutil

import pytest
from view_rig import COLORS, driven, profile, soon

from motioncue.engine.engine import Engine
from motioncue.view.access import Address
from motioncue.view.server import Server

pytest.importorskip("websockets.sync.client")

from view_firefox import Firefox

PROGRAM = os.environ.get("MOTIONCUE_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")

pytestmark = [
    pytest.mark.timeout(300),  # a browser beside two busy lanes
    pytest.mark.rt,
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="needs a Firefox, in the path or named by MOTIONCUE_FIREFOX"),
]

UNDO = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'z', ctrlKey: true, bubbles: true }))"
GAIN = '[data-key="cueing.surge.gain"]'


@pytest.fixture
def engine():
    with Engine(profile()) as engine:
        yield engine


@pytest.fixture
def server(engine, tmp_path):
    with Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server:
        yield server


def colors_of(firefox, canvas):
    """Return the number of different colors of a canvas' pixels, or of the first one in an element."""
    return firefox.evaluate(f"({COLORS})('{canvas}')")


def shown(firefox):
    """Return the gain that the page shows."""
    return firefox.evaluate(f"Number(document.querySelector('{GAIN} input.number').value)")


def operation(engine):
    return engine.newest()["operation"][0] & 7


def test_the_page_works_in_firefox(engine, server, tmp_path_factory):
    begin = engine.requested
    with Firefox(PROGRAM, tmp_path_factory.mktemp("firefox")) as firefox:
        firefox.size(1500, 900)
        firefox.goto(server.url)
        firefox.shows("#state", "offline")
        driven(engine, 2.0)
        soon(lambda: colors_of(firefox, "rig") > 20)
        assert colors_of(firefox, "plots") > 20
        firefox.shows("#timing", "packets out")
        firefox.shows("#events", "engaging")

        firefox.click("#park")
        soon(lambda: operation(engine) == 2)
        firefox.click("#engage")
        soon(lambda: operation(engine) == 0)
        firefox.shows("#who", "you steer")

        for _ in range(5):  # undone at once, which the page has to be told each time
            firefox.evaluate(f"document.querySelector('{GAIN} input[type=range]').focus() ?? 0")
            firefox.press("PageUp")
            soon(lambda: engine.requested.cueing.surge.gain > begin.cueing.surge.gain)
            firefox.evaluate(UNDO)
            soon(lambda: engine.requested == begin)
            soon(lambda: shown(firefox) == pytest.approx(begin.cueing.surge.gain))
        firefox.evaluate(f"document.querySelector('{GAIN} input.number').select() ?? 0")
        firefox.press("7", "7", "Enter")
        firefox.shows(f"{GAIN} .why", "allowed is a number from -10 to 10")
        firefox.click('[data-key="cueing.texture"] input')
        soon(lambda: engine.requested.cueing.texture is not None)
        firefox.evaluate(UNDO)
        soon(lambda: engine.requested == begin)

        engine.retune({"cueing.surge.gain": 0.9 * begin.cueing.surge.gain})
        soon(lambda: not firefox.evaluate("document.getElementById('try-blind').disabled"))
        firefox.evaluate("document.getElementById('try-blind').click() ?? 0")
        firefox.shows("#blind", "You feel this")
        firefox.click("#blind .pair button:nth-child(2)")
        firefox.shows("#blind", "You feel that")
        firefox.evaluate("[...document.querySelectorAll('#blind button')].at(-1).click() ?? 0")
        firefox.shows("#blind", "Nothing was preferred")
        firefox.evaluate("[...document.querySelectorAll('#blind button')].at(-1).click() ?? 0")

        assert firefox.evaluate("document.documentElement.scrollWidth") <= 1500
        assert firefox.errors == []
        assert {url.partition("?")[0].rpartition("/")[0] for url in firefox.asked} == {server.url.rstrip("/")}


def test_a_phone_in_the_dark_shows_it_without_scrolling_sideways(server, tmp_path_factory):
    with Firefox(PROGRAM, tmp_path_factory.mktemp("firefox"), dark=True, still=True) as firefox:
        firefox.size(390, 844)
        firefox.goto(server.url)
        firefox.shows("#state", "offline")
        assert firefox.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        assert firefox.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
        assert firefox.evaluate("document.documentElement.scrollWidth") <= 390
