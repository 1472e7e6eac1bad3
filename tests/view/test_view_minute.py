"""The last minute that was driven, and what settings are worth on it, scored in another process."""

import math
import os
import pickle
import signal
import sys
import threading
import time
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from same_bits import assert_same_bits
from view_rig import soon

import motioncue
from motioncue.core.channels import MOTION_DTYPE, TICK_DTYPE
from motioncue.safety.supervisor import State
from motioncue.view.playback import LEAST_S, MINUTE_S, Minute, Recent
from motioncue.view.scorer import DIED, SILENCE_S, SILENT, TOO_SHORT, Request, Scorer, _started, scores_of

PROFILE = "ccd-dk-classical"
GAINS = [f"cueing.{axis}.gain=0.0" for axis in ("surge", "sway", "heave", "roll", "pitch", "yaw")] + [
    f"cueing.tilt.{axis}_gain=0.0" for axis in ("surge", "sway")
]


def loaded(*more):
    return motioncue.load_profile(
        PROFILE, "platform.preset=box-small", "source.bridge=hold", "output.rate_hz=100", *more
    )


# ---- the last minute -------------------------------------------------------------------------------------------------


class Ticking:
    """An engine whose ticks come when a test says so: at 100 Hz, with a frame at every second one."""

    def __init__(self, profile):
        self.profile = profile
        self.tick = np.zeros(1, TICK_DTYPE)
        self.tick["state"] = int(State.RUNNING)

    def newest(self):
        return self.tick.copy()

    def run(self, recent, seconds, state=State.RUNNING):
        self.tick["state"] = int(state)
        for _ in range(round(100 * seconds)):
            self.tick["index"] += 1
            self.tick["deadline"] += 10_000_000
            if self.tick["index"][0] % 2 == 0:
                self.tick["motion"]["time"] = self.tick["deadline"] - 1_000_000
                self.tick["motion"]["surge"] = float(self.tick["index"][0])
            recent.poll()


def begun(bridge="hold"):
    engine = Ticking(motioncue.load_profile(PROFILE, f"source.bridge={bridge}", "output.rate_hz=100"))
    return engine, Recent(engine)


def test_a_minute_has_each_frame_once_at_its_own_time():
    engine, recent = begun()
    engine.run(recent, 10.0)
    recent.poll()  # the same tick again
    minute = recent.minute()
    time_s = 1e-9 * minute.motion["time"]
    assert np.diff(time_s) == pytest.approx(0.02)
    assert minute.motion["surge"] == pytest.approx(100 * (time_s + 0.001))
    assert (minute.begin_s, minute.end_s) == pytest.approx((0.02, 10.0), abs=0.011)


def test_what_is_bridged_between_frames_has_the_time_of_its_tick():
    engine, recent = begun("linear")
    engine.run(recent, 4.0)
    assert np.diff(recent.minute().motion["time"]).tolist() == [10_000_000] * 398


def test_less_than_three_seconds_are_none_and_more_than_a_minute_is_one():
    engine, recent = begun()
    engine.run(recent, LEAST_S - 0.1)
    assert recent.minute() is None
    engine.run(recent, 2 * MINUTE_S)
    minute = recent.minute()
    assert minute.end_s - minute.begin_s == pytest.approx(MINUTE_S, abs=0.03)
    assert minute.end_s == pytest.approx(2 * MINUTE_S + LEAST_S - 0.1, abs=0.03)


def test_while_it_is_not_driven_the_last_drive_stays_and_the_next_replaces_it_once_it_is_long_enough():
    engine, recent = begun()
    engine.run(recent, 5.0)
    first = recent.minute()
    engine.run(recent, 4.0, State.PARKING)
    assert_same_bits(recent.minute().motion, first.motion)
    engine.run(recent, 2.0)
    assert_same_bits(recent.minute().motion, first.motion)
    engine.run(recent, 2.0)
    minute = recent.minute()
    assert (minute.begin_s, minute.end_s) == pytest.approx((9.0, 13.0), abs=0.03)  # nothing of the first one


def test_a_late_frame_ends_no_drive_and_a_long_hold_does():
    for held, begin in ((0.2, 0.0), (0.5, 5.5)):
        engine, recent = begun()
        engine.run(recent, 5.0)
        engine.run(recent, held, State.HOLDING)
        engine.run(recent, 4.0)
        assert recent.minute().begin_s == pytest.approx(begin, abs=0.03), held


