"""Hands that slip, on the page in a real browser with touch: what they must not do, and that they can always park."""

import pytest
from view_chromium import MARKS, Tab, launched, playwright
from view_rig import profile, soon

from motioncue.engine.engine import Engine
from motioncue.view.access import Address
from motioncue.view.server import Server

pytestmark = MARKS

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
GAIN = '[data-key="cueing.surge.gain"]'
SLIDER, BOX = f"{GAIN} input[type=range]", f"{GAIN} input:not([type=range])"
BEGIN = 0.5


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def engine():
    with Engine(profile()) as engine:
        engine.retune([f"cueing.surge.gain={BEGIN}", "cueing.surge.damping=0.75"])
        yield engine


@pytest.fixture
def server(engine, tmp_path):
    with Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server:
        yield server


def gain(engine):
    return engine.requested.cueing.surge.gain


def parks(engine):
    return engine.newest()["operation"][0] & 7 == 2


def cdp(tab):
    return tab.page.context.new_cdp_session(tab.page)


def settled(tab):
    """Wait until the server has answered what the page asked for before: it judges, which changes nothing."""
    tab.page.click("#judge")
    tab.shows("#minute", "less than 3 s driven yet")


def place(tab, where):
    """Return an element's left and right edge, and the middle of its height, in the middle of the screen."""
    tab.page.evaluate("where => document.querySelector(where).scrollIntoView({ block: 'center' })", where)
    box = tab.page.locator(where).bounding_box()
    return box["x"], box["x"] + box["width"], box["y"] + box["height"] / 2


def at_thumb(tab):
    """Return where the thumb of the gain's slider is."""
    left, right, y = place(tab, SLIDER)
    share = tab.page.evaluate("where => { const s = document.querySelector(where); return s.value / s.max; }", SLIDER)
    return left + 8 + share * (right - left - 16), y


def touch(tab, *points):
    """Put a finger down at the first point, take it along the others, and lift it."""
    protocol = cdp(tab)
    for kind, at in [("touchStart", points[0]), *(("touchMove", each) for each in points[1:]), ("touchEnd", None)]:
        touching = [] if at is None else [{"x": at[0], "y": at[1]}]
        protocol.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touching})


def phone(browser, server, *, unlocked=True):
    tab = Tab(browser, server, **PHONE)
    tab.page.wait_for_selector(GAIN, state="attached")
    if unlocked:
        tab.page.tap("#unlock")
    return tab


# ---- a thumb that scrolls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [-200, 200])
@pytest.mark.parametrize("lock", ["locked", "unlocked"])
def test_a_swipe_over_sliders_scrolls_and_changes_nothing(browser, server, engine, lock, way):
    begin = engine.requested
    with Tab(browser, server, **PHONE) as tab:
        tab.page.wait_for_selector(GAIN, state="attached")
        if lock == "unlocked" and tab.page.locator("#unlock").count():
            tab.page.tap("#unlock")
        x, _ = at_thumb(tab)
        left, right, _ = place(tab, SLIDER)
        for begins in (x, left + 4, right - 4, (left + right) / 2):
            _, _, y = place(tab, SLIDER)
            before = tab.page.evaluate("scrollY")
            touch(tab, *((begins, y + way * step / 20) for step in range(21)))
            assert abs(tab.page.evaluate("scrollY") - before) > 100
        settled(tab)
        assert engine.requested == begin
        assert engine.stats()["retunes"] == 1  # the fixture's


def test_a_tap_beside_the_thumb_changes_nothing(browser, server, engine):
    begin = engine.requested
    with phone(browser, server) as tab:
        _, right, y = place(tab, SLIDER)
        tab.page.touchscreen.tap(right - 4, y)
        settled(tab)
        assert engine.requested == begin


def test_the_thumb_is_taken_and_moved_sideways(browser, server, engine):
    with phone(browser, server) as tab:
        x, y = at_thumb(tab)
        touch(tab, (x, y), *((x + step, y) for step in range(5, 45, 5)))
        soon(lambda: gain(engine) > 1.1 * BEGIN)
        tab.shows("#differs", "1 changed")


# ---- the lock --------------------------------------------------------------------------------------------------------


def locked(tab):
    playwright.expect(tab.page.locator(BOX)).to_be_disabled(timeout=120_000)
    for button in ("#engage", "#hold", "#take", "#swap"):
        assert tab.page.locator(button).is_disabled()
    assert tab.page.locator("#park").is_enabled()


