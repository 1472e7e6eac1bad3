"""Punctuality of the engine against a bare C loop, both under SCHED_FIFO where the system allows it; see jitter.py."""

import jitter
import pytest


@pytest.mark.benchmark(group="jitter")
@pytest.mark.parametrize("name", jitter.RUNS)
def test_engine_is_as_punctual_as_a_bare_c_loop(benchmark, smoke, name):
    if smoke:
        rows, shown = benchmark(lambda: jitter.run(name, jitter.SMOKE))
        assert rows or name == "awake"  # it must be granted by the system
        assert all({"figure", "against", "target", "met"} <= set(entry) for entry in rows)
        assert all(entry["met"] for entry in rows if entry["figure"].endswith("records lost"))  # a fact, however slow
        return
    rows, shown = benchmark.pedantic(lambda: jitter.run(name, jitter.Sizes()), rounds=1)
    benchmark.extra_info["rows"] = rows
    benchmark.extra_info["shown"] = shown
