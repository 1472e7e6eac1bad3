"""Cost of the engine's work on this machine, without waiting."""

import socket
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from motioncue import sources
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import algorithm_of
from motioncue.engine.emitter import Emitter
from motioncue.engine.retune import Settings
from motioncue.output.actuation import OutputChain, UpVector
from motioncue.output.dk import MOTION, STREAMS
from motioncue.profile.profile import Profile
from motioncue.recording.read import read_packages, sample_recording

__all__ = ["COSTS", "costs_ns"]

REPEATS = 9
COSTS = {
    "package": "a package taken: framed, decoded, body frame, published (one call from Python each)",
    "tick": "a tick, all of it but the sending",
    "tick_sent": "a tick and one packet to this machine",
    "batch": "a tick of a batch over a whole recording",
}
"""The measured operations."""


def costs_ns(profile: Profile) -> dict[str, float]:
    """Return the median cost of each operation in `COSTS` [ns]."""
    period_ns = round(1e9 / profile.rate_hz)
    module, clock = sources.source("city-car-driving"), FakeClock()
    packages = read_packages(sample_recording())

    def take_all() -> None:
        intake = module.intake(module.Options())
        intake.begin(0)
        for package in packages:
            intake.feed(package, 0)

    intake = module.intake(module.Options())
    intake.begin(clock.now_ns())
    for package in packages:
        intake.feed(package, clock.now_ns())
    settings = Settings(
        algorithm_of(profile, 1e9 / period_ns),
        chains=[OutputChain([UpVector()])],
        period_ns=period_ns,
        hold_s=1e9,
    )
    loop = Emitter(intake, settings, clock)
    motion = np.zeros(100_000, MOTION_DTYPE)
    motion[:] = loop.newest()["motion"]
    batch, cues = algorithm_of(profile, 1e9 / period_ns), np.zeros(len(motion), CUE_DTYPE)
    loop.run(ticks=1000)  # ends the fade
    found = {
        "package": per_item(take_all, len(packages)),
        "tick": per_item(lambda: loop.run(ticks=20_000), 20_000),
        "batch": per_item(lambda: batch.process(motion, cues), len(motion)),
    }
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        sink.bind(("127.0.0.1", 0))
        out.setblocking(False)
        loop.add_output(out, ("127.0.0.1", sink.getsockname()[1], 0), STREAMS["motion"].table(), MOTION.encode())
        found["tick_sent"] = per_item(lambda: loop.run(ticks=2000), 2000)
    return {name: found[name] for name in COSTS}


def per_item(call: Callable[[], object], items: int) -> float:
    """Return the cost of a call per item, median of several calls [ns]."""
    call()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - began) / items)
    return median(times)
