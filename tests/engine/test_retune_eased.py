"""Settings of an algorithm, changed at any moment of a drive, ask for no more than they do alone, and a fade."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from test_tuning import FREE, PERIOD_S, short, steps
from test_washout import motion_of

import motioncue
from motioncue import ConfigError
from motioncue.profile.profile import overridden
from motioncue.profile.reference import controls

FADE_S = 1.0
SLOPE, BEND = 15 / 8, 10 / math.sqrt(3)  # largest derivatives of the weight x^3 (10 - 15 x + 6 x^2)
CATCH_UP = 1.0  # [rad/s^2] with which a tilt that lags may catch up
TURNS, TRAVELS = ("roll", "pitch", "yaw"), tuple(f"{name}_displacement" for name in ("surge", "sway", "heave"))
G = 9.80665


def profile(algorithm, *overrides):
    keys = ["cueing.algorithm=classical"] if algorithm == "classical" else [f"cueing.algorithm={algorithm}"]
    preset = "simona" if algorithm == "classical" else "small"
    return motioncue.load_profile("ccd-dk", FREE, *keys, f"cueing.preset={preset}", *overrides)


CONTROLS = {
    name: [each for each in controls(profile(name).cueing, "cueing") if each.key != "cueing.algorithm"]
    for name in ("classical", "adaptive", "optimal")
}


# ---- drives and changes ----------------------------------------------------------------------------------------------


def smooth(x):
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10 - 15 * x + 6 * x * x)


@st.composite
def drives(draw, n):
    """Return a moving drive: each channel a sum of waves and of pulls that come and stay, none with a corner."""
    time = PERIOD_S * np.arange(n)

    def wave(most, fastest):
        size, omega = draw(st.floats(0.0, most)), draw(st.floats(0.2, fastest))
        return size, omega, draw(st.floats(0.0, 2 * np.pi))

    def waves(most, fastest):
        size, omega, phase = wave(most, fastest)
        return size * np.sin(omega * time + phase)

    def pull(most):
        size, at, lasts = draw(st.floats(-most, most)), draw(st.floats(-1.0, 8.0)), draw(st.floats(0.3, 2.0))
        return size * smooth((time - at) / lasts)

    channels = {
        "surge": waves(2.0, 4.0) + pull(5.0) + pull(5.0),
        "sway": waves(2.0, 4.0) + pull(5.0) + pull(5.0),
        "heave": waves(1.0, 15.0),
        "yaw_rate": waves(0.3, 2.0) + pull(0.3),
    }
    for name, most in (("roll", 0.15), ("pitch", 0.15)):
        size, omega, phase = wave(most, 3.0)
        channels[name] = size * np.sin(omega * time + phase)
        channels[f"{name}_rate"] = size * omega * np.cos(omega * time + phase)
    return motion_of(n, **{name: smooth(time / 1.5) * values for name, values in channels.items()})


def number(draw, control):
    """Return a value of a number's whole range: by ratio, so that small ones are as likely as large ones."""
    if control.choices:
        return draw(st.sampled_from(control.choices))
    most = 1000.0 if control.most is None else control.most
    least = 0.0 if control.least is None else control.least
    lowest = least if least > 0.0 else 1e-3 * most
    value = float(f"{lowest * (most / lowest) ** draw(st.floats(0.0, 1.0)):.6g}")
    value = min(max(value, lowest), most)
    if least < 0.0:
        value *= draw(st.sampled_from([-1.0, 1.0]))
    elif least == 0.0 and not control.above and draw(st.integers(0, 9)) == 0:
        value = 0.0
    return None if control.optional and draw(st.integers(0, 4)) == 0 else value


