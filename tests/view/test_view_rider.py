"""What a rider is offered: A and B compared blind, settings that a search finds, a test wave on one axis."""

import re
import threading
import time
from itertools import pairwise
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import nowhere
from view_rig import driven, profile, soon

from motioncue.core.channels import MOTION_DTYPE
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.errors import ConfigError
from motioncue.safety.supervisor import State
from motioncue.view.access import Address
from motioncue.view.editor import Doubtful
from motioncue.view.playback import Minute
from motioncue.view.scorer import ENDED, Request, Scorer, search
from motioncue.view.server import Server
from motioncue.view.session import parse_request
from motioncue.view.wave import TestWave
from motioncue.virtual.installation import Installation, drive_motion

SOON = "platform.rise_s=0.5"
SLOW_LINK = ["supervisor.hold_s=1.0"]  # a busy machine is late with frames
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def chromium():
    module = pytest.importorskip("view_chromium")
    if module.BROWSER is None:
        pytest.skip("needs a Chromium, in the path or named by MOTIONCUE_BROWSER")
    with module.launched() as browser:
        yield module, browser


# ---- blind -----------------------------------------------------------------------------------------------------------


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_phone_compares_blind_and_keeps_what_was_preferred(chromium, tmp_path):
    module, browser = chromium
    with (
        Engine(profile()) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
        module.Tab(browser, server, **PHONE) as tab,
    ):
        expect, page = module.playwright.expect, tab.page
        assert page.evaluate("document.querySelector('#try-blind').disabled")  # A and B are the same
        page.click("#unlock")
        begin = engine.requested.cueing.surge.gain
        page.get_by_role("button", name="stronger: less").click()
        soon(lambda: engine.requested.cueing.surge.gain < begin)
        weak = engine.requested.cueing.surge.gain
        page.click("#try-blind")
        tab.shows("#blind", "turn 1")
        expect(page.locator("main")).to_be_hidden()
        expect(page.locator("#park")).to_be_in_viewport()
        boxes = [page.get_by_role("button", name=word, exact=True).bounding_box() for word in ("this", "that")]
        assert all(box["height"] >= 60 and box["width"] >= 150 for box in boxes)
        page.evaluate("document.querySelector('#unlock').click()")  # as after a minute without a touch
        felt = []
        for turn in range(1, 7):
            tab.shows("#blind", f"turn {turn}")
            tab.shows("#blind", "You feel this")
            this = engine.requested.cueing.surge.gain
            page.get_by_role("button", name="that", exact=True).click()
            tab.shows("#blind", "You feel that")
            that = engine.requested.cueing.surge.gain
            assert sorted((this, that)) == [weak, begin]
            felt.append(this)
            if turn == 4:  # a phone that reloads a page: the turn, what is felt and the tally stay
                page.reload()
                tab.shows("#blind", "turn 4")
                tab.shows("#blind", "You feel that")
                tab.shows("#blind", "the tally of 3")
            better = "this" if this == weak else "that"
            page.get_by_role("button", name="no difference" if turn == 6 else f"{better} was better").click()
        page.get_by_role("button", name="End, and show the tally of 6").click()
        tab.shows("#blind", "A was better in 5 of 5")
        page.reload()
        tab.shows("#blind", f"in {round(100 * 2 / 2**5)} % of cases")
        page.get_by_role("button", name="Take A").click()
        soon(lambda: engine.requested.cueing.surge.gain == weak)
        page.reload()
        tab.shows("#state", "")
        expect(page.locator("main")).to_be_visible()
        assert tab.errors == []


@pytest.mark.slow
@pytest.mark.rt
def test_the_chance_of_a_tally_is_that_of_a_fair_coin(chromium, tmp_path):
    module, browser = chromium
    with (
        Engine(profile()) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
        module.Tab(browser, server) as tab,
    ):
        for most, all_ in ((1, 1), (3, 5), (5, 6), (9, 10), (20, 30)):
            expected = min(1.0, 2 * sum(comb(all_, k) for k in range(most, all_ + 1)) / 2**all_)
            found = tab.page.evaluate("async ([k, n]) => (await import('./compare.js')).chance(k, n)", [most, all_])
            assert found == pytest.approx(expected, rel=1e-12)


