"""The page's controls in a real browser, told what a test says: what they show, when, and what they send."""

import os
import shutil

import pytest
from view_rig import profile

from motioncue.engine.engine import Engine
from motioncue.view.access import Address
from motioncue.view.server import Server

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")

BROWSER = os.environ.get("MOTIONCUE_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = [
    pytest.mark.timeout(300),  # a browser beside two busy lanes
    pytest.mark.rt,
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs a Chromium, in the path or named by MOTIONCUE_BROWSER"),
]

CONTROLS = """async () => {
    const { Tuning } = await import("/tuning.js");
    const place = document.createElement("div");
    document.body.replaceChildren(place);
    const bare = { kind: "number", sentence: "A number.", unit: "", least: 0, most: 10, above: false, choices: [],
        whole: false, optional: false, default: 1, begin: {}, start: null, follows: "", fixed: "" };
    window.parameters = ["table.a", "table.b"].map((key) => ({ ...bare, key }));
    parameters.push({ ...bare, key: "table.maybe", optional: true, default: null, start: 4 });
    parameters.push({ ...bare, key: "table.like_b", optional: true, default: null, start: 4, follows: "table.b" });
    window.sent = [];
    window.connected = true;
    window.tuning = new Tuning(place, (request) => connected && Boolean(sent.push(request)));
    window.begin = { "table.a": 1, "table.b": 1, "table.maybe": null, "table.like_b": null };
    window.told = (values) => tuning.show({ values: { ...begin, ...values }, begin });
    tuning.build(parameters);
    told({});
    place.querySelector("details").open = true;
    window.part = (key, what) => place.querySelector(`[data-key="${key}"] ${what}`);
    window.move = (key, at) => {
        part(key, "input[type=range]").value = at;
        part(key, "input[type=range]").dispatchEvent(new Event("input"));
    };
    window.release = async (key) => {
        part(key, "input[type=range]").dispatchEvent(new Event("change"));
        await new Promise((resolve) => setTimeout(resolve, 20));
    };
    window.type = (key, text) => {
        part(key, "input.number").value = text;
        for (const name of ["input", "change"]) part(key, "input.number").dispatchEvent(new Event(name));
    };
    window.last = () => sent[sent.length - 1];
}"""
"""A page of four numbers, that shows what it is `told` and notes what is `sent`."""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with (
        Engine(profile()) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path_factory.mktemp("saved")) as server,
    ):
        yield server


@pytest.fixture
def page(browser, server):
    page = browser.new_page()
    page.goto(server.url)
    page.wait_for_selector("[data-key]", state="attached")
    page.evaluate(CONTROLS)
    yield page
    page.close()


def number(page, key="table.a"):
    return page.evaluate("key => part(key, 'input.number').value", key)


def why(page, key="table.a"):
    return page.evaluate("key => part(key, '.why').textContent", key)


def test_what_came_while_a_slider_was_held_is_shown_when_it_is_let_go(page):
    page.evaluate("move('table.a', 900)")
    assert number(page) == "2.7"  # a tenth of the way before the end of 0 to 3, three times where it began
    page.evaluate("tuning.answer(last().number), told({'table.a': 0.5})")  # another page's change, after this one's
    assert number(page) == "2.7"
    page.evaluate("release('table.a')")
    assert number(page) == "0.5"


def test_what_was_asked_for_is_shown_until_it_is_answered_and_then_what_is_known(page):
    page.evaluate("move('table.a', 900), release('table.a')")
    page.evaluate("told({'table.b': 2})")  # told of another change, while this one is being made
    assert (number(page), number(page, "table.b")) == ("2.7", "2")
    page.evaluate("told({'table.b': 2}), tuning.answer(last().number)")  # made, and undone before anybody looked
    assert number(page) == "1"


def test_what_could_not_be_sent_is_not_shown_as_if_it_had_been(page):
    page.evaluate("connected = false, type('table.a', '2'), release('table.a')")
    assert page.evaluate("sent.length") == 0
    assert number(page) == "1"


def test_what_was_asked_for_in_a_lost_connection_is_waited_for_no_longer(page):
    page.evaluate("type('table.a', '2'), release('table.a')")
    page.evaluate("tuning.reconnected(), told({})")
    assert number(page) == "1"


def test_what_is_typed_halfway_is_not_overwritten(page):
    page.evaluate(
        "part('table.a', 'input.number').focus(), part('table.a', 'input.number').value = '2.',"
        "part('table.a', 'input.number').dispatchEvent(new Event('input'))"
    )
    page.evaluate("part('table.a', 'input.number').value = '2.5'")
    page.evaluate("told({'table.b': 2})")
    assert number(page) == "2.5"


def test_the_last_of_many_moves_is_sent_once_and_before_what_comes_after_it(page):
    page.evaluate("for (const at of [100, 200, 300, 400]) move('table.a', at)")
    assert page.evaluate("sent.map(({ value }) => value)") == [0.3]  # tenths of 3
    page.evaluate("tuning.flush()")
    assert page.evaluate("sent.map(({ value }) => value)") == [0.3, 1.2]
    assert page.evaluate("sent.map(({ number }) => number)") == [1, 2]


