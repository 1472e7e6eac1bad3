"""Clocks, how they wait, and requests to the system for punctuality."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers import LINUX_PROGRAMS, compiled

from motioncue.core import clock
from motioncue.core.clock import FakeClock, MonotonicClock, now_ns, prepare_thread, processors_awake
from motioncue.engine.assembly import load_profile
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import ConfigError
from motioncue.profile.profile import profile_text


@LINUX_PROGRAMS
def test_sleeps_spins_and_requests_are_those_that_were_meant(tmp_path):
    done = subprocess.run([compiled(tmp_path, "clock", "-O2")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "all as wanted\n")


# Requests that a profile may make.


@pytest.fixture
def wake_latency(tmp_path, monkeypatch):
    """A file in place of the system's."""
    path = tmp_path / "cpu_dma_latency"
    path.write_bytes(b"")
    monkeypatch.setattr(clock, "WAKE_LATENCY", str(path))
    return path


def open_files(path):
    """Return how often this process has `path` open."""
    descriptors = Path("/proc/self/fd")
    return sum(link.resolve() == path.resolve() for link in descriptors.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_processors_are_kept_awake_from_the_beginning_of_a_block_to_its_end(wake_latency):
    with processors_awake() as granted:
        assert granted
        assert wake_latency.read_bytes() == bytes(4)  # microseconds, a 32-bit integer
        assert open_files(wake_latency) == 1
    assert open_files(wake_latency) == 0
    with pytest.raises(ZeroDivisionError), processors_awake():
        raise ZeroDivisionError
    assert open_files(wake_latency) == 0


def test_processors_that_may_not_be_kept_awake_are_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(clock, "WAKE_LATENCY", str(tmp_path / "not" / "there"))
    with processors_awake() as granted:
        assert granted is False
    assert list(tmp_path.iterdir()) == []


def in_thread(function):
    """Call a function in a thread of its own, whose priority ends with it; return what it returned."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_only_what_was_asked_for_is_reported():
    assert not {"core", "lock_memory"} & set(in_thread(prepare_thread))
    granted = in_thread(lambda: prepare_thread(core=1023))
    assert granted["core"] is False  # no machine has as many


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="asks the system for a thread's processors")
def test_a_thread_is_kept_on_the_processor_that_was_named():
    core = max(os.sched_getaffinity(0))
    granted, allowed = in_thread(lambda: (prepare_thread(core=core), os.sched_getaffinity(0)))
    assert granted["core"] is True
    assert allowed == {core}
    assert core in os.sched_getaffinity(0)


@pytest.mark.rt
@pytest.mark.parametrize("spin_ns", [0, 300_000])
def test_no_wait_ends_before_its_deadline(spin_ns):
    """An emitter's lateness is never negative, however it waits."""
    pipeline = Pipeline(load_profile("ccd-dk"), MonotonicClock(spin_ns), trace=100)
    began = now_ns()
    pipeline.emitter.run(ticks=100)
    trace = pipeline.emitter.trace
    assert len(trace) == 100
    assert (trace["lateness"] >= 0).all()
    assert trace["deadline"][0] > began
    assert trace["deadline"][-1] < now_ns()


def test_outputs_share_one_loop_and_so_the_way_it_waits(tmp_path):
    text = profile_text("ccd-dk").replace("[output]", "[[output]]")
    second = '[[output]]\nsystem = "dk"\nmotion = "udp://127.0.0.1:5555"\nspin_us = 50\n'
    (tmp_path / "two.toml").write_text(text + second, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"output\.spin_us: found 50\.0 beside 0\.0, allowed is the same for all"):
        load_profile(tmp_path / "two.toml")


def test_a_fake_clock_takes_no_time_whatever_the_profile_says_about_spinning():
    profile = load_profile("ccd-dk", "output.spin_us=1000")
    pipeline = Pipeline(profile, FakeClock(), trace=1000)
    pipeline.emitter.run(ticks=1000)
    assert (pipeline.emitter.trace["lateness"] == 0).all()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("output.spin_us=-1", "output.spin_us: found -1"),
        ("output.spin_us=1001", "output.spin_us: found 1001"),
        ("output.keep_awake=1", "output.keep_awake: found 1"),
        ("output.core=-1", "output.core: found -1"),
        ("output.core=1024", "output.core: found 1024"),
        ("output.lock_memory=yes", "output.lock_memory: found 'yes'"),
    ],
)
def test_requests_that_no_system_grants_are_refused(override, said):
    with pytest.raises(ConfigError) as error:
        load_profile("ccd-dk", override)
    assert said in str(error.value)
