"""Bunches that are not regular make no jolt either: their sizes change, frames and bunches are late, lost, doubled,
reversed, a bunch pauses in its middle, the source's rate drifts, or ticks fall between any two frames of a bunch.
"""

import numpy as np
import pytest
from delivery_rig import ALL, PERIOD, deliver, worst
from test_delivery import swinging
from test_delivery_regular import ANY_RATE, DELAY_S, LATER_S, UNSURE

from motioncue.bridge.bridge import KINDS

LENGTH_S = 6.0
TICK_S = 1e-9 * PERIOD


def bunched(taken, sizes, apart_s):
    """Return the arrivals [s] of frames in bunches of these sizes in turn, and the number of each frame's bunch."""
    ends = np.cumsum(np.resize(sizes, len(taken))) - 1
    bunch = np.searchsorted(ends, np.arange(len(taken)))
    arrivals = taken[np.minimum(ends[bunch], len(taken) - 1)]
    apart_s = min(apart_s, 0.9 * np.diff(taken).min())  # else frames would come later and later
    for i in range(1, len(arrivals)):
        arrivals[i] = max(arrivals[i], arrivals[i - 1] + apart_s)
    return arrivals, bunch


def even(rate_hz):
    return np.arange(0.0, LENGTH_S, 1.0 / rate_hz)


def sizes_change(rng, rate_hz, size, apart_s):
    sizes = [8, 8, 3, 8] if rng.uniform() < 0.3 else rng.integers(1, 17, rng.integers(2, 6))
    return even(rate_hz), bunched(even(rate_hz), sizes, apart_s)[0], rate_hz


def one_late_then_two_at_once(rng, rate_hz, size, apart_s):
    sizes = [*[size] * rng.integers(2, 8), 2 * size]
    return even(rate_hz), bunched(even(rate_hz), sizes, apart_s)[0], rate_hz


def reversed_in_bunches(rng, rate_hz, size, apart_s):
    """Only the newest of a bunch is followed, so frames come as seldom as bunches do."""
    arrivals, bunch = bunched(even(rate_hz), [size], apart_s)
    return even(rate_hz)[np.lexsort((-even(rate_hz), bunch))], arrivals, rate_hz / size


def twice(rng, rate_hz, size, apart_s):
    often = np.where(rng.uniform(size=len(even(rate_hz))) < rng.choice([0.05, 1.0]), 2, 1)
    return np.repeat(even(rate_hz), often), np.repeat(bunched(even(rate_hz), [size], apart_s)[0], often), rate_hz


def frames_lost(rng, rate_hz, size, apart_s):
    kept = (rng.uniform(size=len(even(rate_hz))) > rng.choice([0.02, 0.1, 0.3])) | (even(rate_hz) < 0.5)
    return even(rate_hz)[kept], bunched(even(rate_hz), [size], apart_s)[0][kept], rate_hz


def bunches_lost(rng, rate_hz, size, apart_s):
    arrivals, bunch = bunched(even(rate_hz), [size], apart_s)
    kept = (rng.uniform(size=bunch[-1] + 1) > rng.choice([0.05, 0.3]))[bunch] | (even(rate_hz) < 0.5)
    return even(rate_hz)[kept], arrivals[kept], rate_hz


def rate_drifts(rng, rate_hz, size, apart_s):
    slow, fast = sorted([rate_hz, np.clip(rate_hz * rng.uniform(0.5, 2.0), 20.0, 500.0)])
    omega, phase, times = rng.uniform(0.3, 6.0), rng.uniform(0.0, 6.0), [0.0]
    while times[-1] < LENGTH_S:
        times.append(times[-1] + 1.0 / (slow + (fast - slow) * (0.5 + 0.5 * np.sin(omega * times[-1] + phase))))
    return np.array(times), bunched(np.array(times), [size], apart_s)[0], slow


