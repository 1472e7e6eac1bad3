"""The page in a real browser: it draws, parks, tunes the real engine, comes back, and asks nobody else for anything."""

import time

import numpy as np
import pytest
from controller_rig import TOLD, fields_of
from view_chromium import MARKS, Tab, launched, playwright
from view_rig import driven, profile, soon

from motioncue.engine.engine import Engine
from motioncue.view.access import Address
from motioncue.view.server import Server

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def engine():
    with Engine(profile()) as engine:
        yield engine


@pytest.fixture
def server(engine, tmp_path):
    with Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server:
        yield server


def test_it_draws_and_asks_only_this_server(browser, server, engine):
    with Tab(browser, server) as tab:
        driven(engine, 2.0)
        soon(lambda: tab.pixels("rig") > 20)
        assert tab.pixels("plots") > 20
        assert len(tab.page.query_selector_all(".bar")) == 6
        tab.shows("#timing", "packets out")
        tab.shows("#timing", "packets leave")
        assert " · " not in tab.page.inner_text("#verdict")
        tab.shows("#events", "engaging")
        assert tab.errors == []
        assert {url.partition("?")[0].rpartition("/")[0] for url in tab.asked} == {server.url.rstrip("/")}


def test_buttons_and_a_key_operate_the_engine(browser, server, engine):
    with Tab(browser, server) as tab:
        for act, operation in (
            (lambda: tab.page.click("#park"), 2),
            (lambda: tab.page.click("#engage"), 0),
            (lambda: tab.page.click("#hold"), 1),
            (lambda: tab.page.click("#engage"), 0),
            (lambda: tab.page.keyboard.press("p"), 2),
        ):
            act()
            soon(lambda operation=operation: engine.newest()["operation"][0] & 7 == operation)
        tab.shows("#who", "you steer")


def test_a_slider_changes_the_engine_and_a_key_undoes_it(browser, server, engine):
    begin = engine.requested.cueing.surge.gain
    with Tab(browser, server) as tab:
        box = tab.page.locator('[data-key="cueing.surge.gain"]')
        box.locator("input[type=range]").focus()
        tab.page.keyboard.press("PageUp")
        soon(lambda: engine.requested.cueing.surge.gain > begin)
        tab.shows("#differs", "1 changed")
        box.locator("button.reset").focus()
        tab.page.keyboard.press("Control+z")
        soon(lambda: engine.requested.cueing.surge.gain == begin)
        playwright.expect(box.locator("input.number")).to_have_value(f"{begin:.4g}", timeout=120_000)
        tab.page.click("#swap")
        playwright.expect(tab.page.locator("#B.on")).to_be_visible(timeout=120_000)
        number = box.locator("input.number")
        number.fill("77")
        number.press("Enter")
        playwright.expect(box.locator(".why")).to_contain_text("allowed is a number from -10 to 10", timeout=120_000)
        assert engine.requested.cueing.surge.gain == begin
        number.fill("0,125")
        number.press("Enter")
        soon(lambda: engine.requested.cueing.surge.gain == 0.125)
        playwright.expect(box.locator(".why")).to_be_empty()
        assert tab.errors == []


def test_choices_boxes_and_another_algorithm(browser, server, engine):
    begin = engine.requested
    with Tab(browser, server) as tab:
        turned_by = tab.page.locator('[data-key="cueing.turned_by"]')
        turned_by.get_by_role("button", name="platform", exact=True).click()
        soon(lambda: engine.requested.cueing.turned_by == "platform")
        turned_by.get_by_role("button", name="car", exact=True).focus()
        tab.page.keyboard.press("p")  # parks, and chooses nothing
        soon(lambda: engine.newest()["operation"][0] & 7 == 2)
        tab.page.click("#undo")
        soon(lambda: engine.requested == begin)
        tab.page.click('[data-key="cueing.texture"] input')
        soon(lambda: engine.requested.cueing.texture is not None)
        tab.shows('[data-key="cueing.texture.heave_gain"] label', "heave gain")  # the table's own settings appear
        algorithm = tab.page.locator('[data-key="cueing.algorithm"]')
        algorithm.get_by_role("button", name="direct").click()
        tab.shows('[data-key="cueing.algorithm"] .why', "no pose for [platform] to take")
        playwright.expect(algorithm.locator('[aria-pressed="true"]')).to_have_text("classical", timeout=120_000)
        algorithm.get_by_role("button", name="adaptive").click()
        tab.shows("#title", "adaptive")
        playwright.expect(tab.page.locator('[data-key="cueing.texture"]')).to_have_count(0)
        tab.page.click("#undo")
        tab.shows("#title", "classical")
        tab.page.locator('summary:has-text("fixed while it runs")').click()
        tab.shows('[data-key="platform.height_m"]', "the platform's geometry")
        assert tab.page.query_selector_all('[data-key="platform.height_m"] input') == []
        assert tab.errors == []