def test_the_phone_opens_for_looking_and_locks_again(browser, server):
    with Tab(browser, server, **PHONE) as tab:
        tab.page.clock.install()
        tab.page.reload()
        tab.page.wait_for_selector(GAIN, state="attached")
        locked(tab)
        tab.page.tap("#unlock")
        assert tab.page.locator(BOX).is_enabled()
        tab.page.clock.fast_forward(40_000)
        tab.page.touchscreen.tap(200, 400)
        tab.page.clock.fast_forward(40_000)  # since a touch, not since it was unlocked
        assert tab.page.locator(BOX).is_enabled()
        tab.page.clock.fast_forward(61_000)
        locked(tab)
        tab.page.tap("#unlock")
        tab.page.evaluate(
            "Object.defineProperty(document, 'hidden', { get: () => true }),"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        locked(tab)
        tab.page.tap("#unlock")
        tab.page.reload()
        tab.page.wait_for_selector(GAIN, state="attached")
        locked(tab)


def test_what_protects_is_apart_and_locked_on_every_screen(browser, server):
    with Tab(browser, server) as tab:
        tab.page.clock.install()
        tab.page.reload()
        tab.page.wait_for_selector(GAIN, state="attached")
        assert tab.page.locator(BOX).is_enabled()  # taste, with a mouse
        safety = ("limits.surge.value_m_s2", "watch.frozen_s", "supervisor.fade_s", "platform.leg.max_m")
        fields = [tab.page.locator(f'.safety [data-key="{key}"] input:not([type=range])') for key in safety]
        for field in fields:
            assert field.is_disabled()
        assert tab.page.locator('.safety [data-key^="cueing."]').count() == 0
        tab.page.click(".safety legend button")
        for field in fields:
            assert field.is_enabled()
        tab.page.clock.fast_forward(61_000)
        for field in fields:
            assert field.is_disabled()


# ---- numbers ---------------------------------------------------------------------------------------------------------


def test_the_wheel_changes_no_number(browser, server, engine):
    begin = engine.requested
    with Tab(browser, server) as tab:
        tab.page.click(BOX)
        shown = tab.page.locator(BOX).input_value()
        for way in (100, -100, 100):
            tab.page.mouse.wheel(0, way)
            tab.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert tab.page.locator(BOX).input_value() == shown
        settled(tab)
        assert engine.requested == begin


@pytest.mark.parametrize(("value", "key", "expected"), [
    (0.5, "ArrowDown", 0.49), (0.5, "ArrowUp", 0.51), (0.02, "ArrowDown", 0.019), (-0.5, "ArrowUp", -0.49),
    (4.0, "ArrowUp", 4.1),
])  # fmt: skip
def test_an_arrow_key_steps_by_the_values_size(browser, server, engine, value, key, expected):
    engine.retune({"cueing.surge.gain": value})
    with Tab(browser, server) as tab:
        tab.page.focus(BOX)
        tab.page.keyboard.press(key)
        tab.page.keyboard.press("Enter")
        soon(lambda: gain(engine) != value)
        assert gain(engine) == pytest.approx(expected)


@pytest.mark.parametrize(("begin", "key", "end"), [(0.5, "Home", 0.0), (-0.5, "End", 0.0)])
def test_a_gains_slider_stays_on_its_side_of_zero(browser, server, engine, begin, key, end):
    engine.retune({"cueing.surge.gain": begin})
    with Tab(browser, server) as tab:
        tab.page.focus(SLIDER)
        tab.page.keyboard.press(key)
        soon(lambda: gain(engine) != begin)
        assert gain(engine) == end


@pytest.mark.parametrize(("key", "value", "word"), [
    ("cueing.surge.gain", "-0.4", "the other sign"), ("cueing.surge.gain", "1.2", "more than twice"),
    ("cueing.surge.damping", "0.2", "below 0.3"),
])  # fmt: skip
def test_what_could_be_a_slip_is_asked_about_first(browser, server, engine, key, value, word):
    begin = engine.requested
    with Tab(browser, server) as tab:
        for answer in ("#leave", "Escape", "beside", "#mean"):
            box = tab.page.locator(f'[data-key="{key}"] input:not([type=range])')
            box.fill(value)
            box.press("Enter")
            tab.shows("#ask", word)
            playwright.expect(tab.page.locator("#leave")).to_be_focused()
            assert engine.requested == begin
            if answer.startswith("#"):
                tab.page.click(answer)
            elif answer == "beside":
                tab.page.mouse.click(5, 500)
            else:
                tab.page.keyboard.press(answer)
            playwright.expect(tab.page.locator("#ask")).to_be_hidden()
        soon(lambda: engine.requested != begin)
        assert tab.errors == []


def test_undo_and_the_other_slot_ask_as_the_change_by_hand(browser, server, engine):
    with Tab(browser, server) as tab:
        tab.page.click("#swap")  # B is a copy of A
        playwright.expect(tab.page.locator("#B.on")).to_be_visible()
        box = tab.page.locator(BOX)
        box.fill("-0.4")
        box.press("Enter")
        tab.shows("#ask", "the other sign")
        tab.page.click("#mean")
        soon(lambda: gain(engine) == -0.4)
        for button in ("#undo", "#swap"):
            tab.page.click(button)
            tab.shows("#ask", "−0.4 → 0.5, the other sign")
            assert gain(engine) == -0.4
            tab.page.click("#leave")
            playwright.expect(tab.page.locator("#ask")).to_be_hidden()
            assert gain(engine) == -0.4
        playwright.expect(tab.page.locator("#B.on")).to_be_visible()
        tab.page.click("#undo")
        tab.shows("#ask", "the other sign")
        tab.page.click("#mean")
        soon(lambda: gain(engine) == BEGIN)
        assert tab.errors == []


def test_a_thumb_taken_too_far_asks_once_it_is_let_go(browser, server, engine):
    with phone(browser, server) as tab:
        x, y = at_thumb(tab)
        _, right, _ = place(tab, SLIDER)
        way = [(x + share * (right - x), y) for share in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)]
        protocol = cdp(tab)
        for kind, at in [("touchStart", (x, y)), *(("touchMove", each) for each in way)]:
            protocol.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": at[0], "y": at[1]}]})
        soon(lambda: gain(engine) > BEGIN)
        assert tab.page.locator("#ask").is_hidden()
        protocol.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        tab.shows("#ask", "more than twice")
        assert gain(engine) <= 2 * BEGIN
        tab.page.click("#mean")
        soon(lambda: gain(engine) > 2 * BEGIN)