def test_a_gap_begins_another_drive_and_so_does_a_recording_that_begins_again():
    for jump in (100, -300):
        engine, recent = begun()
        engine.run(recent, 5.0)
        for name, step in (("index", 1), ("deadline", 10_000_000)):
            engine.tick[name] += jump * step
        engine.run(recent, 4.0)
        minute = recent.minute()
        assert minute.end_s - minute.begin_s == pytest.approx(4.0, abs=0.03), jump
        assert (np.diff(minute.motion["time"]) > 0).all()


# ---- what settings are worth -----------------------------------------------------------------------------------------


def drive(seconds=8.0):
    """Return a car that brakes and corners, 100 frames a second."""
    motion = np.zeros(round(100 * seconds), MOTION_DTYPE)
    at = np.arange(len(motion)) / 100.0
    motion["time"] = np.round(1e9 * (1.0 + at)).astype(np.int64)
    motion["frame_time"] = at
    motion["surge"] = -2.0 * np.sin(2 * math.pi * 0.3 * at) ** 2
    motion["sway"] = 1.5 * np.sin(2 * math.pi * 0.2 * at)
    motion["yaw_rate"] = 0.1 * np.sin(2 * math.pi * 0.2 * at)
    return motion


def total(by_sense, turns=1.0):
    """Return the root of the sum of squares of a score's errors by sense."""
    return math.sqrt(sum((turns * value if "rate" in name else value) ** 2 for name, value in by_sense.items()))


def answers(profiles, motion, known=None, **more):
    return list(scores_of(Request(7, profiles, motion), {} if known is None else known, **more))


@pytest.fixture(scope="module")
def whole():
    pytest.importorskip("clarabel")
    return answers({"A": loaded("cueing.preset=large"), "now": loaded(*GAINS)}, drive())


@pytest.mark.check
def test_first_comes_the_share_of_rest_and_then_the_scores(whole):
    first, _, last = whole
    assert [answer["done"] for answer in whole] == [False, False, True]
    assert last["columns"]["A"].keys() > {"fits", "stopped", "rates", "rates_stopped", "ratio", "fast_tilt"}
    assert first["columns"].keys() == last["columns"].keys()
    assert last["why"] == ""
    assert last["number"] == 7


@pytest.mark.check
def test_a_platform_that_stands_still_has_all_of_the_error_at_rest_and_scores_0(whole):
    still = whole[-1]["columns"]["now"]
    assert still["ratio"] == pytest.approx(1.0, abs=1e-9)
    assert still["ratio_rates"] == pytest.approx(1.0, abs=1e-9)
    assert [still[key] for key in ("fits", "stopped", "rates", "rates_stopped")] == pytest.approx([0.0] * 4, abs=1e-6)
    assert still["fast_tilt"] == 0.0


@pytest.mark.check
def test_scores_are_those_of_the_score_command(whole, tmp_path, monkeypatch):
    monkeypatch.setattr("motioncue.scoring.score.cache_folder", lambda: tmp_path)
    found = whole[-1]["columns"]["A"]
    score = motioncue.score(loaded("cueing.preset=large"), drive())
    assert score.motions["fits"].fast_tilt != score.motions["stopped"].fast_tilt  # or this would compare nothing
    assert (found["fits"], found["stopped"]) == pytest.approx((score.score, score.stopped))
    assert (found["rates"], found["rates_stopped"]) == pytest.approx(tuple(score.rates_first))
    stopped = score.motions["stopped"]
    assert found["ratio"] == pytest.approx(total(stopped.error) / total(score.still))
    assert found["fast_tilt"] == pytest.approx(stopped.fast_tilt)


def test_without_the_solver_the_share_of_rest_is_shown_and_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    (only,) = answers({"now": loaded(*GAINS)}, drive())
    assert only["done"]
    assert 'pip install "motioncue[score]"' in only["why"]
    assert only["columns"]["now"]["ratio"] == pytest.approx(1.0)


@pytest.mark.check
def test_settings_that_cannot_be_judged_say_why_and_the_others_are(whole):
    wrong = msgspec.structs.replace(loaded(), platform=None)
    found = answers({"A": wrong, "now": loaded(*GAINS)}, drive())[-1]["columns"]
    assert found["A"]["why"].startswith("platform: missing")
    assert found["now"]["ratio"] == pytest.approx(1.0)


@pytest.mark.check
def test_the_best_motion_is_found_once_for_a_drive_and_a_platform(whole, monkeypatch):
    found = []
    best = motioncue.scoring.optimum.best_motion
    monkeypatch.setattr("motioncue.scoring.optimum.best_motion", lambda *given: found.append(1) or best(*given))
    known = {}
    answers({"now": loaded(*GAINS)}, drive(4.0), known)
    assert len(found) == 2  # one for each weighting
    answers({"A": loaded("cueing.surge.gain=0.3"), "now": loaded(*GAINS)}, drive(4.0), known)
    assert len(found) == 2
    answers({"now": loaded("platform.preset=box-large", *GAINS)}, drive(4.0), known)
    assert len(found) == 4