def test_the_last_minute_is_judged_after_a_change(browser, server, engine):
    with Tab(browser, server) as tab:
        tab.page.click("#judge")
        tab.shows("#minute", "less than 3 s driven yet")
        driven(engine, 6.0)
        tab.shows("#minute", "felt wrong")
        tab.page.locator('[data-key="cueing.surge.gain"] input.number').fill("0.4")
        tab.page.keyboard.press("Enter")
        tab.shows("#minute", "B, as at the beginning")
        tab.shows("#minute", "%")
        assert tab.errors == []


def test_a_field_for_text_takes_letters_and_only_p_commands(browser, server, engine):
    with Tab(browser, server) as tab:
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("heave ")
        tab.page.keyboard.press("Shift+P")  # the letter alone
        playwright.expect(tab.page.locator('[data-key="cueing.heave.gain"]')).to_be_hidden()
        tab.page.fill("#filter", "heave gain")
        playwright.expect(tab.page.locator('[data-key="cueing.heave.gain"]')).to_be_visible()
        playwright.expect(tab.page.locator('[data-key="cueing.surge.gain"]')).to_be_hidden()
        assert engine.newest()["operation"][0] & 7 == 0
        tab.page.keyboard.press("p")
        soon(lambda: engine.newest()["operation"][0] & 7 == 2)
        playwright.expect(tab.page.locator("#filter")).to_have_value("heave gainp")


def test_two_pages_see_who_steers(browser, server):
    with Tab(browser, server) as first, Tab(browser, server) as second:
        first.page.click("#take")
        first.shows("#who", "you steer · 2 pages")
        second.shows("#who", "page 1 (127.0.0.1) steers · 2 pages")
        second.page.click("#hold")
        second.shows("#notice", "page 1 (127.0.0.1) steers; take over first")
        first.page.reload()
        second.shows("#who", "nobody steers")


def test_a_lost_connection_is_said_and_comes_back(browser, engine, tmp_path):
    with Server(engine, Address("127.0.0.1", 0)) as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        tab = Tab(browser, server)
    with tab:
        tab.shows("#state", "connection lost")
        with Server(engine, Address("127.0.0.1", port)) as server:
            tab.shows("#state", "offline")
            tab.page.keyboard.press("p")
            soon(lambda: engine.newest()["operation"][0] & 7 == 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_shows_it_without_scrolling_sideways(browser, server, scheme, width):
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme, "reduced_motion": "reduce"}
    options |= {"has_touch": True, "is_mobile": True}
    context = browser.new_context(**options)
    page = context.new_page()
    page.goto(server.url)
    playwright.expect(page.locator("#state")).to_contain_text("offline", timeout=120_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("engage", "hold", "park"):
        place = page.locator(f"#{name}").bounding_box()
        assert place["height"] >= 40  # a finger's width
        assert place["x"] + place["width"] <= width
    for wide in page.locator("section:visible").all():
        place = wide.bounding_box()
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= width
    context.close()


def test_a_thumb_leaves_a_number_out_and_gives_it_its_value_again(browser, server, engine):
    begin = engine.requested
    options = {"viewport": {"width": 360, "height": 800}, "has_touch": True, "is_mobile": True}
    with Tab(browser, server, **options) as tab:
        box = tab.page.locator('[data-key="cueing.tilt.acceleration_limit_deg_s2"]')
        none = box.locator("button.none")
        tab.page.tap("#unlock")
        none.tap()
        soon(lambda: engine.requested.cueing.tilt.acceleration_limit_deg_s2 is None)
        playwright.expect(none).to_have_attribute("aria-pressed", "true", timeout=120_000)
        playwright.expect(box.locator("input.number")).to_have_value("")
        place = none.bounding_box()
        assert place["height"] >= 38
        assert place["x"] + place["width"] <= 360
        none.tap()
        soon(lambda: engine.requested == begin)
        assert tab.errors == []


def test_wheels_are_shown_where_the_source_says_something_of_them(browser, server, engine, tmp_path):
    with Tab(browser, server) as tab:
        driven(engine, 0.5)
        tab.shows("#timing", "packets out")
        assert tab.page.locator("#wheels").is_hidden()
        assert tab.errors == []
    packet = f"source.packet={{size={TOLD.itemsize}, fields=[{fields_of(TOLD)}]}}"
    with (
        Engine(profile("source.system='custom'", packet)) as told,
        Server(told, Address("127.0.0.1", 0), folder=tmp_path) as server,
        Tab(browser, server) as tab,
    ):
        row = np.full(1, np.nan, TOLD)
        for name in TOLD.names[:12]:
            row[name] = 0.0
        row["speed"], row["suspension_front_left"], row["suspension_rear_right"] = 5.0, 0.0125, -0.03
        row["slip_front_right"] = 0.5
        for _ in range(100):
            row["frame_time"] += 0.01
            told.feed(row.tobytes())
            time.sleep(0.01)
        tab.shows("#wheels", "travel, mm")
        rows = [
            [cell.inner_text() for cell in line.query_selector_all("th, td")]
            for line in tab.page.query_selector_all("#wheels tr")
        ]
        assert rows == [
            ["", "travel, mm", "slip"],
            ["front left", "12.5", ""],
            ["front right", "", "0.5"],
            ["rear left", "", ""],
            ["rear right", "-30", ""],
        ]
        assert tab.errors == []
