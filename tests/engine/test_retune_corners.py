"""Corner frequencies that change while it runs: the state goes on, shrunk, so that nothing rings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from test_tuning import FREE, PACE, PERIOD_S, short, steps
from test_washout import motion_of, rough_drive

import motioncue
from motioncue import cueing
from motioncue.engine.tick import Settings

FORCES = ("surge", "sway", "heave")
AXES = (*FORCES, "roll", "pitch", "yaw")


def profile(*overrides, fade_s=1.0):
    return motioncue.load_profile("ccd-dk-classical", FREE, f"supervisor.fade_s={fade_s}", *overrides)


def changed(before, after, motion, at):
    """Return the cues of a drive whose settings change at a tick."""
    stepper = motioncue.bind(before)
    first = steps(stepper, motion[:at])
    stepper.retune(after)
    return np.concatenate([first, steps(stepper, motion[at:])])


def largest_step(cue, name):
    moved = np.diff(cue[name])
    return np.abs(short(moved) if name in ("roll", "yaw") else moved).max()


# ---- nothing rings ---------------------------------------------------------------------------------------------------

frequencies = st.floats(-3.0, 2.0).map(lambda x: round(10.0**x, 5))  # [Hz], up to the largest that is allowed
dampings = st.floats(-0.3, 1.0).map(lambda x: round(10.0**x, 3))  # from 0.5 to the largest that is allowed


@st.composite
def corners(draw, order):
    """Return overrides of every corner frequency and damping ratio, and of gains."""
    keys = []
    for name in AXES:
        cutoff_hz = draw(frequencies)
        keys += [f"{name}.order={order}", f"{name}.gain={draw(st.floats(-2.0, 2.0))}"]
        keys += [f"{name}.cutoff_hz={cutoff_hz}", f"{name}.break_hz={cutoff_hz * draw(st.floats(0.01, 1.0))}"]
        keys += [f"{name}.damping={draw(dampings)}"]
    keys += [f"tilt.{name}_cutoff_hz={draw(frequencies)}" for name in ("surge", "sway")]
    return [f"cueing.{key}" for key in (*keys, f"tilt.damping={draw(dampings)}", "tilt.rate_limit_deg_s=1000")]


def excess(before, after, motion, at, fade_s):
    """Return for each channel its largest step in a tick, as a share of what is allowed.

    Allowed are three times what the settings alone make, and the fade of T from x0 with the speed v0 to x1 with v1
    along the weight w: w' (x1 - x0) for values, and for forces also the changes of 2 w' (v1 - v0) + w'' (x1 - x0) from
    tick to tick, less than 20 (x/T^2 + v/T) in T.  x and v are of all axes, since a platform that leans feels one along
    another.
    """
    alone = [motioncue.cue(each, motion) for each in (before, after)]
    cue = changed(before, after, motion, at)
    assert all(np.isfinite(cue[name]).all() for name in cue.dtype.names[:12])
    shares, fade = {}, PERIOD_S / fade_s
    travels = [each[f"{name}_displacement"] for name in FORCES for each in alone]
    x = sum(np.abs(each).max() for each in travels)
    v = sum(np.abs(np.diff(each)).max() for each in travels) / PERIOD_S
    for name in (*FORCES, *(f"{name}_displacement" for name in FORCES), "roll", "pitch", "yaw"):
        size = sum(np.abs(each[name]).max() for each in alone)
        allowed = 1e-12 + 3 * max(largest_step(each, name) for each in alone)
        allowed += fade * (15 / 8 * size + 20 * (x / fade_s**2 + v / fade_s) if name in FORCES else 3 * size)
        shares[name] = largest_step(cue, name) / allowed
    return shares


@settings(max_examples=60)
@given(
    data=st.data(), order=st.sampled_from([1, 2, 3]), fade_s=st.sampled_from([0.1, 0.3, 1.0]), seed=st.integers(0, 1000)
)
def test_any_change_of_corners_steps_no_more_than_the_settings_alone_and_the_fade(data, order, fade_s, seed):
    before, after = (profile(*data.draw(corners(order)), fade_s=fade_s) for _ in range(2))
    motion = rough_drive(np.random.default_rng(seed), 1200 + round(8 * fade_s / PERIOD_S))
    for name, share in excess(before, after, motion, 1200, fade_s).items():
        assert share <= 1.0, name


@pytest.mark.parametrize("hz", [1e-9, 1e-160, 5e-324])
@pytest.mark.parametrize("key", ["roll.cutoff_hz", "tilt.surge_cutoff_hz", "tilt.sway_cutoff_hz"])
def test_a_frequency_as_good_as_none_is_reached_and_left_without_a_step(key, hz):
    """Its square is less than the smallest number."""
    stepper = motioncue.bind(profile("cueing.heave.order=2", fade_s=0.1))
    motion = motion_of(4000, surge=1.0, sway=-1.0)
    sent = [steps(stepper, motion[:1000])]
    for value, rows in ((hz, motion[1000:2500]), (0.3, motion[2500:])):
        stepper.retune({f"cueing.{key}": value})
        sent.append(steps(stepper, rows))
    cue = np.concatenate(sent)
    for name in FORCES:  # fades of 0.1 s, each of no more than g or the pull
        assert largest_step(cue, name) < 15 / 8 * 9.81 * PERIOD_S / 0.1, name


@pytest.mark.parametrize(
    ("algorithm", "key", "value"),
    [
        ("adaptive", "surge.cutoff_hz", 10.0),
        ("adaptive", "sway.cutoff_hz", 10.0),
        ("optimal", "surge.travel_m", 0.001),
        ("optimal", "restraint", 100.0),
    ],
)
def test_far_firmer_settings_of_other_algorithms_step_no_more_than_they_do_alone_and_the_fade(algorithm, key, value):
    at, time = 1500, PERIOD_S * np.arange(3000)
    waves = {"surge": 2 * np.sin(0.9 * time) + 1, "sway": -2 * np.sin(0.6 * time) - 0.5}
    motion = motion_of(3000, **waves, yaw_rate=0.2 * np.sin(0.6 * time))
    before = motioncue.load_profile(
        "ccd-dk", FREE, f"cueing.algorithm={algorithm}", "cueing.preset=small", "supervisor.fade_s=1.0"
    )
    cue = changed(before, f"cueing.{key}={value}", motion, at)
    after = motioncue.load_profile(
        "ccd-dk", FREE, f"cueing.algorithm={algorithm}", "cueing.preset=small", f"cueing.{key}={value}"
    )
    alone = [motioncue.cue(before, motion), motioncue.cue(after, motion)]
    for name in FORCES:
        size = sum(np.abs(each[name]).max() for each in alone)
        allowed = 1e-6 + 3 * max(largest_step(each, name) for each in alone) + 15 / 8 * PACE * size
        assert largest_step(cue, name) <= allowed, name


@pytest.mark.parametrize("every", [3, 5, 20])
def test_a_frequency_that_rises_in_many_small_changes_does_not_ring(every):
    time = PERIOD_S * np.arange(3000)
    motion = motion_of(3000, surge=2 * np.sin(0.9 * time) + 1, sway=-2 * np.sin(0.6 * time))
    before = motioncue.load_profile("ccd-dk", FREE, "cueing.algorithm=adaptive", "cueing.preset=small")
    stepper = motioncue.bind(before)
    sent, done, hz = [steps(stepper, motion[:1500])], 1500, before.cueing.surge.cutoff_hz
    while hz < 5.0:
        hz *= 1.5
        stepper.retune({"cueing.surge.cutoff_hz": hz})
        sent.append(steps(stepper, motion[done : done + every]))
        done += every
    cue = np.concatenate([*sent, steps(stepper, motion[done:])])
    alone = motioncue.cue(before, motion)
    x = np.abs(alone["surge_displacement"]).max()
    v = np.abs(np.diff(alone["surge_displacement"])).max() / PERIOD_S
    # As for changes on the way of others, above; the force is 3 m/s^2 before and after.
    assert largest_step(cue, "surge") <= 2 * largest_step(alone, "surge") + PACE * 2 * (2 * 3.0 + 20 * (x + v))


# ---- the state -------------------------------------------------------------------------------------------------------


def smooth(x):
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10 - 15 * x + 6 * x * x)


class Section:
    """x'' = f - 2 z w x' - w^2 x by the trapezoidal rule, prewarped at w; integrators stand half a tick before x."""

    def __init__(self, omega, damping, first):
        self.stiffness, self.k = omega**2, np.tan(omega * PERIOD_S / 2) / omega
        self.damper = 2 * damping * omega + self.stiffness * self.k
        self.v, self.x = -self.k * first, 0.0

    def step(self, force):
        a = (force - self.damper * self.v - self.stiffness * self.x) / (1 + self.damper * self.k)
        v = self.v + self.k * a
        x = self.x + self.k * v
        self.v, self.x = v + self.k * a, x + self.k * v
        return x