def test_undo_comes_after_a_move_that_was_still_waiting(browser, server):
    page = browser.new_page()
    page.add_init_script(
        "window.went = []; const send = WebSocket.prototype.send;"
        "WebSocket.prototype.send = function (text) { went.push(JSON.parse(text).do); return send.call(this, text); };"
    )
    page.goto(server.url)
    page.wait_for_selector("[data-key='cueing.surge.gain']", state="attached")
    went = page.evaluate(
        """() => {
            const slider = document.querySelector("[data-key='cueing.surge.gain'] input[type=range]");
            for (const at of [510, 520]) {
                slider.value = at;
                slider.dispatchEvent(new Event("input"));
            }
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true, bubbles: true }));
            return went.filter((each) => each !== "seen");
        }"""
    )
    assert went == ["set", "set", "undo"]
    page.close()


# ---- none ------------------------------------------------------------------------------------------------------------


def none(page, key="table.maybe"):
    return page.evaluate(
        "key => [part(key, 'button.none').getAttribute('aria-pressed'), part(key, 'input.number').value,"
        "part(key, 'input[type=range]').disabled, part(key, 'input[type=range]').ariaValueText]",
        key,
    )


def test_a_button_gives_a_value_to_what_was_left_out_and_takes_it_away(page):
    assert none(page) == ["true", "", False, "none"]
    page.click("[data-key='table.maybe'] button.none")
    assert page.evaluate("last().value") == 4
    page.evaluate("told({'table.maybe': 4}), tuning.answer(last().number), tuning.flush()")
    assert none(page)[:2] == ["false", "4"]
    page.evaluate("type('table.maybe', '7'), tuning.flush(), told({'table.maybe': 7}), tuning.answer(last().number)")
    page.click("[data-key='table.maybe'] button.none")
    page.evaluate("tuning.flush()")
    assert page.evaluate("last().value") is None
    page.evaluate("told({}), tuning.answer(last().number)")
    assert none(page)[:2] == ["true", ""]
    page.click("[data-key='table.maybe'] button.none")
    page.evaluate("tuning.flush()")
    assert page.evaluate("last().value") == 7  # the one that it had


def test_a_slider_gives_a_value_to_what_was_left_out_by_keyboard_alone(page):
    page.evaluate("part('table.maybe', 'input[type=range]').focus()")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("last().value") == pytest.approx(4, abs=0.1)  # a step from where it begins
    page.evaluate("told({'table.maybe': last().value}), tuning.answer(last().number)")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.evaluate("tuning.flush()")
    assert page.evaluate("[last().key, last().value]") == ["table.maybe", None]


def test_what_follows_another_number_begins_with_its_value(page):
    page.evaluate("told({'table.b': 2.5})")
    page.click("[data-key='table.like_b'] button.none")
    assert page.evaluate("last().value") == 2.5


def test_only_what_may_be_left_out_has_the_button(page):
    assert page.evaluate("part('table.a', 'button.none')") is None
    page.evaluate("type('table.a', '')")
    assert page.evaluate("sent.length") == 0
    assert number(page) == "1"


# ---- why a value was refused -----------------------------------------------------------------------------------------

REFUSED = "tuning.refuse({ key: 'table.a', number: last().number, why: 'too large' })"


def test_a_refusal_stays_while_others_change(page):
    page.evaluate(f"type('table.a', '77'), {REFUSED}, tuning.answer(last().number)")
    page.evaluate("told({}), told({'table.b': 2}), type('table.b', '3'), tuning.answer(last().number)")
    assert why(page) == "too large"
    assert number(page) == "1"


def test_a_refusal_stays_when_what_was_asked_before_it_is_made(page):
    page.evaluate("type('table.a', '2'), tuning.flush(), type('table.a', '77'), tuning.flush()")
    page.evaluate(REFUSED)  # at once: too many were waiting, or another page steers by now
    page.evaluate("told({'table.a': 2}), tuning.answer(1)")
    assert why(page) == "too large"
    assert number(page) == "2"


def test_a_refusal_stays_when_the_controls_are_built_anew(page):
    page.evaluate(f"type('table.a', '77'), {REFUSED}, tuning.answer(last().number)")
    page.evaluate("tuning.build(parameters), told({})")
    assert why(page) == "too large"


@pytest.mark.parametrize(
    "then",
    [
        "told({'table.a': 5})",  # by somebody else, or an undo
        "tuning.flush(), type('table.a', '5'), tuning.flush(), tuning.answer(last().number)",
        "tuning.flush(), type('table.a', '1'), tuning.flush(), tuning.answer(last().number)",  # to what it was
    ],
)
def test_a_refusal_goes_when_the_value_is_changed(page, then):
    page.evaluate(f"type('table.a', '77'), {REFUSED}, tuning.answer(last().number)")
    page.evaluate(then)
    assert why(page) == ""


def test_another_refusal_takes_the_place_of_the_first(page):
    page.evaluate(f"type('table.a', '77'), {REFUSED}, tuning.answer(last().number), tuning.flush()")
    page.evaluate(f"type('table.a', '-1'), tuning.flush(), {REFUSED.replace('large', 'small')}")
    page.evaluate("tuning.answer(last().number), told({})")
    assert why(page) == "too small"