@st.composite
def changes(draw, algorithm):
    """Return one to four keys with values, any that the table allows one by one, or another algorithm."""
    if draw(st.integers(0, 7)) == 0:
        return {"cueing.algorithm": draw(st.sampled_from([*CONTROLS, "direct"]))}
    found = {}
    for control in draw(
        st.lists(st.sampled_from(CONTROLS[algorithm]), min_size=1, max_size=4, unique_by=lambda each: each.key)
    ):
        if control.kind == "number":
            found[control.key] = number(draw, control)
        elif control.kind == "table":
            found[control.key] = draw(st.sampled_from([None, dict(control.begin)]))
        else:
            found[control.key] = draw(st.sampled_from(control.choices))
    return found


# ---- what is asked of the platform -----------------------------------------------------------------------------------


def asked(cue):
    """Return size, rate and acceleration of the angles and of the travel: for each, the largest of three channels."""
    found = []
    for names in (TURNS, TRAVELS):
        values = [short(np.diff(cue[name])) if name in ("roll", "yaw") else np.diff(cue[name]) for name in names]
        found.append(
            (
                max(np.abs(cue[name]).max() for name in names),
                max(np.abs(each).max() for each in values) / PERIOD_S,
                max(np.abs(np.diff(each)).max() for each in values) / PERIOD_S**2,
            )
        )
    return np.array(found)


def allowed(alone):
    """Return the largest rate and acceleration that are allowed, of angles and of travel.

    From x0 to x1 along the weight w, the rate is that of both, weighted, and w' (x1 - x0), and the acceleration that of
    both and 2 w' (x1' - x0') + w'' (x1 - x0).  x0 and x1 are taken from the settings alone; a state that goes on under
    other settings is not quite that of either, so twice that is allowed.
    """
    size, rate, _ = np.sum(alone, axis=0).T
    largest = np.max(alone, axis=0)
    most_rate = largest[:, 1] + SLOPE / FADE_S * size
    most = largest[:, 2] + 2 * SLOPE / FADE_S * rate + BEND / FADE_S**2 * size
    most[0] += CATCH_UP
    return 2 * np.stack([most_rate, most], axis=1) + 1e-9


def through(before, motion, plan):
    """Return the cues of a drive with changes at ticks, and the settings that were in use."""
    stepper, sent, done, used = motioncue.bind(before), [], 0, [before]
    for at, change in plan:
        sent.append(steps(stepper, motion[done:at]))
        done = at
        try:
            after = overridden(used[-1], change)
            stepper.retune(after)
        except ConfigError:  # such as a frequency beyond half the rate, or a key of another algorithm
            continue
        used.append(after)
    return np.concatenate([*sent, steps(stepper, motion[done:])]), used


def shares(cue, used, motion):
    """Return rate and acceleration, of angles and of travel, as shares of what is allowed."""
    return asked(cue)[:, 1:] / allowed([asked(motioncue.cue(each, motion)) for each in used])


def drawn(data, algorithm):
    """Return a drive, the settings it begins with, and changes at ticks."""
    motion = data.draw(drives(3300))
    limited = data.draw(
        st.sampled_from([(), *([f"cueing.tilt.rate_limit_deg_s={each}"] for each in (0.5, 3, 30, 100))])
    )
    plan = [(0, data.draw(changes(algorithm)))] if data.draw(st.booleans()) else []
    at = 0
    for _ in range(data.draw(st.integers(1, 3))):
        at += data.draw(st.integers(1, 900))
        plan.append((at, data.draw(changes(algorithm))))
    return motion, profile(algorithm, *limited), plan


@pytest.mark.search
@pytest.mark.parametrize("algorithm", CONTROLS)
@settings(max_examples=150)
@given(data=st.data())
def test_any_changes_at_any_moment_ask_for_no_more_than_the_settings_alone_and_a_fade(algorithm, data):
    motion, before, plan = drawn(data, algorithm)
    cue, used = through(before, motion, plan)
    assert all(np.isfinite(cue[name]).all() for name in (*TURNS, *TRAVELS))
    share = shares(cue, used, motion)
    assert (share <= 1.0).all(), share