@pytest.mark.parametrize(
    ("old_hz", "new_hz", "dampings"),
    [(0.1, 100.0, (1.0, 1.0)), (0.1, 0.4, (0.5, 0.5)), (2.0, 0.01, (0.7, 0.7)), (0.3, 0.3, (0.5, 5.0))],
)
def test_a_state_shrinks_until_spring_and_damper_pull_no_harder_and_both_filters_run_for_a_fade(
    old_hz, new_hz, dampings
):
    keys = [f"cueing.surge.damping={dampings[0]}", "cueing.tilt.surge_gain=0"]
    before = profile(f"cueing.surge.cutoff_hz={old_hz}", *keys)
    at, overlap = 700, 3
    motion = motion_of(4000, surge=np.sin(np.linspace(0.0, 20.0, 4000)) + 0.5)
    cue = changed(before, {"cueing.surge": {"cutoff_hz": new_hz, "damping": dampings[1]}}, motion, at)
    forces = 0.6 * motion["surge"]
    old, new = (Section(2 * np.pi * hz, z, forces[0]) for hz, z in zip((old_hz, new_hz), dampings, strict=True))
    rows = []
    for i, force in enumerate(forces):
        if i == at:
            share = min(1.0, old.stiffness / new.stiffness)
            new.x, new.v = share * old.x, min(old.damper / new.damper, np.sqrt(share), 1.0) * old.v
        weight = smooth((i - at - overlap + 1) * PACE)
        rows.append((1 - weight) * old.step(force) + weight * new.step(force))
    assert cue["surge_displacement"] == pytest.approx(np.array(rows), abs=1e-9 * np.abs(rows).max())


