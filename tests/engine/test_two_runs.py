"""One program at a time drives the platform at an address: others are refused, a killed one leaves nothing behind."""

import contextlib
import gc
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from c_api import c_api
from helpers import eventually, free_port, loopbacks

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.errors import ConfigError, EndpointError
from motioncue.profile.profile import profile_text

pytestmark = pytest.mark.rt

ENGINE = """
import sys, motioncue
with motioncue.Engine(motioncue.load_profile("program-dk", *sys.argv[1:])):
    print("driving", flush=True)
    sys.stdin.read()
"""
RELAY = """
import sys, motioncue
relay = motioncue.relay(motioncue.load_profile("program-dk", *sys.argv[1:]))
print("driving", flush=True)
sys.stdin.read()
"""
FORKED = """
import os, sys, motioncue
with motioncue.Engine(motioncue.load_profile("program-dk", *sys.argv[1:])):
    if os.fork() == 0:
        print("driving", flush=True)
    sys.stdin.read()
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces and users of Linux")
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX forks")
root = pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root becomes another user")


def outputs(host="127.0.0.1", **ports):
    """Return overrides that send motion and gauges to a host."""
    return tuple(f"output.{name}=udp://{host}:{port}" for name, port in ports.items())


@pytest.fixture
def ports():
    """Two ports of this test alone."""
    return {"motion": free_port(socket.SOCK_DGRAM), "gauges": free_port(socket.SOCK_DGRAM)}


@contextlib.contextmanager
def driving(program, *overrides, before=(), **options):
    """Run a program that drives a platform until the block ends; gives its process."""
    command = [*before, sys.executable, "-c", program, *overrides]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    with process:
        try:
            assert process.stdout.readline() == "driving\n"
            yield process
        finally:
            process.kill()


def refused(*overrides, before=(), **options):
    """Return why `motioncue run` refuses to begin; fails if it begins."""
    given = [part for override in overrides for part in ("--set", override)]
    source = ("--set", f"source.endpoint=tcp://127.0.0.1:{free_port()}")
    command = [*before, sys.executable, "-m", "motioncue", "run", "--duration", "0.5", *source, *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.mark.parametrize("program", [ENGINE, RELAY], ids=["engine", "relay"])
def test_a_second_run_from_anywhere_is_refused_and_told_of_the_first(tmp_path, ports, program):
    with driving(program, *outputs(**ports), cwd=tmp_path) as first:
        error = refused(*outputs(**ports))
        said = f"error: output.motion: process {first.pid}"
        assert error.startswith(said)
        assert f"drives the platform at udp://127.0.0.1:{ports['motion']} already; end it first, or set" in error
        assert "output.shared = true" in error
        if sys.platform == "linux":
            assert error.startswith(f"{said} ({sys.executable} -c")


def test_engine_relay_and_c_are_refused_before_anything_is_opened(tmp_path, ports):
    file = tmp_path / "mine.toml"
    file.write_text(profile_text("program-dk").replace(":4445", f":{ports['motion']}"), "utf-8")
    profile = motioncue.load_profile(file)
    udp = free_port(socket.SOCK_DGRAM)
    listening = motioncue.load_profile("beamng-dk", f"source.endpoint=udp://127.0.0.1:{udp}", *outputs(**ports))
    error = bytes(1000)
    with driving(ENGINE, *outputs(**ports)) as first:
        who = f"process {first.pid}\\b.* drives the platform"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as busy:
            busy.bind(("127.0.0.1", udp))
            with pytest.raises(EndpointError, match=who):  # not of the source's endpoint, which is in use
                motioncue.Engine(listening).start()
        with pytest.raises(EndpointError, match=who):
            motioncue.Engine(profile).start()
        with pytest.raises(EndpointError, match=who):
            motioncue.relay(profile)
        assert c_api().start(str(file).encode(), error, len(error)) is None
        assert re.search(who, error.split(b"\0")[0].decode())
        motioncue.relay(profile, clock=FakeClock())  # drives nothing


@pytest.mark.parametrize("host", [*loopbacks(), "localhost", "0.0.0.0", socket.gethostname()])
def test_every_name_of_this_machine_is_the_same_platform(ports, host):
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        pytest.skip("this machine does not know its own name")
    url_host = f"[{host}]" if ":" in host else host
    with (
        motioncue.Engine(motioncue.load_profile("program-dk", *outputs(**ports))),
        pytest.raises(EndpointError, match=r"another engine or relay of this program drives the platform"),
    ):
        motioncue.Engine(motioncue.load_profile("program-dk", *outputs(url_host, **ports))).start()


@root
@linux
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="becomes another user by setpriv")
@pytest.mark.parametrize("other", ["first", "second"])
def test_another_user_is_refused_too(ports, other):
    nobody = ("setpriv", "--reuid", "65534", "--clear-groups")
    if subprocess.run([*nobody, sys.executable, "-c", "import motioncue.engine.engine"], check=False).returncode:
        pytest.skip("another user may not read this installation")
    first, second = (nobody, ()) if other == "first" else ((), nobody)
    with driving(ENGINE, *outputs(**ports), before=first, cwd="/") as process:
        error = refused(*outputs(**ports), before=second, cwd="/")
        name = "nobody" if other == "first" else "root"
        assert error.startswith(f"error: output.motion: process {process.pid} of user {name} (")


@pytest.mark.parametrize("program", [ENGINE, RELAY], ids=["engine", "relay"])
def test_a_killed_run_leaves_nothing_that_blocks_the_next(ports, program):
    for _ in range(3):
        with driving(program, *outputs(**ports)) as process:
            process.kill()
            process.wait()
    with motioncue.Engine(motioncue.load_profile("program-dk", *outputs(**ports))):
        pass


def test_what_has_ended_blocks_nothing(ports):
    profile = motioncue.load_profile("program-dk", *outputs(**ports))
    for _ in range(3):
        with motioncue.Engine(profile):
            pass
        relay = motioncue.relay(profile)
        del relay


def test_a_stop_that_nobody_waits_for_ends_the_claim_at_rest(ports):
    profile = motioncue.load_profile("program-dk", *outputs(**ports))
    first = motioncue.Engine(profile).start()
    try:
        first.stop(wait=False)
        eventually(lambda: first.over)
        with motioncue.Engine(profile):
            pass
    finally:
        first.stop()


def test_a_stop_keeps_its_claim_during_the_fade(ports):
    slow = motioncue.load_profile("program-dk", "supervisor.fade_s=3", *outputs(**ports))
    first = motioncue.Engine(slow).start()
    try:
        motion = np.zeros(1, motioncue.MOTION_DTYPE)
        motion["surge"] = 2.0
        for number in range(50):
            motion["frame_time"] = 0.02 * number
            first.feed(motion)
            time.sleep(0.02)
        first.stop(wait=False)
        with pytest.raises(EndpointError, match="another engine or relay of this program"):
            motioncue.Engine(slow).start()
        assert not first.over
    finally:
        first.stop(leave=True)


def test_a_forgotten_relay_in_a_circle_blocks_nothing(ports):
    profile = motioncue.load_profile("program-dk", *outputs(**ports))
    gc.disable()
    try:
        circle = [motioncue.relay(profile)]
        circle.append(circle)
        del circle
        assert motioncue.relay(profile) is not None
    finally:
        gc.enable()


def test_a_refused_run_holds_nothing(ports):
    motion, gauges = ports["motion"], ports["gauges"]
    with motioncue.Engine(motioncue.load_profile("program-dk", *outputs(motion=motion, gauges=gauges))):
        other = free_port(socket.SOCK_DGRAM)
        crossing = motioncue.Engine(motioncue.load_profile("program-dk", *outputs(motion=other, gauges=motion)))
        with pytest.raises(EndpointError, match=r"output\.gauges: .* drives the platform"):
            crossing.start()
        with motioncue.Engine(motioncue.load_profile("program-dk", *outputs(motion=other, gauges=other + 1))):
            pass


def interrupted_start(engine, line):
    """Start an engine, with an interrupt before this one of the lines of its start; return how many were reached."""
    code, seen, before = [getattr(engine, name).__code__ for name in ("start", "_begin")], 0, sys.gettrace()

    def interrupt(frame, event, _):
        nonlocal seen
        if frame.f_code not in code:
            return None
        if event == "line" and (seen := seen + 1) == line:
            raise KeyboardInterrupt
        return interrupt

    sys.settrace(interrupt)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            engine.start()
    finally:
        sys.settrace(before)
    return seen


def test_an_interrupt_in_start_leaves_no_claim_and_no_thread(ports):
    """Before each of its lines, one after the other, as a signal may come between any two of them."""
    profile = motioncue.load_profile("program-dk", *outputs(**ports))
    threads, line = threading.active_count(), 1
    while True:
        engine = motioncue.Engine(profile)
        reached = interrupted_start(engine, line)
        engine.stop()
        assert threading.active_count() == threads, line
        with motioncue.Engine(profile):
            pass
        if reached < line:
            break
        line += 1
    assert line > 20


@fork
def test_a_forked_child_does_not_keep_the_platform_of_a_killed_parent(ports):
    with driving(FORKED, *outputs(**ports)) as process:  # the child lives on: it reads the same input
        process.kill()
        process.wait()
        with motioncue.Engine(motioncue.load_profile("program-dk", *outputs(**ports))):
            pass


def test_two_runs_may_share_a_platform_if_the_second_is_told(ports, caplog):
    with driving(ENGINE, *outputs(**ports)) as first:
        shared = motioncue.load_profile("program-dk", *outputs(**ports), "output.shared=true")
        with motioncue.Engine(shared):
            said = [record.getMessage() for record in caplog.records if "(output.shared)" in record.getMessage()]
        assert len(said) == 2  # motion and gauges
        assert f"process {first.pid}" in said[0]
        motioncue.relay(shared)
        assert "drives the platform" in refused(*outputs(**ports))  # who is not told is refused still


def test_a_run_that_shares_is_seen_by_one_that_does_not(ports):
    with driving(ENGINE, *outputs(**ports), "output.shared=true") as first:
        assert refused(*outputs(**ports)).startswith(f"error: output.motion: process {first.pid}")


def test_two_streams_of_one_run_at_one_place_are_refused(ports):
    there = ports["motion"]
    with pytest.raises(ConfigError, match=r"where output\.motion is sent already; allowed is a port of its own"):
        motioncue.load_profile("program-dk", *outputs(motion=there, gauges=there))
    crossing = [f"output.motion=udp://127.0.0.1:{there}", f"output.gauges=udp://0.0.0.0:{there}"]
    with pytest.raises(EndpointError, match=r"output\.gauges: found .* where output\.motion is sent already"):
        motioncue.Engine(motioncue.load_profile("program-dk", *crossing)).start()


@root
@linux
@pytest.mark.skipif(shutil.which("unshare") is None, reason="enters namespaces by unshare")
def test_a_container_with_the_same_network_is_refused_and_one_with_its_own_is_not(ports):
    apart = ["unshare", "--net"], ["unshare", "--pid", "--fork"]
    if any(subprocess.run([*each, "true"], check=False, capture_output=True).returncode for each in apart):
        pytest.skip("namespaces may not be made here")
    with driving(ENGINE, *outputs(**ports)):
        error = refused(*outputs(**ports), before=apart[1])
        assert error.startswith("error: output.motion: a program in another container drives the platform")
        with driving(ENGINE, *outputs(**ports), before=apart[0]):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_a_serial_line_has_one_run_by_whatever_path_and_is_not_shared(tmp_path):
    import fcntl
    import termios

    end, line = os.openpty()
    name, link = os.ttyname(line), tmp_path / "line"
    link.symlink_to(name)
    packet = "output.packet={ size = 4, fields = [{ offset = 0, type = 'f4', channel = 'surge' }] }"
    at_line = ["output.system=custom", packet, "output.rate_hz=50", f"output.motion=serial://{name}"]
    file = tmp_path / "line.toml"
    file.write_text(profile_text("program-dk").replace("gauges =", "# gauges ="), encoding="utf-8")
    program = ENGINE.replace('"program-dk"', repr(str(file)))
    with driving(program, *at_line) as first:
        engine = motioncue.Engine(motioncue.load_profile(file, *at_line, f"output.motion=serial://{link}"))
        with pytest.raises(EndpointError, match=f"process {first.pid}\\b.* drives the platform at serial://.*line"):
            engine.start()
        first.kill()
        first.wait()
        fcntl.ioctl(line, termios.TIOCNXCL)  # as a real line does when nobody has it open any more
        with motioncue.Engine(motioncue.load_profile(file, *at_line)):
            pass
    with pytest.raises(ConfigError, match=r"output\.shared: found true, allowed is false with serial://"):
        motioncue.load_profile(file, *at_line, "output.shared=true")
    os.close(end)
    os.close(line)
