"""The lap before: what is told of the next seconds is what was felt there, at the pace of now; and never does harm."""

import numpy as np
import pytest
from test_feeding import fed

from motioncue.core.channels import AHEAD_S, MOTION_DTYPE
from motioncue.cueing.senses import felt_by_pose, felt_in_car
from motioncue.engine.assembly import load_profile
from motioncue.engine.replay import first_difference
from motioncue.scoring.scene import poses_of

RATE_HZ = 50.0
RADIUS, SPEED = 60.0, 15.0  # [m], [m/s]: a lap of 25 s
LENGTH = 2.0 * np.pi * RADIUS
ROW = np.dtype([("motion", MOTION_DTYPE), ("position", "f8", 3)])
CHANNELS = MOTION_DTYPE.names[:11]
PACKET = {
    "size": ROW.itemsize,
    "world": ["north", "east", "down"],
    "fields": [
        *({"offset": 8 * i, "type": "f8", "channel": name, "limit": 1e6} for i, name in enumerate(CHANNELS)),
        {"offset": 96, "type": "f8", "channel": "time"},
        *({"offset": 104 + 8 * i, "type": "f8", "channel": f"position_{name}"} for i, name in enumerate("xyz")),
    ],
}


def felt_at(way):
    """Return what is felt along the circle at a speed of 15 m/s, to the right: waves of a length of 94 and 126 m."""
    rows = np.zeros(np.shape(way), MOTION_DTYPE)
    rows["surge"] = 2.0 * np.sin(2.0 * np.pi * way / LENGTH * 3.0)
    rows["sway"] = 3.0 * np.sin(2.0 * np.pi * way / LENGTH * 4.0 + 1.0)
    rows["roll"] = 0.03 * np.cos(2.0 * np.pi * way / LENGTH * 3.0)
    rows["roll_rate"] = -0.03 * 6.0 * np.pi / LENGTH * SPEED * np.sin(2.0 * np.pi * way / LENGTH * 3.0)
    rows["yaw_rate"] = SPEED / RADIUS
    return rows


def rough_at(way):
    """Return what is felt on a way that nobody foresees who was not there: at random, another every 12 m or so."""
    rows, knots = felt_at(way), np.random.default_rng(3).normal(size=(2, 32))
    for name, values in zip(("surge", "sway"), knots, strict=True):
        rows[name] = 2.0 * np.interp(way / LENGTH * 31.0 % 31.0, np.arange(32), [*values[:31], values[0]])
    return rows