@pytest.mark.parametrize(("old", "new"), [("classical", 100.0), ("adaptive", 10.0)])
def test_a_swing_without_input_asks_for_no_more_under_a_firmer_spring(old, new):
    """With hardly any damping, a displacement that went on as it is would swing with (new/old)^2 of the force."""
    keys = ["cueing.surge.cutoff_hz=0.5", "cueing.surge.damping=0.1", "cueing.surge.gain=1"]
    before = motioncue.load_profile("ccd-dk", FREE, f"cueing.algorithm={old}", *keys)
    push = np.where(PERIOD_S * np.arange(4000) < 2.0, 2.0, 0.0)
    cue = changed(before, f"cueing.surge.cutoff_hz={new}", motion_of(4000, surge=push), 900)
    accelerations = np.abs(np.diff(cue["surge_displacement"], 2)) / PERIOD_S**2
    assert np.abs(cue["surge_displacement"][900]) > 0.03
    assert accelerations[900:].max() <= 2 * accelerations[700:900].max()


def test_at_the_end_of_the_fade_the_settings_hold():
    quick = ("cueing.heave.order=2", "cueing.tilt.rate_limit_deg_s=1000")
    before = profile(*quick)
    after = profile(*quick, "cueing.surge.cutoff_hz=2", "cueing.tilt.surge_cutoff_hz=3", "cueing.yaw.damping=1.5")
    motion = rough_drive(np.random.default_rng(3), 12_000)
    cue, right = changed(before, after, motion, 800), motioncue.cue(after, motion)
    for name in cue.dtype.names[:12]:  # the filters have forgotten what was before
        np.testing.assert_allclose(cue[name][-3000:], right[name][-3000:], atol=1e-5, err_msg=name)
    assert np.abs(cue["surge"][900] - right["surge"][900]) > 1e-3


def designed(settings):
    return Settings(cueing.design(settings.cueing, 1 / PERIOD_S), period_ns=3_000_030)


def test_the_same_corners_again_leave_the_fade_as_it_is():
    before, after = profile(), profile("cueing.surge.cutoff_hz=20", "cueing.pitch.cutoff_hz=0.01")
    motion = rough_drive(np.random.default_rng(4), 2500)
    sent = []
    for again in (False, True):
        stepper = motioncue.engine.embed.Stepper(designed(before), tune=lambda change, post: post(change))
        out = [steps(stepper, motion[:500])]
        stepper.retune(designed(after))
        out.append(steps(stepper, motion[500:700]))
        if again:
            stepper.retune(designed(after))
        out.append(steps(stepper, motion[700:]))
        sent.append(np.concatenate(out).tobytes())
    assert sent[0] == sent[1]


def test_a_reset_during_the_fade_begins_with_the_new_settings():
    after = profile("cueing.surge.cutoff_hz=20", "cueing.tilt.sway_cutoff_hz=5")
    motion = rough_drive(np.random.default_rng(5), 1500)
    stepper = motioncue.bind(profile())
    steps(stepper, motion[:600])
    stepper.retune(after)
    steps(stepper, motion[600:800])
    stepper.reset()
    assert_same_bits(steps(stepper, motion[800:]), motioncue.cue(after, motion[800:]))


@settings(max_examples=30)
@given(data=st.data(), order=st.sampled_from([2, 3]), waits=st.lists(st.integers(0, 250), min_size=2, max_size=12))
def test_changes_during_the_fades_of_others_make_no_step(data, order, waits):
    choice = [profile(*data.draw(corners(order)), fade_s=0.3) for _ in range(3)]
    motion = motion_of(800 + sum(waits) + 1200, surge=1.0, sway=-2.0, yaw_rate=0.2)
    stepper = motioncue.bind(choice[0])
    sent, done = [steps(stepper, motion[:800])], 800
    for i, wait in enumerate(waits):
        stepper.retune(choice[(i + 1) % 3])
        sent.append(steps(stepper, motion[done : done + wait]))
        done += wait
    sent = np.concatenate([*sent, steps(stepper, motion[done:])])
    alone = [motioncue.cue(each, motion) for each in choice]
    travels = [each[f"{name}_displacement"] for name in FORCES for each in (*alone, sent)]
    x = sum(np.abs(each).max() for each in travels)
    v = sum(np.abs(np.diff(each)).max() for each in travels) / PERIOD_S
    fade = PERIOD_S / 0.3
    for name in FORCES:  # a steady pull: what moves are fades, and travel that comes in
        assert np.isfinite(sent[name]).all()
        size = sum(np.abs(each[name][1:]).max() for each in (*alone, sent))
        allowed = 2 * max(largest_step(each, name) for each in alone)
        assert largest_step(sent[1:], name) <= allowed + fade * (size + 20 * (x / 0.3**2 + v / 0.3)) * 2, name