def test_bounds_that_are_off_are_asked_about_and_said_for_as_long_as_they_are(browser, server, engine):
    with Tab(browser, server) as tab:
        playwright.expect(tab.page.locator("#off")).to_be_hidden()
        tab.page.click(".safety legend button")
        tab.page.locator('.safety summary:text-is("limits")').click()
        tab.page.click('[data-key="limits"] input')
        tab.shows("#ask", 'limits = "none"')
        assert engine.requested.limits != "none"
        playwright.expect(tab.page.locator('[data-key="limits"] input')).to_be_checked()
        tab.page.click("#mean")
        tab.shows("#off", 'limits = "none"')
        with Tab(browser, server, **PHONE) as other:
            other.shows("#off", 'limits = "none"')
            assert other.page.evaluate("document.documentElement.scrollWidth") <= 390
        tab.page.click('[data-key="limits"] input')
        playwright.expect(tab.page.locator("#off")).to_be_hidden(timeout=120_000)


# ---- Park ------------------------------------------------------------------------------------------------------------

FOCUSES = {
    "nothing": "document.activeElement.blur()",
    "number": f"document.querySelector('{BOX}').focus()",
    "slider": f"document.querySelector('{SLIDER}').focus()",
    "search": "document.getElementById('filter').focus()",
    "file": "document.getElementById('file').focus()",
    "box": "document.querySelector('[data-key=\"cueing.texture\"] input').focus()",
    "button": "document.getElementById('hold').focus()",
    "canvas": "document.getElementById('rig').focus()",
}
PRESSES = {
    "P": {"key": "p", "code": "KeyP", "text": "p"},
    "Esc": {"key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27},
    "Cyrillic": {"key": "з", "code": "KeyP", "text": "з"},
    "Ctrl-P": {"key": "p", "code": "KeyP", "modifiers": 2, "windowsVirtualKeyCode": 80},
}


@pytest.mark.parametrize("press", PRESSES)
def test_p_and_esc_park_wherever_the_focus_is(browser, server, engine, press):
    begin = engine.requested
    with Tab(browser, server) as tab:
        protocol = cdp(tab)
        for where, focus in FOCUSES.items():
            engine.engage()
            soon(lambda: not parks(engine))
            tab.page.evaluate(focus)
            if where == "number":
                tab.page.keyboard.type("7")  # halfway to a value, which is not meant any more
            for kind in ("keyDown", "keyUp"):
                protocol.send("Input.dispatchKeyEvent", {"type": kind, **PRESSES[press]})
            soon(lambda: parks(engine))
        tab.page.evaluate("document.activeElement.blur()")
        settled(tab)
        assert engine.requested == begin
        assert tab.page.locator(BOX).input_value() == "0.5"


@pytest.mark.parametrize("press", PRESSES)
def test_p_and_esc_park_while_a_question_is_open(browser, server, engine, press):
    begin = engine.requested
    with Tab(browser, server) as tab:
        box = tab.page.locator(BOX)
        box.fill("-1")
        box.press("Enter")
        tab.shows("#ask", "the other sign")
        cdp(tab).send("Input.dispatchKeyEvent", {"type": "keyDown", **PRESSES[press]})
        soon(lambda: parks(engine))
        playwright.expect(tab.page.locator("#ask")).to_be_hidden()
        assert engine.requested == begin


def test_choices_open_no_list_that_would_keep_keys_from_the_page(browser, server, engine):
    begin = engine.requested
    with Tab(browser, server) as tab:
        tab.page.locator('[data-key="cueing.turned_by"] :is(select, button)').first.click()
        tab.page.keyboard.press("p")
        soon(lambda: parks(engine))
        assert engine.requested == begin


def test_no_other_single_key_commands_anything(browser, server, engine):
    begin = engine.requested
    with Tab(browser, server) as tab:
        tab.page.evaluate("document.activeElement.blur()")
        tab.page.keyboard.type("hexadbcfgijklmnoqrstuvwyz HEXADTUMR0123456789")
        settled(tab)
        tab.shows("#who", "nobody steers")
        assert not engine.newest()["operation"][0]
        assert (engine.requested, engine.stats()["retunes"]) == (begin, 1)
        assert tab.page.locator("#live").get_attribute("aria-pressed") == "true"


def test_park_stays_on_what_a_zoomed_screen_shows(browser, server, engine):
    with Tab(browser, server, **PHONE) as tab:
        tab.page.evaluate("scrollTo(0, 1500)")
        cdp(tab).send("Input.synthesizePinchGesture", {"x": 300, "y": 700, "scaleFactor": 2.5})
        seen = tab.page.evaluate(
            "[visualViewport.offsetLeft, visualViewport.offsetTop, visualViewport.width, visualViewport.height]"
        )
        assert seen[1] > 100  # what was above is out of sight
        left, top, width, height = seen
        tab.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        box = tab.page.evaluate("document.getElementById('park').getBoundingClientRect().toJSON()")
        assert left - 1 <= box["left"] < box["right"] <= left + width + 1
        assert top - 1 <= box["top"] < box["bottom"] <= top + height + 1
        assert box["height"] >= 40 * width / 390  # as large as without zoom
        middle = {"x": (box["left"] + box["right"]) / 2 - left, "y": (box["top"] + box["bottom"]) / 2 - top}
        tab.page.touchscreen.tap(middle["x"], middle["y"])
        soon(lambda: parks(engine))


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_park_is_asked_then_loud_and_asked_again_when_connected(browser, engine, server, options):
    context = browser.new_context(**options)
    page = context.new_page()
    lines, lost = [], []

    def line(route):
        engine_side = route.connect_to_server()
        lines.append(route)
        loses = len(lines) == 1
        route.on_message(lambda text: (lost.append if loses and "park" in text else engine_side.send)(text))

    page.route_web_socket("**/live*", line)
    page.goto(server.url)
    playwright.expect(page.locator("#state")).to_contain_text("offline", timeout=120_000)
    page.click("#park")
    playwright.expect(page.locator("#park")).to_contain_text("asked")
    playwright.expect(page.locator("#alarm")).to_be_visible()
    playwright.expect(page.locator("#park")).to_contain_text("Not parked!")
    assert len(lost) == 1
    assert not parks(engine)
    lines[0].close()
    playwright.expect(page.locator("#park")).to_contain_text("parked", timeout=120_000)
    playwright.expect(page.locator("#alarm")).to_be_hidden()
    assert parks(engine)
    context.close()


def test_park_says_that_it_parks(browser, server, engine):
    with Tab(browser, server) as tab:
        tab.page.evaluate(
            "window.said = []; new MutationObserver(() => said.push(document.querySelector('#park').textContent))"
            ".observe(document.querySelector('#park'), { childList: true, subtree: true, characterData: true })"
        )
        tab.page.click("#park")
        tab.shows("#park", "parked")
        assert "asked" in tab.page.evaluate("said[0]")
        assert tab.page.locator("#alarm").is_hidden()