def pause_inside(rng, rate_hz, size, apart_s):
    arrivals, bunch = bunched(even(rate_hz), [size], apart_s)
    place, pause_s = (
        np.arange(len(bunch)) - bunch * size,
        rng.uniform(0.002, max(0.003, min(0.05, 0.8 * size / rate_hz))),
    )
    some = (rng.uniform(size=bunch[-1] + 1) < rng.choice([0.2, 1.0]))[bunch]
    late = arrivals + pause_s * ((place >= rng.integers(0, size)) & some)
    return even(rate_hz), np.maximum.accumulate(late), rate_hz


def tick_inside(rng, rate_hz, size, apart_s):
    """Bunches as often as every so many ticks, so that a tick always comes between the same two frames."""
    every_s = rng.integers(2, 40) * TICK_S
    size = int(np.clip(round(rate_hz * every_s), max(1, np.ceil(20.0 * every_s)), 500.0 * every_s))
    taken, apart_s = even(size / every_s), rng.choice([1e-4, 5e-4, 1e-3])
    at = np.arange(len(taken))
    arrivals = (at // size + 1) * every_s + (at % size - rng.integers(0, size + 1) + 0.5) * apart_s + TICK_S
    return taken, np.maximum.accumulate(np.maximum(arrivals, taken)), size / every_s


WAYS = {
    way.__name__: way
    for way in (
        *(sizes_change, one_late_then_two_at_once, reversed_in_bunches, twice, frames_lost, bunches_lost),
        *(rate_drifts, pause_inside, tick_inside),
    )
}


def largest_step(way, source, bridge, seed):
    """Return the largest step of a drawn delivery, over the bound."""
    rng = np.random.default_rng([seed, *way.encode()])
    rate_hz = np.exp(rng.uniform(np.log(20.0), np.log(100.0 if source == "live-for-speed" else 500.0)))  # as it sends
    taken, arrivals, slowest_hz = WAYS[way](rng, rate_hz, int(rng.integers(1, 17)), rng.choice([0.0, 5e-4, 2e-3]))
    name, before = f"{source} irregularly", ALL[source]
    order = np.unique(taken)
    numbers = np.searchsorted(order, taken) if way == "rate_drifts" else np.round(taken / np.diff(order).min())
    ALL[name] = before._replace(rate_hz=slowest_hz, packets=lambda states, _: before.packets(states, numbers))
    overrides = [f"source.options.simulink_time_s={np.diff(order).min()}"] * (source == "beamng-simulink")
    arrivals = arrivals + DELAY_S + rng.uniform(0.0, 0.003)
    run = deliver(swinging(rng.uniform(0.0, 6.0)), name, bridge, taken, arrivals, *overrides)
    return worst(run, name, bridge).step


def ways_of(source):
    """Return how its frames may come: a stream loses and swaps none, and what counts its steps has one rate."""
    kept = ("sizes_change", "one_late_then_two_at_once", "rate_drifts", "pause_inside", "tick_inside")
    names = kept if ALL[source].stream else tuple(WAYS)
    return [name for name in names if not (source == "beamng-simulink" and name == "rate_drifts")]


def most(source):
    """Return the largest step that is allowed, over the bound."""
    return 2.0 if source in UNSURE else 1.0


CASES = [(way, source) for source in ANY_RATE for way in ways_of(source)]


@pytest.mark.grid
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize(("way", "source"), CASES)
def test_bunches_that_are_not_regular_make_no_jolt(bridge, way, source):
    assert largest_step(way, source, bridge, 1) <= most(source)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_dozen_for_each_source_and_bridge_make_no_jolt(way):
    """`pytest -s` prints the largest step of sources that stamp frames, of those that derive from them, of others."""
    found = {}
    for source in [source for name, source in CASES if name == way]:
        kind = "others" if source in UNSURE else "derived" if source in LATER_S else "stamped"
        steps = {(bridge, seed): largest_step(way, source, bridge, seed) for bridge in KINDS for seed in range(12)}
        worst_of = max(steps, key=steps.get)
        found[kind] = max(found.get(kind, (0.0,)), (steps[worst_of], source, *worst_of))
        assert steps[worst_of] <= most(source), (source, worst_of)
    print(f"\n{way}:", *(f"{kind} {row[0]:.2f} {row[1:]}" for kind, row in found.items()), end="")
