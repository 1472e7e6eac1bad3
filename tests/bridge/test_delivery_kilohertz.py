"""A platform that takes a thousand packets a second, and a simulator that sends as many frames."""

import numpy as np
import pytest

from motioncue.core.channels import MOTION
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline
from motioncue.profile.profile import parse_profile

START = 1_000_000_000
SIZE, PACE, LENGTH_S = 3.0, 5.0, 4.0  # of a sway [m/s^2], [rad/s], [s]
TOLD = np.dtype([(name, "<f8") for name in ("time", *(channel.name for channel in MOTION[:10]))])
PROFILE = """
[source]
system = "custom"
endpoint = "udp://127.0.0.1:4567"
[source.packet]
size = SIZE
fields = [FIELDS]
[cueing]
algorithm = "ALGORITHM"
PLATFORM
[output]
motion = "udp://127.0.0.1:9999"
rate_hz = 1000
[output.packet]
size = 8
fields = [{ offset = 0, type = "f8", channel = "CHANNEL" }]
"""


def shown(algorithm, rate_hz, jitter_s):
    """Return when ticks were [s], and the sway that each shows, of frames that come up to `jitter_s` late."""
    platform, channel = ("", "sway") if algorithm == "direct" else ('[platform]\npreset = "hexapod-dim"', "leg_1")
    fields = ", ".join(f'{{ offset = {8 * i}, type = "f8", channel = "{name}" }}' for i, name in enumerate(TOLD.names))
    text = PROFILE.replace("SIZE", str(TOLD.itemsize)).replace("FIELDS", fields)
    text = text.replace("ALGORITHM", algorithm).replace("PLATFORM", platform).replace("CHANNEL", channel)
    pipeline = Pipeline(parse_profile(text), FakeClock(START), trace=5000)
    pipeline.intake.begin(START)
    taken = np.arange(0.0, LENGTH_S, 1.0 / rate_hz)
    late = np.random.default_rng(7).uniform(0.0, jitter_s, len(taken))
    for time, came in zip(taken, np.maximum.accumulate(taken + late), strict=True):
        pipeline.emitter.run(until_ns=START + round(1e9 * came))
        row = np.zeros((), TOLD)
        row["time"], row["speed"], row["sway"] = time, 20.0, SIZE * np.sin(PACE * time)
        pipeline.intake.feed(row.tobytes(), START + round(1e9 * came))
    trace = pipeline.emitter.trace
    assert pipeline.intake.rejected == pipeline.intake.discontinuities == {}
    assert [move["reason"] for move in pipeline.emitter.transitions()][:1] == ["input"]
    assert (np.diff(trace["index"]) == 1).all()
    return (trace["deadline"] - START) * 1e-9, trace["motion"]["sway"]


@pytest.mark.parametrize("algorithm", ["direct", "classical", "predictive"])
@pytest.mark.parametrize("rate_hz", [500.0, 1000.0])
@pytest.mark.parametrize(("jitter_s", "most"), [(0.0, 1.01), (0.002, 1.2)])
def test_a_thousand_packets_a_second_are_neither_late_nor_faster_than_the_drive(algorithm, rate_hz, jitter_s, most):
    """No later than its frames come, the time between two of them and a tick; steps as docs/safety.md states."""
    time, sway = shown(algorithm, rate_hz, jitter_s)
    after = (time > 1.0) & (time < LENGTH_S - 0.01)
    assert np.abs(np.diff(sway[after])).max() <= most * SIZE * PACE * 1e-3
    assert np.abs(sway - SIZE * np.sin(PACE * time))[after].max() <= SIZE * PACE * (jitter_s + 1.0 / rate_hz + 0.001)