def driven(*speeds, beside=0.0, sign=1.0, backwards=False, felt=felt_at):
    """Return the frames of a circle, a lap at each speed: what is felt on the way, times (v / 15 m/s)^2; from lap 2 on
    `beside` the first one, with forces times `sign`, or the other way round."""
    ways, paces, laps = [0.0], [speeds[0] / SPEED], [0]
    while ways[-1] < LENGTH * len(speeds) - 1.0:
        laps.append(int(ways[-1] / LENGTH))
        paces.append(paces[-1] + np.clip(speeds[laps[-1]] / SPEED - paces[-1], -0.01, 0.01))
        ways.append(ways[-1] + paces[-1] * SPEED / RATE_HZ)
    way, pace, lap = (np.array(each) for each in (ways, paces, laps))
    rows = np.zeros(len(way), ROW)
    rows["motion"] = felt(way)
    for name in ("surge", "sway"):
        rows["motion"][name] *= pace**2 * np.where(lap > 0, sign, 1.0)
    for name in ("roll_rate", "yaw_rate"):
        rows["motion"][name] *= pace
    angle = way / RADIUS
    rows["motion"]["yaw"] = angle + 0.5 * np.pi + np.pi * (backwards & (lap > 0))
    rows["motion"]["speed"], rows["motion"]["frame_time"] = pace * SPEED, np.arange(len(way)) / RATE_HZ
    radius = RADIUS + np.clip((way - LENGTH) / 30.0, 0.0, 1.0) * beside
    rows["position"][:, 0], rows["position"][:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    return rows, way, lap


def run(rows, *overrides, frames=None):
    """Return a pipeline that has taken the frames."""
    tables = {"source": {"packet": PACKET}, "platform": {"preset": "box-large"}}
    profile = load_profile("program-dk", "cueing.algorithm=predictive", "limits=none", *overrides, tables)
    return fed(profile, [row.tobytes() for row in rows[:frames]], RATE_HZ)[0]


@pytest.mark.parametrize("beside", [0.0, 6.0, -6.0])
def test_what_is_told_is_what_was_felt_there(beside):
    """Straight lines between the rows are the nearest to sines of 6 s and more: up to two seconds, a tenth off."""
    rows, way, _ = driven(SPEED, SPEED, beside=beside)
    for frames in (1700, 2000, 2300):
        told = run(rows, frames=frames).emitter.along.newest()
        expected = felt_at(way[frames - 1] + SPEED * np.array(AHEAD_S))
        for name, size in (("surge", 2.0), ("sway", 3.0), ("roll", 0.03), ("roll_rate", 0.0225), ("yaw_rate", 0.25)):
            np.testing.assert_allclose(told[name][:5], expected[name][:5], atol=0.12 * size, err_msg=name)
    assert run(rows, frames=1200).emitter.along.newest() is None  # the first lap


@pytest.mark.parametrize("pace", [0.8, 1.2])
def test_what_is_told_is_scaled_by_the_present_pace(pace):
    """Forces by the square of the speeds' ratio, rates by the ratio, gravity not at all; the way as far as it goes."""
    rows, way, _ = driven(SPEED, pace * SPEED)
    frames = 1250 + 500
    told = run(rows, frames=frames).emitter.along.newest()
    expected = felt_at(way[frames - 1] + pace * SPEED * np.array(AHEAD_S))
    expected["surge"] *= pace**2
    expected["surge"] -= SPEED * (pace - 1.0) / 2.0  # the speeds of now and then are expected to meet within seconds
    expected["sway"] *= pace**2
    expected["roll_rate"] *= pace
    expected["yaw_rate"] *= pace
    for name, size in (("surge", 2.0), ("sway", 3.0), ("roll", 0.03), ("roll_rate", 0.0225), ("yaw_rate", 0.25)):
        np.testing.assert_allclose(told[name][:3], expected[name][:3], atol=0.17 * size, err_msg=name)


def error(pipeline, rows, since, until):
    """Return what is missed on the platform from a time to another [m/s^2]: of surge and sway, as they act."""
    ticks = pipeline.emitter.trace
    hz = 1e9 / 3_000_030
    at = 1e-9 * (ticks["deadline"] - 1_000_000_000)
    car = felt_in_car(rows["motion"])
    felt = felt_by_pose(poses_of(ticks["cue"]), hz)
    time = rows["motion"]["frame_time"]
    missed = [np.interp(at, time, car[:, k]) - felt[:, k] for k in range(2)]
    part = (at > since) & (at < until)
    return float(np.sqrt(np.mean(np.square(missed)[:, part])))


def test_the_second_lap_is_felt_better_than_without_and_the_first_alike():
    rows, _, _ = driven(SPEED, 1.05 * SPEED, felt=rough_at)
    learned, plain = run(rows), run(rows, "cueing.laps=false")
    first = learned.emitter.trace["deadline"] < 25_000_000_000
    assert first_difference(learned.emitter.trace[first], plain.emitter.trace[first]) is None
    assert error(learned, rows, 32.0, 47.0) < 0.8 * error(plain, rows, 32.0, 47.0)
    again = run(rows)
    assert first_difference(learned.emitter.trace, again.emitter.trace) is None


@pytest.mark.parametrize("lie", [{"sign": -1.0}, {"backwards": True}], ids=["other signs", "the other way round"])
def test_a_lap_that_is_another_does_no_harm(lie):
    rows, _, _ = driven(SPEED, SPEED, **lie, felt=rough_at)
    learned, plain = run(rows), run(rows, "cueing.laps=false")
    assert error(learned, rows, 26.0, 49.0) < 1.03 * error(plain, rows, 26.0, 49.0)


@pytest.mark.parametrize("where", [0.0, 40.0, np.nan])
def test_positions_that_say_nothing_change_no_bit(where):
    """Of a source that sends none, a constant, or no number, which is refused as a frame."""
    rows, _, _ = driven(SPEED, SPEED)
    rows["position"] = where
    learned, plain = run(rows), run(rows, "cueing.laps=false")
    assert first_difference(learned.emitter.trace, plain.emitter.trace) is None
    assert learned.emitter.along.newest() is None


def test_after_a_jump_the_place_is_found_again():
    rows, way, _ = driven(SPEED, SPEED, SPEED)
    cut = np.delete(rows, slice(1500, 1800))  # 6 s, 90 m
    cut["motion"]["frame_time"] = np.arange(len(cut)) / RATE_HZ
    ways = np.delete(way, slice(1500, 1800))
    assert run(cut, frames=1500).emitter.along.newest() is not None
    for frames in (1506, 1700):
        told = run(cut, frames=frames).emitter.along.newest()
        expected = felt_at(ways[frames - 1] + SPEED * np.array(AHEAD_S))
        np.testing.assert_allclose(told["sway"][:5], expected["sway"][:5], atol=0.4)


def test_of_what_was_not_driven_yet_nothing_is_told():
    """A lap that ended after ten seconds tells of its rest only."""
    rows, _, _ = driven(SPEED, SPEED)
    part = np.concatenate([rows[:1000], rows[1250:1600]])  # a teleport back to the start, then 7 s
    part["motion"]["frame_time"] = np.arange(len(part)) / RATE_HZ
    told = run(part).emitter.along.newest()
    assert np.isfinite(told["surge"]).all()
    late = np.concatenate([rows[:1000], rows[1250:2150]])  # 2 s before the end of what is known
    late["motion"]["frame_time"] = np.arange(len(late)) / RATE_HZ
    told = run(late).emitter.along.newest()
    np.testing.assert_array_equal(np.isfinite(told["surge"]), np.array(AHEAD_S) < 2.1)