def test_an_answer_that_nobody_wants_any_more_is_not_computed():
    assert answers({"now": loaded(*GAINS)}, drive(), stale=lambda: True) == []


# ---- the process -----------------------------------------------------------------------------------------------------


class Driven:
    """Stands for `Recent`: a drive that a test sets."""

    def __init__(self, minute):
        self.newest = minute

    def minute(self):
        return self.newest


@pytest.fixture
def scorer():
    minute = Minute(drive(4.0), 0.0, 4.0)
    found = {"now": loaded(*GAINS)}
    scorer = Scorer(Driven(minute), lambda: found)
    scorer.found = found
    yield scorer
    scorer.close()


def asked(scorer):
    """Have it scored at once."""
    scorer.ask()
    scorer.poll(time.monotonic())
    return scorer.answer()


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (motioncue.load_profile("ccd-dk"), "no [platform]"),
        (SimpleNamespace(platform=1, cueing=motioncue.load_profile("ccd-dk").cueing), "direct gives no pose"),
    ],
)
def test_what_cannot_be_judged_is_said_without_a_process(scorer, profile, words):
    scorer.found["now"] = profile
    said = asked(scorer)
    assert words in said["why"]
    assert not said["busy"]
    assert scorer._process is None


def test_it_waits_for_a_drive_that_is_long_enough(scorer, monkeypatch):
    sent = []
    monkeypatch.setattr(scorer, "_send", sent.append)
    minute, scorer._recent.newest = scorer._recent.newest, None
    assert asked(scorer)["why"] == TOO_SHORT
    scorer._recent.newest = minute
    scorer.poll(time.monotonic())
    assert scorer.answer()["busy"]
    soon(lambda: sent)


def test_changes_are_judged_when_they_have_been_left_alone_and_on_the_same_minute(scorer, monkeypatch):
    sent = []
    monkeypatch.setattr(scorer, "_send", sent.append)
    now = time.monotonic()
    for _ in range(3):
        scorer.changed()
        scorer.poll(now)
    assert not scorer.answer()["busy"]
    scorer.poll(now + 10.0)
    scorer._recent.newest = Minute(drive(4.0), 5.0, 9.0)
    scorer.changed()
    scorer.poll(time.monotonic() + 10.0)
    soon(lambda: len(sent) == 2)
    assert sent[0].motion is sent[1].motion  # 5 s later it is still good enough to compare
    scorer._recent.newest = Minute(drive(4.0), 50.0, 54.0)
    scorer.changed()
    scorer.poll(time.monotonic() + 10.0)
    soon(lambda: len(sent) == 3)
    assert sent[2].motion is sent[0].motion  # which is still being computed
    scorer._say()
    scorer.changed()
    scorer.poll(time.monotonic() + 10.0)
    soon(lambda: len(sent) == 4)
    assert sent[3].motion is scorer._recent.newest.motion


@pytest.mark.rt
@pytest.mark.check
def test_another_process_of_low_priority_answers_and_ends_with_this_one(scorer):
    assert asked(scorer)["busy"]
    soon(lambda: not scorer.answer()["busy"])
    said = scorer.answer()
    assert said["columns"]["now"]["ratio"] == pytest.approx(1.0, abs=1e-9)
    assert (said["begin_s"], said["end_s"]) == (0.0, 4.0)
    process = scorer._process
    assert process.pid != os.getpid()
    if hasattr(os, "getpriority"):
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    scorer.close()
    assert process.poll() is not None


@pytest.mark.rt
@pytest.mark.check
def test_a_process_that_dies_is_said_and_the_next_change_starts_another(scorer):
    asked(scorer)
    soon(lambda: scorer._process is not None)
    process = scorer._process
    process.kill()
    soon(lambda: scorer.answer()["why"] == DIED)
    asked(scorer)
    soon(lambda: not scorer.answer()["busy"])
    assert scorer.answer()["columns"]["now"]["ratio"] == pytest.approx(1.0, abs=1e-9)
    assert scorer._process.pid != process.pid


SAYS = """
import json, pickle, sys, time
number = pickle.load(sys.stdin.buffer).number
print(json.dumps({"number": number}), flush=True)
print(json.dumps({"number": number, "columns": {"now": {"ratio": 0.25}}, "why": "", "done": %s}), flush=True)
time.sleep(1e6)
"""
"""A program in the place of the one that judges."""

AT_ONCE, HALFWAY, NEVER = SAYS % "True", SAYS % "False", "import time; time.sleep(1e6)"