# ---- search ----------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_search_tells_how_far_it_is_and_finds_a_front_within_the_travel(monkeypatch, tmp_path):
    for name in ("cma", "scipy", "clarabel"):
        pytest.importorskip(name)
    monkeypatch.setattr("motioncue.view.scorer.EVALUATIONS", 8)
    monkeypatch.setattr("motioncue.scoring.score.cache_folder", lambda: tmp_path)
    settings = profile("platform.preset=seat-2")
    told = []
    search(Request(7, {"now": settings}, drive_motion("brake")[: 60 * 12], tunes=True), told.append)
    steps = [each["found"]["done"] for each in told[:-1]]
    assert steps == sorted(steps)
    assert steps[-1] <= told[0]["found"]["total"] == 4 * 8
    found = told[-1]["found"]
    assert told[-1]["done"]
    shares = [point["share"] for point in found["points"]]
    assert shares
    assert set(shares) <= {0.25, 0.5, 0.75, 1.0}
    for point in found["points"]:
        assert point["use"] <= point["share"] + 1e-9
    for less, more in pairwise(found["points"]):
        assert less["score"] <= more["score"] + 1e-9
    search(Request(8, {"now": profile()}, drive_motion("still")[:60], tunes=True), told.append)
    assert "allowed are 3 to 3600 s" in told[-1]["why"]


def test_the_best_that_was_found_is_compared_with_the_settings_in_force():
    settings = {"now": profile()}
    scorer = Scorer(None, lambda: settings)
    assert list(scorer._profiles()) == ["now"]
    point = {"share": 0.5, "score": 61.2, "values": {"cueing.surge.gain": 0.123}}
    scorer._found = {"before": 47.4, "use": 0.9, "points": [point]}
    assert scorer.found(0) == (point["values"], "tuned on a drive: score 47 to 61 within 50 % of the travel")
    assert list(scorer._profiles()) == ["tuned", "now"]
    assert scorer._profiles()["tuned"].cueing.surge.gain == 0.123
    settings["now"] = profile("cueing.surge.gain=0.123")  # it was taken
    assert list(scorer._profiles()) == ["now"]
    scorer._found["points"][0]["values"]["cueing.tilt.surge_cutoff_hz"] = 0.5
    assert list(scorer._profiles()) == ["tuned", "now"]
    settings["now"] = profile("cueing.algorithm=predictive")  # has no such key
    assert list(scorer._profiles()) == ["now"]


def test_a_change_of_settings_waits_for_a_search_and_judge_ends_it(monkeypatch):
    minute = Minute(drive_motion("brake")[:300], 0.0, 5.0)
    scorer = Scorer(SimpleNamespace(minute=lambda: minute), lambda: {"now": profile()})
    sent = []
    monkeypatch.setattr(scorer, "_send", sent.append)
    scorer.tune()
    scorer.poll(time.monotonic())
    soon(lambda: len(sent) == 1)
    assert sent[0].tunes
    assert scorer.answer()["found"] == {"done": 0, "total": 0}
    scorer.changed()
    scorer.poll(time.monotonic() + 10.0)
    scorer.ask()
    assert scorer.answer()["found"] is None
    assert scorer.answer()["why"] == ENDED
    scorer.poll(time.monotonic())
    soon(lambda: len(sent) == 2)  # and none for the change meanwhile
    assert not sent[1].tunes