# ---- changes that once jolted ----------------------------------------------------------------------------------------

TIME = PERIOD_S * np.arange(3300)
LIVELY = {
    "surge": 2 * np.sin(0.9 * TIME) + 1,
    "sway": -2 * np.sin(0.6 * TIME) - 0.5,
    "heave": 0.3 * np.sin(7 * TIME),
    "yaw_rate": 0.2 * np.sin(0.6 * TIME),
    **{"roll": 0.05 * np.sin(0.6 * TIME), "roll_rate": 0.03 * np.cos(0.6 * TIME)},
    **{"pitch": 0.05 * np.sin(0.9 * TIME), "pitch_rate": 0.045 * np.cos(0.9 * TIME)},
}
PULLED = {"sway": 4.0 * smooth(TIME - 1.0)}  # behind which a tilt at 0.5 deg/s is far at the change
QUICK = {"surge": 3 * np.sin(4 * TIME), "sway": 4 * np.sin(3 * TIME) + 4}  # a tilt that no mild acceleration follows


@pytest.mark.parametrize(
    ("algorithm", "before", "change", "drive"),
    [
        *(
            ("classical", "tilt.rate_limit_deg_s=0.5", {"tilt.rate_limit_deg_s": each}, PULLED)
            for each in (10, 30, 100)
        ),
        ("classical", "tilt.rate_limit_deg_s=3", {"tilt.rate_limit_deg_s": 100}, LIVELY),
        ("classical", "tilt.rate_limit_deg_s=100", {"sway.gain": 1.2}, QUICK),
        ("classical", "tilt.rate_limit_deg_s=100", {"preset": "utias"}, QUICK),
        ("classical", "tilt.rate_limit_deg_s=100", {"sway.cutoff_hz": 100, "roll.cutoff_hz": 100}, LIVELY),
        ("adaptive", "adaptation=0.02", {"roll.cutoff_hz": 10}, LIVELY),
        ("adaptive", "adaptation=0.02", {"pitch.cutoff_hz": 10}, LIVELY),
        ("adaptive", "adaptation=0.02", {"sway.gain": -10}, LIVELY),
        ("optimal", "restraint=1", {"roll.angle_deg": 1}, LIVELY),
        ("optimal", "restraint=1", {"pitch.angle_deg": 1}, LIVELY),
        ("optimal", "restraint=1", {"sway.gain": -10}, LIVELY),
        ("optimal", "restraint=1", {"sway.travel_m": 0.001}, LIVELY),
        *(("optimal", "tilt.rate_limit_deg_s=0.5", {"tilt.rate_limit_deg_s": each}, PULLED) for each in (10, 30, 100)),
        ("optimal", "tilt.rate_limit_deg_s=100", {"roll.weight": 0.1}, QUICK),
    ],
)
def test_changes_that_jolted_ask_for_no_more_than_the_settings_alone_and_a_fade(algorithm, before, change, drive):
    motion = motion_of(3300, **{name: smooth(TIME / 1.5) * values for name, values in drive.items()})
    change = {f"cueing.{key}": value for key, value in change.items()}
    cue, used = through(profile(algorithm, f"cueing.{before}"), motion, [(1400, change)])
    assert len(used) == 2
    share = shares(cue, used, motion)
    assert (share <= 0.75).all(), share


