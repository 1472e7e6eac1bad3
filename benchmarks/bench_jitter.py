"""Is the emitter as punctual as a bare C loop?  See jitter.py.  Both under SCHED_FIFO where the system allows it."""

import jitter
import pytest


@pytest.mark.benchmark(group="jitter")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_emitter_is_late_as_a_bare_c_loop_is(benchmark, smoke, busy):
    fifo = jitter.fifo_allowed()
    if smoke:
        rows, shown = benchmark(lambda: jitter.compare(seconds=0.1, pairs=2, busy=busy, fifo=fifo))
        assert [entry["figure"].rpartition(": ")[2] for entry in rows] == list(jitter.TARGETS)
        assert set(shown) >= {"skipped", "switches", "rate error ppm"}
        return
    rows, shown = benchmark.pedantic(lambda: jitter.compare(busy=busy, fifo=fifo), rounds=1)
    benchmark.extra_info["rows"] = rows
    benchmark.extra_info["shown"] = shown
