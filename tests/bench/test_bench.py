"""``motioncue bench``: its measurements and grades on cases whose figures are known in advance."""

import contextlib
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import eventually

from motioncue import load_profile
from motioncue.bench import pacing as reference
from motioncue.bench.floor import pace
from motioncue.bench.measure import FIRST, INTERVAL_NS, bare_receiver, delays, engine, sample_frames
from motioncue.bench.pacing import (
    EDGES_US,
    Block,
    bare,
    burning,
    cyclictest,
    emitter,
    figures,
    histogram,
    parse_histogram,
    run_block,
    summary,
)
from motioncue.bench.report import GRADES, advice, later_than, verdict
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline

PROFILE = load_profile("ccd-dk-classical")
START, PERIOD = 1_000_000_000, 3_000_030


# The bare loop, on a clock that takes no time.


def paced(ticks, **clock):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        return pace(FakeClock(START, **clock), PERIOD, ticks, out, 9, b"packet")


def test_the_bare_loop_is_as_late_as_its_clock_wakes_it():
    late, index = paced(50, wake_ns=70_001)
    assert (late == 70_001).all()
    assert index.tolist() == list(range(50))


@pytest.mark.parametrize("stall", [0, PERIOD - 1, PERIOD, PERIOD + 1, 5 * PERIOD // 2, 7 * PERIOD])
def test_the_bare_loop_leaves_out_the_ticks_that_the_emitter_leaves_out(stall):
    stalls = (0, stall, 0, stall)
    late, index = paced(8, stalls=stalls)
    pipeline = Pipeline(PROFILE, FakeClock(START, 0, stalls), trace=8)
    pipeline.emitter.run(ticks=8)
    assert index.tolist() == pipeline.emitter.trace["index"].tolist()
    assert late.tolist() == pipeline.emitter.trace["lateness"].tolist()


@pytest.mark.rt
def test_both_loops_send_every_packet_of_a_block():
    for loop in (emitter(PROFILE), bare(PROFILE.outputs[0])):
        block = run_block(loop, PROFILE.outputs[0], 1_000_000, 100)
        assert len(block.late) == len(block.index) == 100
        assert (block.late >= 0).all()
        assert (np.diff(block.index) >= 1).all()
        assert block.granted


def test_a_loop_that_fails_says_why():
    def broken(period_ns, ticks, out, port):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_block(broken, PROFILE.outputs[0], 1_000_000, 10)


# From ticks to figures.


def block(late, index=None):
    return Block(1_000_000, np.array(late), np.arange(len(late)) if index is None else np.array(index))


def test_interval_error_is_how_far_two_packets_are_from_a_period_apart():
    assert block([10_000, 15_000, 5_000, 5_000]).interval_error.tolist() == [5_000, 10_000, 0]


def test_ticks_that_are_not_there_were_skipped():
    assert block([0, 0, 0, 0], [3, 4, 7, 9]).skipped == 3
    assert block([0, 0, 0, 0]).skipped == 0


def test_a_clock_that_drifts_is_a_rate_error():
    ticks = np.arange(1000)
    assert block(ticks * 20).rate_error_ppm == pytest.approx(20.0, rel=1e-6)  # 20 ns later with every 1 ms
    assert block(np.full(1000, 50_000)).rate_error_ppm == pytest.approx(0.0, abs=1e-6)


def test_p50_and_p99_are_medians_of_blocks_and_the_worst_is_the_worst_of_all():
    blocks = [block([late] * 100) for late in (1_000, 2_000, 900_000)]
    found = summary(blocks)
    assert found["lateness_us"]["p50"] == found["lateness_us"]["p99"] == 2.0
    assert found["lateness_us"]["max"] == 900.0
    assert found["ticks"] == 300
    assert figures(blocks[2])["lateness_us"]["p50"] == 900.0


def test_a_histogram_counts_every_tick_once():
    blocks = [block([0, 99, 100, 149, 150, 999_999_999]), block([20_000])]
    counts = dict(zip(EDGES_US.tolist(), histogram(blocks), strict=False))
    assert sum(counts.values()) == 7
    assert (counts[0.0], counts[0.1], counts[0.15], counts[20.0], counts[100_000.0]) == (2, 2, 1, 1, 1)


def test_the_share_that_is_later_falls_from_all_to_the_last():
    assert later_than([0.0, 1.0, 2.0, 3.0], [2, 6, 2, 0]) == [(0.0, 1.0), (1.0, 0.8), (2.0, 0.2)]


# Latency.


def test_a_frame_has_come_when_it_or_a_newer_one_is_there():
    arrived = START + np.arange(FIRST + 4) * INTERVAL_NS
    received = np.delete(arrived + 7_000, FIRST + 1)  # one frame was lost
    found = delays(arrived - 500, arrived, received, received + 1_000_000, lost=1)
    assert found.published.tolist() == [7_000, INTERVAL_NS + 7_000, 7_000, 7_000]
    assert found.shown.tolist() == [1_007_000, INTERVAL_NS + 1_007_000, 1_007_000, 1_007_000]
    assert (found.lost, found.by_kernel) == (1, True)


def test_a_frame_without_a_stamp_of_its_own_counts_from_its_sending():
    arrived = START + np.arange(FIRST + 3) * INTERVAL_NS
    sent, received = arrived - 500, arrived + 7_000
    asked = arrived.copy()
    asked[FIRST + 1] = asked[FIRST]  # not received yet, so the stamp is that of the one before
    assert delays(sent, asked, received, received, lost=0).published.tolist() == [7_000, 7_500, 7_000]
    found = delays(sent, np.zeros_like(arrived), received, received, lost=0)
    assert found.published.tolist() == [7_500] * 3
    assert not found.by_kernel


def test_frames_after_which_nothing_came_have_no_delay():
    sent, nothing = START + np.arange(FIRST + 3) * INTERVAL_NS, np.zeros(0, np.int64)
    assert len(delays(sent, sent, nothing, nothing, lost=FIRST + 3).published) == 0


def test_frames_are_those_of_the_real_drive():
    frames = sample_frames(10_000)
    assert frames.shape == (10_000, 107)
    assert (frames[:, 2] == 2).all()  # the type of a frame


@pytest.mark.rt
@pytest.mark.parametrize("loop", [lambda: engine(PROFILE, 30), lambda: bare_receiver(30)], ids=["engine", "bare"])
def test_frames_go_through_real_sockets_and_are_all_accounted_for(loop):
    found = loop()
    assert 0 <= found.lost < 20  # a busy machine may drop some, and end before the last ones
    assert len(found.published) == len(found.shown) > 20 - found.lost
    assert (found.shown >= found.published).all()
    if sys.platform == "linux":
        assert found.by_kernel
        assert (found.published > -1_000_000).all()  # after the system's stamp, within what two clocks may differ by


# Load, and the other program's measurements.


def children():
    """Return the processes started by this one."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            if int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_load_is_there_for_a_block_and_gone_after_it():
    before = children()
    with burning(2):
        assert len(children() - before) == 2
    eventually(lambda: children() <= before)
    with pytest.raises(ZeroDivisionError), burning(1):
        raise ZeroDivisionError
    eventually(lambda: children() <= before)


HISTOGRAM = """# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000
000012 000090
000013 000009
000020 000000
000050 000001
# Total: 000000101
# Min Latencies: 00012
# Avg Latencies: 00013
# Max Latencies: 25000
# Histogram Overflows: 00001
# Histogram Overflow at cycle number:
# Thread 0: 00077
"""  # as cyclictest 2.4 prints it


def test_quantiles_are_read_from_what_cyclictest_prints():
    # Of 101 wake-ups 90 took 12 us, the 100th 50 us, the last was beyond the histogram.
    assert parse_histogram(HISTOGRAM) == {"p50": 12.0, "p99": 50.0, "p999": 25000.0, "max": 25000.0}
    assert parse_histogram("policy: fifo: loadavg: 0.5") is None
    assert parse_histogram("") is None


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script in place of cyclictest")
@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({"real_time": True, "keep_awake": False}, "--policy=fifo --priority=10 --default-system"),
        ({"real_time": False, "keep_awake": True}, "--policy=other"),
    ],
)
def test_cyclictest_is_asked_for_what_the_emitter_has(tmp_path, monkeypatch, asked, options):
    program = tmp_path / "cyclictest"
    program.write_text(f"#!/bin/sh\necho $@ >{tmp_path}/asked\ncat <<'end'\n{HISTOGRAM}end\n")
    program.chmod(0o755)
    monkeypatch.setattr(reference.shutil, "which", lambda name: str(program))
    assert cyclictest(3_000_030, 500, **asked)["p50"] == 12.0
    first = "--quiet --threads=1 --interval=3000 --loops=500"
    assert (tmp_path / "asked").read_text() == f"{first} {options} --histogram=20000\n"
    program.write_text("#!/bin/sh\nexit 1\n")
    assert cyclictest(3_000_030, 500, **asked) is None
    monkeypatch.setattr(reference.shutil, "which", lambda name: None)
    assert cyclictest(3_000_030, 500, **asked) is None


# In words.


def row(load="idle", p99=40.0, p999=100.0, skipped=0, bare_p99=40.0, rate_hz=1000.0):
    ours = {"lateness_us": {"p50": 20.0, "p99": p99, "p999": p999, "max": p999}, "skipped": skipped, "ticks": 9000}
    floor = {"lateness_us": {"p50": 20.0, "p99": bare_p99, "p999": 100.0, "max": 100.0}, "skipped": 0, "ticks": 9000}
    return {"rate_hz": rate_hz, "load": load, "emitter": ours, "bare": floor}


@pytest.mark.parametrize(
    ("idle", "loaded", "grade"),
    [
        ({}, {}, "on time"),
        ({"p999": 101.0}, {}, "mostly on time"),  # more than a tenth of a period
        ({"p999": 101.0, "rate_hz": 333.33}, {"rate_hz": 333.33}, "on time"),
        ({}, {"skipped": 1}, "on time when idle"),
        ({}, {"p99": 500.0, "p999": 900.0}, "on time when idle"),
        ({"skipped": 9}, {"skipped": 9}, "mostly on time"),
        ({"skipped": 10}, {}, "not on time"),
        ({"p99": 101.0, "p999": 900.0}, {}, "not on time"),
    ],
)
def test_a_grade_rests_on_a_tenth_of_a_period_and_on_what_was_skipped(idle, loaded, grade):
    assert grade in GRADES
    assert verdict([row("idle", **idle), row("loaded", **loaded)])["grade"] == grade


def test_the_words_tell_the_machine_from_the_loop():
    same = verdict([row(), row("loaded", p999=250.0, skipped=3)])["words"]
    assert same.startswith("Idle: 999 of 1,000 packets leave within 100 µs (10 % of a period), none was skipped;")
    assert (
        "Under load: 999 of 1,000 packets leave within 250 µs (25 % of a period), 3 of 9003 ticks were skipped; a bare"
        in same
    )
    assert same.count("a bare loop does no better") == 2
    worse = verdict([row(p99=60.0), row("loaded", p99=44.0)])["words"]
    assert "99 of 100 within 60 µs, where a bare loop manages 40 µs" in worse
    assert worse.count("a bare loop does no better") == 1


PLAIN = {"spin_us": 0.0, "keep_awake": False}


@pytest.mark.parametrize(
    ("granted", "settings", "said"),
    [
        ({"fifo": True}, PLAIN, []),
        ({"fifo": False}, PLAIN, ["No real-time priority"]),
        ({"fifo": True, "keep_awake": False}, {**PLAIN, "keep_awake": True}, ["may not be kept awake"]),
        ({"fifo": False}, {**PLAIN, "spin_us": 100.0}, ["No real-time priority", "output.spin_us makes ticks later"]),
        ({"high_resolution_timer": False, "mmcss": False}, PLAIN, ["No high-resolution timer", "Multimedia Class"]),
    ],
)
def test_advice_is_what_was_refused_and_matters(granted, settings, said):
    found = advice(granted, settings, [row()])
    assert len(found) == len(said)
    for words, start in zip(found, said, strict=True):
        assert start in words


def test_processors_that_sleep_deeply_are_noticed():
    slow = row()
    slow["emitter"]["lateness_us"]["p50"] = 45.0
    assert "output.keep_awake = true" in advice({"fifo": True}, PLAIN, [slow])[0]
    assert advice({"fifo": True, "keep_awake": True}, {**PLAIN, "keep_awake": True}, [slow]) == []
    assert advice({"high_resolution_timer": True, "mmcss": True}, PLAIN, [slow]) == []  # all granted: no advice
