"""An hour of driving with ten thousand faults: nothing is lost, nothing grows, every tick keeps its bounds."""

import gc
import os
import sys
import tracemalloc

import numpy as np
import pytest
from trouble_helpers import BOUNDED, START, Bench, Checker, driven

from motioncue.engine.pipeline import TRANSITIONS
from motioncue.safety.supervisor import State
from motioncue.sources.city_car_driving.packets import FRAME

pytestmark = pytest.mark.search

FRAME_NS = 16_666_667
FAULTS = 10_000
HOUR_S = 3600


def resident():
    """Return the memory this process occupies [bytes]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Hour:
    """An hour of driving with ten thousand faults."""

    def __init__(self, bench, seed):
        self.bench = bench.connect()
        self.rng = np.random.default_rng(seed)
        self.frames = [frame.tobytes() for frame in driven("turns", 60)]
        self.place = 0
        self.sessions = 1
        self.lost = 0
        self.slept = 0
        self.injected = 0

    def frame(self):
        """Let the next frame arrive, a frame later."""
        bench = self.bench
        bench.run_to(max(bench.now + FRAME_NS, bench.clock.now_ns()))
        bench.feed(self.frames[self.place % len(self.frames)])
        self.place += 1

    def fault(self):
        """Inject one."""
        rng, bench = self.rng, self.bench
        self.injected += 1
        kind = rng.integers(10)
        if kind == 0:  # lost frames
            self.place += int(rng.integers(1, 60))
        elif kind == 1:  # silence
            bench.run(float(rng.uniform(0, 0.4)))
        elif kind == 2:  # another place
            self.place += int(rng.integers(0, 3000))
        elif kind == 3:  # a malformed frame
            data = bytearray(self.frames[self.place % len(self.frames)])
            offset = int(rng.integers(3, 99))
            data[offset : offset + 4] = rng.bytes(4)
            bench.feed(bytes(data))
        elif kind == 4:  # a value that is not a number
            data = bytearray(self.frames[self.place % len(self.frames)])
            offset, dtype = FRAME.where("acceleration", int(rng.integers(3)))
            data[offset : offset + 4] = np.array(rng.choice([np.nan, np.inf, -np.inf]), dtype).tobytes()
            bench.feed(bytes(data))
        elif kind == 5:  # old frames
            for _ in range(int(rng.integers(1, 20))):
                bench.feed(self.frames[(self.place - 1 - int(rng.integers(5))) % len(self.frames)])
        elif kind == 6:  # the simulator restarts
            bench.connect()
            self.sessions += 1
        elif kind == 7:  # the machine sleeps
            slept = int(rng.integers(1, 300_000_000))
            bench.clock.advance(slept)
            self.slept += slept
        elif kind == 8:
            getattr(bench.emitter, str(rng.choice(["engage", "hold", "park"])))()
        else:  # an implausible frame
            data = bytearray(self.frames[self.place % len(self.frames)])
            offset, dtype = FRAME.where("acceleration", 0)
            data[offset : offset + 4] = np.array(rng.uniform(101, 1900), dtype).tobytes()
            bench.feed(bytes(data))

    def go(self, seconds, each=None):
        """Drive for a time, with its share of the faults."""
        end = self.bench.now + round(seconds * 1e9)
        due = self.injected
        share = FAULTS / HOUR_S
        began = self.bench.now
        while self.bench.now < end:
            self.frame()
            while self.injected < due + (min(self.bench.now, end) - began) * 1e-9 * share:
                self.fault()
                if self.injected % 7 == 0:
                    self.bench.emitter.engage()
            if each:
                each()

    def adds_up(self):
        """Assert that nothing was lost."""
        bench = self.bench
        counts = bench.emitter.counts()
        assert bench.intake.accepted + sum(bench.intake.rejected.values()) == bench.fed
        assert bench.intake.sessions == self.sessions
        assert bench.intake.replies == bench.fed + self.sessions
        # The grid: every place is a tick or a counted skip.
        assert bench.emitter.newest()["index"][0] < counts["ticks"] + counts["skipped"]
        grid = (bench.clock.now_ns() - START) // 3_000_030
        assert abs(counts["ticks"] + counts["skipped"] - grid) <= 2
        assert counts["send_errors"] == counts["not_finite"] == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_hour_with_ten_thousand_faults_loses_nothing_and_keeps_memory_flat():
    hour = Hour(Bench(*BOUNDED, profile="ccd-dk-classical", trace=0), 1)

    def forget():
        hour.bench.intake.events()
        hour.bench.transitions()

    hour.go(300, forget)
    gc.collect()
    tracemalloc.start()
    traced, occupied = tracemalloc.get_traced_memory()[0], resident()
    hour.go(HOUR_S - 300, forget)
    gc.collect()
    grown, more = tracemalloc.get_traced_memory()[0] - traced, resident() - occupied
    tracemalloc.stop()
    assert hour.injected >= FAULTS
    hour.adds_up()
    assert hour.bench.intake.events_lost == 0
    kept, count = hour.bench.pipeline.transitions()
    assert len(kept) == min(count, TRANSITIONS)
    assert grown < len(kept) * 2000 + 100_000  # only the transitions that are kept
    assert more < 32 << 20
    # Every reason in the table has been seen, except a fault's.
    assert set(hour.bench.intake.discontinuities) >= {"teleport", "impossible_acceleration", "reconnect"}


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_every_tick_of_minutes_of_faults_keeps_its_bounds(profile):
    bench = Bench(*BOUNDED, profile=profile, trace=150_000)
    hour, check = Hour(bench, 2), Checker(bench)
    for _ in range(8):
        hour.go(50)
        check()
        bench.intake.events()
    hour.adds_up()
    trace = bench.trace
    assert trace["index"][-1] + 1 == len(trace) + (np.diff(trace["index"], prepend=-1) - 1).sum()
    assert set(trace["state"]) == {State.OFFLINE, State.ENGAGING, State.RUNNING, State.HOLDING, State.PARKING}
