"""The C interface with NULL and absurd numbers in place of each argument: a code, a message, never a crash."""

import ctypes
import itertools
import math
import signal

import numpy as np
import pytest
from c_api import c_api
from helpers import own_ports
from same_bits import assert_same_bits

import motioncue
from motioncue.profile.profile import profile_text

api = c_api()
SIZE = 200


@pytest.fixture
def stepper():
    made = api.create(b"ccd-dk-classical", 1000.0, None, 0)
    assert made
    yield made
    api.destroy(made)


def told(function, *arguments):
    """Return a function's result, and the reason that it wrote."""
    error = ctypes.create_string_buffer(b"untouched", SIZE)
    return function(*arguments, error, SIZE), error.value.decode()


@pytest.mark.parametrize("profile", [None, b"no-such-profile", b"", b"\xff", b"x" * 100_000])
@pytest.mark.parametrize("function", ["create", "start"])
def test_what_is_no_profile_is_refused_with_and_without_room_for_the_reason(function, profile):
    more = (0.0,) if function == "create" else ()
    call = getattr(api, function)
    made, reason = told(call, profile, *more)
    assert made is None
    assert reason not in ("untouched", "")
    for size in (0, 1, 100, 2**63):
        assert call(profile, *more, None, size) is None
    short = ctypes.create_string_buffer(b"untouched", SIZE)
    assert call(profile, *more, short, 1) is None
    assert short.value == b""
    assert short.raw[1:9] == b"ntouched"


@pytest.mark.parametrize("rate_hz", [math.nan, math.inf, -math.inf, -1.0, 1e-300, 9.99, 2000.1, 1e308])
def test_a_rate_that_is_none_is_refused(rate_hz):
    made, reason = told(api.create, b"ccd-dk", rate_hz)
    assert made is None
    assert reason.startswith("rate_hz: found ")


@pytest.mark.parametrize("change", [None, b"", b"=", b"\xff", b"a=1", b"cueing.surge.gain=nan", b"[" * 10_000])
def test_what_is_no_change_is_refused_with_and_without_room_for_the_reason(stepper, change):
    done, reason = told(api.retune, stepper, change)
    assert done == 0
    assert reason not in ("untouched", "")
    assert api.retune(stepper, change, None, 100) == 0
    assert api.retune(stepper, b"cueing.surge.gain=0.1", None, 100) == 1


def test_no_stepper_is_refused_everywhere():
    room = ctypes.create_string_buffer(1000)
    assert told(api.retune, None, b"cueing.surge.gain=0.1") == (
        0,
        "stepper: found NULL, allowed is what create returned",
    )
    assert api.period_ns(None) == 0
    assert api.step(None, room, room) == 0
    for call in (api.reset, api.destroy):
        call(None)
    api.actuate(None, room, room)
    api.look(None, room)
    api.wheels(None, room)
    api.park(None, 1)


def test_no_memory_is_refused_everywhere_and_the_stepper_goes_on(stepper):
    motion, cue = np.zeros(1, motioncue.MOTION_DTYPE), np.zeros(1, motioncue.CUE_DTYPE)
    actuation = np.zeros(1, motioncue.ACTUATION_DTYPE)
    motion["surge"] = 1.0
    same = motioncue.bind("ccd-dk-classical", motion, actuation=np.zeros(1, motioncue.ACTUATION_DTYPE), rate_hz=1000)
    for _ in range(50):
        for given in itertools.product((None, motion.ctypes.data), (None, cue.ctypes.data)):
            assert api.step(stepper, *given) == all(given)
        for given in itertools.product((None, cue.ctypes.data), (None, actuation.ctypes.data)):
            api.actuate(stepper, *given)
        api.look(stepper, None)
        api.wheels(stepper, None)
        same.step()
    assert_same_bits(cue, same.cue)
    assert_same_bits(actuation, same.actuation)


@pytest.mark.rt
def test_feeding_nothing_is_refused_whatever_size_it_is_said_to_have(tmp_path):
    file = tmp_path / "fed.toml"
    file.write_text(own_ports(profile_text("program-dk")), encoding="utf-8")
    engine, reason = told(api.start, str(file).encode())
    assert engine, reason
    motion = np.zeros(1, motioncue.MOTION_DTYPE).tobytes()
    try:
        for size in (0, 1, len(motion), 2**16, 2**31, 2**63, 2**64 - 1):
            assert api.feed(engine, None, size) == 0
            assert api.feed(None, motion, size) == 0
        for size in (0, 1, len(motion) - 1):
            assert api.feed(engine, motion, size) == 0
        assert api.feed(engine, motion, len(motion)) == 1
    finally:
        api.stop(engine)
    api.stop(None)


@pytest.mark.rt
def test_what_the_system_sends_to_end_a_program_stays_with_a_host_in_c(tmp_path):
    """Python's handlers would wait for as long as the host's main thread is in C, so an engine of C's sets none."""
    file = tmp_path / "fed.toml"
    file.write_text(own_ports(profile_text("program-dk")), encoding="utf-8")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with motioncue.Engine(file):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    engine, reason = told(api.start, str(file).encode())
    assert engine, reason
    try:
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        api.stop(engine)
