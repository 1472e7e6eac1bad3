"""Ticks of a recording side by side have the bits of one step after the other, on every kind of machine."""

import numpy as np
import pytest
from same_bits import assert_same_bits

from motioncue import load_profile
from motioncue.core import interfaces
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.cueing import design

RATE_HZ = 1e9 / 3_000_030
SETTINGS = {
    "simona": [],
    "utias": ["cueing.preset=utias"],
    "orders and limits": [
        *("cueing.surge.order=1", "cueing.sway.order=2", "cueing.heave.order=3", "cueing.roll.order=3"),
        *("cueing.roll.break_hz=0.02", "cueing.surge.limit_m_s2=1", "cueing.pitch.limit_deg_s=7"),
        *("cueing.tilt.rate_limit_deg_s=2", "cueing.sway.gain=-0.8"),
    ],
    "tilt": [
        *("cueing.tilt.surge_gain=0.9", "cueing.tilt.sway_limit_m_s2=0.5"),
        "cueing.tilt.acceleration_limit_deg_s2=20",
    ],
    "texture": ["cueing.texture.sway_gain=0.5", "cueing.texture.pitch_gain=1", "cueing.texture.limit_m=0.002"],
    "polynomials": [
        *("cueing.sway.scaling.largest_m_s2=4", "cueing.sway.scaling.share=0.4"),
        *("cueing.roll.scaling.largest_deg_s=9", "cueing.roll.scaling.share=0.8"),
    ],
    "laws": [
        *("cueing.tilt.law=linear", "cueing.tilt.pitch_share=0.3", "cueing.tilt.roll_share=0"),
        "cueing.turned_by=platform",
    ],
    "held": ["cueing.filters=hold", "cueing.heave.order=3", "cueing.heave.break_hz=0.02", "cueing.texture.roll_gain=1"],
    "limits after the turn": [
        *("cueing.limited=after_turn", "cueing.surge.limit_m_s2=1", "cueing.heave.limit_m_s2=2"),
        *("cueing.yaw.limit_deg_s=7", "cueing.turned_by=platform"),
    ],
    "held bounded angles": ["cueing.filters=hold", "cueing.yaw.angle_limit_deg=20", "cueing.roll.order=1"],
    "bounded angles": ["cueing.yaw.angle_limit_deg=20", "cueing.pitch.angle_limit_deg=5"],
}
DRIVES = {
    "calm": {"force": 2.0, "angle": 0.3, "rate": 0.3},
    "upside down and tumbling": {"force": 20.0, "angle": 20.0, "rate": 8.0},
    "beyond a million radians": {"force": 5.0, "angle": 1e8, "rate": 1.0},
    "hardly moving": {"force": 1e-300, "angle": 1e-310, "rate": 1e-305},
    "at rest": {"force": 0.0, "angle": 0.0, "rate": 0.0},
}


def drive(rng, n, force, angle, rate):
    """Return a drive that jumps every twenty ticks."""
    motion = np.zeros(n, MOTION_DTYPE)
    for size, names in (
        (force, ("surge", "sway", "heave")),
        (angle, ("roll", "pitch", "yaw")),
        (rate, ("roll_rate", "pitch_rate", "yaw_rate")),
    ):
        for name in names:
            motion[name] = size * np.repeat(rng.normal(size=n // 20 + 1), 20)[:n]
    motion["speed"] = rng.normal(size=n)
    motion["engine_speed"] = np.where(rng.random(n) < 0.5, np.nan, 3000.0)
    motion["time"] = np.arange(n) * 3_000_030
    return motion


def stepped(algorithm, motion):
    cue = np.zeros(len(motion), CUE_DTYPE)
    for i in range(len(motion)):
        algorithm.step(motion[i : i + 1], cue[i : i + 1])
    return cue


def bits(cue):
    """Return the bits of cues, with all NaNs alike, because their bits are not defined."""
    cue = cue.copy()
    for name in CUE_DTYPE.names[:-1]:
        cue[name][np.isnan(cue[name])] = np.nan
    return cue.tobytes()


@pytest.fixture(params=interfaces.machines())
def machine(request):
    interfaces.choose_machine(request.param)
    yield request.param
    interfaces.choose_machine(interfaces.machines()[0])


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", DRIVES)
def test_process_gives_the_bits_of_step(machine, rng, settings, kind):
    cueing = load_profile("ccd-dk-classical", *SETTINGS[settings]).cueing
    motion = drive(rng, 700, **DRIVES[kind])
    cue = design(cueing, RATE_HZ).process(motion)
    assert_same_bits(cue, stepped(design(cueing, RATE_HZ), motion))
    assert np.isfinite(cue["surge"]).all()
    assert (np.ptp(cue["pitch"]) > 0) == (kind != "at rest")


@pytest.mark.parametrize("sizes", [(1,) * 40, (31, 32, 33, 64), (3, 100, 2, 65), (0, 500, 0, 7)], ids=str)
def test_any_chunking_gives_the_same_bits(machine, rng, sizes):
    cueing = load_profile("ccd-dk-classical").cueing
    motion = drive(rng, sum(sizes), **DRIVES["upside down and tumbling"])
    algorithm = design(cueing, RATE_HZ)
    ends = np.cumsum(sizes)
    chunks = [algorithm.process(motion[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    assert_same_bits(np.concatenate(chunks), stepped(design(cueing, RATE_HZ), motion))


def test_process_and_step_take_turns_and_start_again_after_reset(machine, rng):
    cueing = load_profile("ccd-dk-classical").cueing
    motion = drive(rng, 300, **DRIVES["calm"])
    algorithm, other = design(cueing, RATE_HZ), design(cueing, RATE_HZ)
    for _ in range(2):
        found = [algorithm.process(motion[:100]), stepped(algorithm, motion[100:150]), algorithm.process(motion[150:])]
        assert_same_bits(np.concatenate(found), stepped(other, motion))
        algorithm.reset()
        other.reset()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.7e308, -1.7e308])
@pytest.mark.parametrize("name", ["surge", "roll", "pitch", "yaw_rate"])
def test_an_invalid_motion_spoils_the_same_cues(machine, rng, name, value):
    cueing = load_profile("ccd-dk-classical").cueing
    motion = drive(rng, 200, **DRIVES["calm"])
    motion[name][77] = value
    cue = design(cueing, RATE_HZ).process(motion)
    assert_same_bits(cue, stepped(design(cueing, RATE_HZ), motion))
    assert np.isfinite(cue["surge"][:77]).all()


def test_machines_are_named_best_first_and_the_last_is_any():
    names = interfaces.machines()
    assert names[-1] == "any"
    assert [name for name in ("avx512", "avx2", "any") if name in names] == names
    with pytest.raises(ValueError, match="in list"):
        interfaces.choose_machine("mmx")