@pytest.mark.rt
@pytest.mark.parametrize("program", [NEVER, HALFWAY])
def test_a_process_that_hangs_is_ended_and_said_and_the_next_change_starts_another(scorer, monkeypatch, program):
    monkeypatch.setattr("motioncue.view.scorer.PROGRAM", program)
    assert asked(scorer)["busy"]
    soon(lambda: scorer._process is not None)
    process = scorer._process
    if program is HALFWAY:
        soon(lambda: "now" in scorer.answer()["columns"])
    scorer.poll(time.monotonic() + 0.9 * SILENCE_S)
    assert scorer.answer()["busy"]
    scorer.poll(time.monotonic() + 1.1 * SILENCE_S)
    said = scorer.answer()
    assert (said["busy"], said["why"]) == (False, SILENT.format(SILENCE_S))
    assert ("now" in said["columns"]) == (program is HALFWAY)  # what was found stays
    soon(lambda: process.poll() is not None)
    scorer.poll(time.monotonic() + 10.0 * SILENCE_S)
    assert scorer.answer() == said
    monkeypatch.setattr("motioncue.view.scorer.PROGRAM", AT_ONCE)
    assert asked(scorer)["busy"]
    soon(lambda: not scorer.answer()["busy"])
    assert scorer.answer()["columns"] == {"now": {"ratio": 0.25}}


@pytest.mark.rt
def test_a_process_that_says_a_word_now_and_then_is_left_alone(scorer, monkeypatch):
    monkeypatch.setattr("motioncue.view.scorer.PROGRAM", HALFWAY)
    asked(scorer)
    scorer._heard -= 0.9 * SILENCE_S  # as if it had been asked long ago
    soon(lambda: "now" in scorer.answer()["columns"])  # its word
    scorer.poll(time.monotonic() + 0.9 * SILENCE_S)
    assert scorer.answer()["busy"]


def test_who_has_nothing_to_do_may_be_silent(scorer, monkeypatch):
    monkeypatch.setattr(scorer, "_send", lambda request: None)
    asked(scorer)
    scorer._say()  # it has answered
    said = scorer.answer()
    scorer.poll(time.monotonic() + 10.0 * SILENCE_S)
    assert scorer.answer() == said


@pytest.mark.rt
def test_the_process_says_a_word_before_each_step():
    # Before each of two settings that are scored, and before each of their scores by two weightings.
    pytest.importorskip("clarabel")
    told = []
    with _started() as process:
        profiles = {"A": loaded("cueing.preset=large"), "now": loaded(*GAINS)}
        pickle.dump(Request(3, profiles, drive(4.0)), process.stdin)
        process.stdin.flush()
        while not (told and told[-1].get("done")):
            told.append(msgspec.json.decode(process.stdout.readline()))
        process.kill()
    assert [each.keys() == {"number"} for each in told] == [True, True, False, True, True, False, True, True, False]


@pytest.mark.rt
def test_files_beside_which_it_is_started_are_not_its_modules(scorer, tmp_path, monkeypatch):
    (tmp_path / "queue.py").write_text("raise SystemExit(3)")
    (tmp_path / "motioncue.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    asked(scorer)
    soon(lambda: not scorer.answer()["busy"])
    assert "ratio" in scorer.answer()["columns"]["now"]


@pytest.mark.rt
@pytest.mark.skipif(sys.platform != "linux", reason="reads from /proc what files a process has open")
def test_libraries_that_look_at_standard_input_do_not_wait_for_who_reads_the_requests(scorer):
    # On Windows, loading SciPy would hang; under Wine the tests above do.
    asked(scorer)
    soon(lambda: scorer.answer()["columns"])
    assert os.readlink(f"/proc/{scorer._process.pid}/fd/0") == os.devnull


@pytest.mark.rt
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a system that stops no process")
def test_a_process_that_reads_nothing_does_not_keep_this_one_from_ending(scorer):
    asked(scorer)
    soon(lambda: not scorer.answer()["busy"])
    process = scorer._process
    os.kill(process.pid, signal.SIGSTOP)
    scorer._recent.newest = Minute(drive(60.0), 50.0, 110.0)  # more than a pipe holds: the thread that writes waits
    asked(scorer)
    soon(lambda: scorer._sending.locked())
    closing = threading.Thread(target=scorer.close, daemon=True)
    closing.start()
    closing.join(20.0)
    ended = not closing.is_alive()
    process.kill()
    assert ended
    assert process.poll() is not None


def test_a_process_that_cannot_be_started_is_said(scorer, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    asked(scorer)
    soon(lambda: not scorer.answer()["busy"])
    assert "cannot be started" in scorer.answer()["why"]
