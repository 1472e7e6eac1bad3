"""What the page weighs, and whether its colors and targets can be seen and hit."""

import gzip
import re

import pytest
from view_rig import profile, soon

from motioncue.engine.engine import Engine
from motioncue.view.access import Address
from motioncue.view.server import FILES, Server

STYLE = FILES["/page.css"][0].read_text(encoding="utf-8")
INKS = ("ink", "quiet", "car", "felt", "cue", "limit", "good", "warn", "bad", "accent")
"""Colors that text and lines have, on page and canvas."""


def test_the_page_weighs_less_than_200_kb_compressed():
    assert sum(len(gzip.compress(file.read_bytes())) for file, _ in FILES.values()) < 200_000


def themes():
    """Return the page's colors by name, light and dark."""
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6})", STYLE[part:])[:14]) for part in (0, STYLE.index("dark)")))
    return {"light": light, "dark": dark}


def luminance(color):
    """Return the relative luminance of WCAG 2."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return the contrast ratio of WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_measure_of_contrast_is_that_of_the_standard():
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the standard's well-known near miss


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_written_can_be_read(theme):
    colors = themes()[theme]
    assert len(colors) == 14
    for ground in ("card", "back", "soft"):
        for ink in INKS:
            assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
    assert contrast(colors["card"], colors["accent"]) >= 4.5  # what is pressed
    assert contrast("#ffffff", "#b42020") >= 4.5  # what is loud


SMALL = """() => [...document.querySelectorAll('button, summary, input')]
    .filter((each) => each.checkVisibility() && each.offsetParent)
    .map((each) => [each.id || each.className || each.textContent, each.getBoundingClientRect()])
    .filter(([, box]) => box.width < 44 || box.height < 44).map(([name]) => name)"""


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", [(390, 844), (844, 390), (820, 1180)], ids=["portrait", "landscape", "tablet"])
def test_a_finger_hits_what_it_is_meant_for(size, tmp_path):
    chromium = pytest.importorskip("view_chromium")
    if chromium.BROWSER is None:
        pytest.skip("needs a Chromium, in the path or named by MOTIONCUE_BROWSER")
    screen = {"viewport": {"width": size[0], "height": size[1]}, "has_touch": True, "is_mobile": True}
    with (
        chromium.launched() as browser,
        Engine(profile()) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
        chromium.Tab(browser, server, **screen) as tab,
    ):
        soon(lambda: tab.page.locator(".knob").count() > 0)
        tab.page.click("#unlock")
        assert tab.page.evaluate(SMALL) == []
        plots, tools = (tab.page.locator(f"#{name}").bounding_box() for name in ("strip", "tools"))
        last = tab.page.locator(".plot").last.bounding_box()
        assert last["y"] + last["height"] <= plots["y"] + 0.5 <= tools["y"] + 0.5  # nothing lies on the plots
        for name in ("error", "actuators"):
            tab.page.get_by_role("button", name=name, exact=True).click()
        last, strip = tab.page.locator(".plot").last.bounding_box(), tab.page.locator("#strip").bounding_box()
        assert last["y"] + last["height"] <= strip["y"] + 0.5
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert tab.errors == []