def test_what_a_search_has_not_found_is_refused():
    with Engine(profile()) as engine:
        server = Server(engine, Address("127.0.0.1", 0))
        with pytest.raises(ConfigError, match=re.escape("try: found 0, allowed are the 0 settings")):
            server._scorer.found(0)
    for text in (
        '{"do": "try", "point": -1}',
        '{"do": "try"}',
        '{"do": "tune", "stretch": [1]}',
        '{"do": "swap", "to": "C"}',
    ):
        with pytest.raises(ValueError, match="no request"):
            parse_request(text)


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_page_searches_on_what_was_driven_and_tries_what_was_found(chromium, tmp_path, monkeypatch):
    for name in ("cma", "scipy", "clarabel"):
        pytest.importorskip(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module, browser = chromium
    with (
        Engine(profile("platform.preset=seat-2")) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
        module.Tab(browser, server) as tab,
    ):
        driven(engine, 6.0)
        begin = engine.requested
        tab.page.click("#tune")
        tab.shows("#tune", "Stop")
        tab.page.click("#tune")
        tab.shows("#tune", "Tune it")
        tab.shows("#minute", "felt wrong")  # instead, the settings now are scored
        assert tab.page.inner_text("#found") == ""
        tab.page.click("#tune")
        tab.shows("#found", "Found")
        tab.page.get_by_role("button", name="Try the best within").last.click()
        meant = tab.page.locator("#mean")
        soon(lambda: engine.requested.cueing != begin.cueing or meant.is_visible())
        if engine.requested.cueing == begin.cueing:
            meant.click()
        soon(lambda: engine.requested.cueing != begin.cueing)
        tab.shows("#found", "when it began")  # the others can still be tried
        tab.page.click("#undo")
        if meant.is_visible():
            meant.click()
        soon(lambda: engine.requested.cueing == begin.cueing or meant.is_visible())
        assert tab.errors == []


# ---- test wave -------------------------------------------------------------------------------------------------------


def endpoint(path):
    """Return a profile that listens, as City Car Driving connects to it."""
    more = (f"output.motion={nowhere()}", f"output.gauges={nowhere()}", "cueing.algorithm=classical")
    urls = f'source.endpoint="unix://{path}/car"'
    return load_profile("ccd-dk", urls, "platform.preset=hexapod-simona", "supervisor.fade_s=0.1", *more)


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("listens", [False, True], ids=["fed", "listens"])
def test_a_wave_moves_one_axis_by_what_is_asked_and_parks_by_itself(listens, tmp_path):
    with Engine(endpoint(tmp_path) if listens else profile(SOON)) as engine:
        wave = TestWave(engine)
        with pytest.raises(Doubtful, match=r"sway.*10 s at 0\.4 Hz"):
            wave.start("sway")
        assert engine.stats()["frames_received"] == 0
        wave.start("sway", sure=True)
        with pytest.raises(ConfigError, match="one at a time"):
            wave.start("surge", sure=True)
        most = dict.fromkeys(("surge", "sway", "heave", "pitch", "yaw_rate"), 0.0)
        while wave._thread.is_alive():
            tick = engine.newest()
            for name in most:
                most[name] = max(most[name], abs(float(tick["motion"][name][0])))
            time.sleep(0.003)
        assert wave.told == "Test wave on sway: done, parked"
        assert int(engine.newest()["state"][0]) == int(State.OFFLINE)
        assert most["sway"] == pytest.approx(1.0, abs=0.15)  # it is looked at now and then
        assert all(most[name] < 0.05 for name in ("surge", "heave", "pitch", "yaw_rate"))
        assert engine.stats()["events"] == {}
        assert [move["reason"] for move in engine.stats()["transitions"]][-2:] == ["operator_park", "neutral_reached"]


@pytest.mark.check
@pytest.mark.rt
def test_a_wave_is_refused_where_it_could_meet_a_drive():
    with Engine(profile(SOON)) as engine:
        wave = TestWave(engine)
        with pytest.raises(ConfigError, match="wave: found 'up', allowed are surge"):
            wave.start("up", sure=True)
        feeding = threading.Thread(target=driven, args=(engine, 2.0))
        feeding.start()
        soon(lambda: engine.stats()["frames_received"] > 2)
        with pytest.raises(ConfigError, match=r"allowed is while parked|found frames of a simulator"):
            wave.start("surge", sure=True)
        feeding.join()
        assert wave.told == ""


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_wave_stops_a_virtual_car_which_drives_on_without_a_jump():
    with Installation("ccd-dk-classical", "brake", overrides=SLOW_LINK, endless=True) as installation:
        engine = installation.engine
        wave = TestWave(engine, installation.detour)
        soon(lambda: int(engine.newest()["state"][0]) == int(State.RUNNING))
        with pytest.raises(ConfigError, match="allowed is while parked"):
            wave.start("heave", sure=True)
        engine.park()
        soon(lambda: int(engine.newest()["state"][0]) == int(State.OFFLINE))
        with pytest.raises(Doubtful, match="the virtual car stops"):
            wave.start("heave")
        wave.start("heave", sure=True)
        soon(lambda: "moving" in wave.told)
        speeds, heaves = [], []
        while "moving" in wave.told:
            motion = engine.newest()["motion"]
            speeds.append(float(motion["speed"][0]))
            heaves.append(float(motion["heave"][0]))
            time.sleep(0.005)
        assert wave.told == "Test wave on heave: done, parked"
        assert max(speeds) < 0.5
        assert max(heaves) == pytest.approx(1.0, abs=0.15)
        soon(lambda: float(engine.newest()["motion"]["speed"][0]) > 5.0)  # the drive goes on, and the platform rests
        assert int(engine.newest()["state"][0]) == int(State.OFFLINE)
        assert (engine.stats()["events"], engine.stats()["rejected"]) == ({}, {})


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_park_ends_a_wave_while_its_car_stops_and_no_other_one_begins_before_it_drives_on():
    with Installation("ccd-dk-classical", "brake", overrides=SLOW_LINK, endless=True) as installation:
        engine = installation.engine
        wave = TestWave(engine, installation.detour)
        engine.park()
        soon(lambda: engine.stats()["frames_received"] > 10)
        soon(lambda: int(engine.newest()["state"][0]) == int(State.OFFLINE))
        wave.start("heave", sure=True)
        soon(lambda: "stops" in wave.told)
        time.sleep(0.5)
        engine.park()
        soon(lambda: not wave._thread.is_alive())
        assert wave.told == "Test wave on heave: parked before its end"
        assert int(engine.newest()["state"][0]) == int(State.OFFLINE)
        with pytest.raises(ConfigError, match="one at a time"):
            wave.start("sway", sure=True)


def test_a_drive_with_trouble_has_no_place_for_a_wave():
    with pytest.raises(ConfigError, match=r"wave: found the drive 'trouble', allowed is any other one"):
        Installation("ccd-dk-classical", "trouble", endless=True).detour("heave", 4.0)


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("ends", ["park", "simulator", "close"])
def test_a_wave_ends_at_once(ends):
    with Engine(profile(SOON)) as engine:
        wave = TestWave(engine)
        wave.start("heave", sure=True)
        soon(lambda: int(engine.newest()["state"][0]) == int(State.RUNNING))
        if ends == "park":
            engine.park()
        elif ends == "close":
            wave.stop()
        else:
            motion = np.zeros(1, MOTION_DTYPE)
            while wave._thread.is_alive():  # another car, at rest
                motion["frame_time"] += 0.01
                engine.feed(motion)
                time.sleep(0.002)
        soon(lambda: not wave._thread.is_alive())
        sent = engine.stats()["frames_received"]
        soon(lambda: int(engine.newest()["state"][0]) == int(State.OFFLINE))
        assert engine.stats()["frames_received"] == sent
        assert "parked before" in wave.told or "simulator" in wave.told or "ended" in wave.told


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_page_asks_before_a_wave_and_says_that_it_goes_on(chromium, tmp_path):
    module, browser = chromium
    with (
        Engine(profile(SOON)) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
        module.Tab(browser, server) as tab,
    ):
        tab.page.get_by_role("group", name="Axis").get_by_role("button", name="heave").click()
        tab.page.get_by_role("button", name="Test wave").click()
        tab.shows("#ask", "is everybody clear of it?")
        tab.page.click("#leave")
        assert engine.stats()["frames_received"] == 0
        tab.page.get_by_role("button", name="Test wave").click()
        tab.shows("#ask", "heave")
        tab.page.click("#mean")
        tab.shows("#wave", "Park ends it")
        tab.page.keyboard.press("p")
        tab.shows("#wave", "parked before its end")
        soon(lambda: int(engine.newest()["state"][0]) == int(State.OFFLINE))
        assert tab.errors == []