@pytest.mark.parametrize("algorithm", ["classical", "optimal"])
@pytest.mark.parametrize("limit", [1.0, 3.0, 10.0])
def test_a_tilt_whose_gain_is_turned_round_keeps_its_largest_rate_but_for_the_fade(algorithm, limit):
    """At the share s of the fade the two tilts are at most 2 s rates times the fade apart: (1 + 2 s w'(s)) rates."""
    before = profile(algorithm, f"cueing.tilt.rate_limit_deg_s={limit}", "cueing.roll.gain=0")
    motion = motion_of(5000, sway=4.0 * smooth(PERIOD_S * np.arange(5000)))
    cue, _ = through(before, motion, [(2500, {"cueing.sway.gain": -1.0})])
    rates = np.degrees(np.diff(cue["roll"])) / PERIOD_S
    s = np.linspace(0.0, 1.0, 1001)
    faded = 2500 + round(FADE_S / PERIOD_S) + 4
    assert np.abs(rates[2500:faded]).max() <= limit * (1 + 2 * (s * 30 * (s * (1 - s)) ** 2).max())
    assert np.abs(np.delete(rates, np.arange(2500, faded))).max() <= limit * 1.001
    assert np.abs(rates[faded:]).max() == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("algorithm", ["classical", "optimal"])
def test_a_reset_while_a_tilt_catches_up_begins_with_the_settings_as_they_are(algorithm):
    """From rest nothing lags behind, so nothing is eased: what follows is what the settings give alone."""
    before, change = profile(algorithm, "cueing.tilt.rate_limit_deg_s=3"), {"cueing.sway.gain": -1.0}
    motion = motion_of(2500, sway=4.0 * smooth(PERIOD_S * np.arange(2500)))
    stepper = motioncue.bind(before)
    steps(stepper, motion)
    stepper.retune(change)
    steps(stepper, motion[:200])
    stepper.reset()
    pull = motion_of(1000, sway=np.full(1000, 4.0))
    alone = motioncue.cue(overridden(before, change), pull)
    assert steps(stepper, pull).tobytes() == alone.tobytes()


# ---- one after the other ---------------------------------------------------------------------------------------------


def test_a_change_during_the_fade_of_another_waits_for_its_end_and_the_newest_counts():
    motion = motion_of(3300, **LIVELY)
    at, wait, overlap = 1000, 100, 3
    change, later, newest = ({"cueing.sway.gain": each} for each in (0.2, 5.0, 1.1))
    once, _ = through(profile("classical"), motion, [(at, change)])
    stepper = motioncue.bind(profile("classical"))
    sent = [steps(stepper, motion[:at])]
    stepper.retune(change)
    sent.append(steps(stepper, motion[at : at + wait]))
    stepper.retune(later)
    sent.append(steps(stepper, motion[at + wait : at + 2 * wait]))
    stepper.retune(newest)
    ends = at + overlap + math.ceil(FADE_S / PERIOD_S)
    sent.append(steps(stepper, motion[at + 2 * wait : ends + overlap - 1]))
    assert stepper.profile.cueing.sway.gain == 0.2
    sent.append(steps(stepper, motion[ends + overlap - 1 :]))
    assert stepper.profile.cueing.sway.gain == 1.1
    sent = np.concatenate(sent)
    assert_same_bits(sent[: ends + overlap], once[: ends + overlap])
    assert np.abs(sent["sway"][ends + 200 :] - once["sway"][ends + 200 :]).max() > 0.1


@pytest.mark.parametrize("algorithm", CONTROLS)
def test_nothing_that_is_asked_for_again_and_again_keeps_from_taking_hold(algorithm):
    """A slider that is dragged: a change every few ticks; each fade takes the newest."""
    motion = motion_of(6000, sway=2.0 * smooth(PERIOD_S / 1.5 * np.arange(6000)))
    plan = [(1000 + 10 * i, {"cueing.sway.gain": round(0.3 + 0.002 * i, 4)}) for i in range(100)]
    cue, used = through(profile(algorithm), motion, plan)
    expected = motioncue.cue(used[-1], motion)
    assert used[-1].cueing.sway.gain == pytest.approx(0.498)
    np.testing.assert_allclose(cue["roll"][-300:], expected["roll"][-300:], atol=2e-3)
    speeds = np.diff(cue["roll"][900:]) / PERIOD_S
    assert np.abs(np.diff(speeds)).max() / PERIOD_S < 18.0  # what a tilt at 3 deg/s asks for when it stops
