"""FMUs at work: an importer gets bit for bit what `motioncue.bind` computes, and nothing that must not go through."""

import ctypes
import math
import os
import subprocess
import sysconfig
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from fmu_importer import BUILDS, ERROR, INPUTS, OK, REAL, SIZE, WARNING, Unit, bound, drive, sent, unzipped

import motioncue
from motioncue.core.channels import CUE


@pytest.fixture(scope="module", params=["2", "3"])
def rig(request, tmp_path_factory):
    """An FMU of the hexapod that the demo shows, unzipped."""
    if not BUILDS:
        pytest.skip("builds a library")
    return unzipped(tmp_path_factory.mktemp("fmu"), version=request.param)


# --- what is computed -----------------------------------------------------------------------------------------------


def test_a_step_a_tick_gives_the_bits_of_bind_and_of_a_replay(rig):
    motion, stepper, unit = drive(500), bound(), Unit(rig).initialize()
    period = stepper.period_ns * 1e-9
    offline = motioncue.actuate("ccd-hexapod", motioncue.cue("ccd-hexapod", motion))
    for i, row in enumerate(motion):
        assert unit.set(**{name: row[name] for name in INPUTS}) == OK
        assert unit.step(i * period, period) == OK
        stepper.motion[0] = row
        stepper.step()
        got = unit.outputs()
        assert got.tobytes() == sent(stepper.actuation).tobytes() == sent(offline[i : i + 1]).tobytes()
    assert np.ptp(offline["surge"]) > 0.1
    assert unit.log == []


def test_a_profile_without_a_platform_has_the_cue_alone(tmp_path):
    if not BUILDS:
        pytest.skip("builds a library")
    unit, stepper = Unit(unzipped(tmp_path, "ccd-dk-classical")).initialize(), bound("ccd-dk-classical")
    for i in range(200):
        unit.set(sway=2.0, yaw_rate=0.2)
        assert unit.step(i * stepper.period_ns * 1e-9, stepper.period_ns * 1e-9) == OK
        stepper.motion["sway"], stepper.motion["yaw_rate"] = 2.0, 0.2
        stepper.step()
    assert unit.outputs(0).tobytes() == sent(stepper.actuation)[:14].tobytes()
    assert unit.park(True) == ERROR  # there is nothing to park
    values = (REAL * 1)()
    assert unit._reals("Get", [118], values) == ERROR


@pytest.mark.parametrize(
    ("name", "value", "channel", "tilt"),
    [
        ("surge", 2.0, "surge", ("pitch", 1)),
        ("surge", -3.0, "surge", ("pitch", -1)),
        ("sway", 2.0, "sway", ("roll", -1)),
    ],
)
def test_pushes_and_tilts_have_the_documented_signs(rig, name, value, channel, tilt):
    """Who brakes is moved back at first, and tilted nose down while it lasts; to the right, left side down."""
    unit = Unit(rig).initialize()
    place = {each.name: number for number, each in enumerate(CUE)}
    unit.set(**{name: value})
    unit.step(0.0, 0.1)
    assert unit.outputs()[place[f"{channel}_displacement"]] * value > 0.0
    unit.step(0.1, 2.0)
    lean = unit.outputs()[place[tilt[0]]]
    assert math.copysign(1.0, lean) == tilt[1]
    assert abs(lean) > math.radians(2.0)


@pytest.mark.parametrize("steps", [[0.001], [0.01], [0.0075, 0.0011, 0.02, 0.0004], [1.0 / 60.0]])
def test_any_communication_step_does_the_ticks_that_have_ended_with_the_held_input(rig, steps):
    motion, stepper, unit = drive(60), bound(), Unit(rig).initialize(7.0)
    period, done, time, exact = stepper.period_ns, 0, 7.0, Fraction(0)
    for i, row in enumerate(motion):
        duration = steps[i % len(steps)]
        assert unit.set(**{name: row[name] for name in INPUTS}) == OK
        assert unit.step(time, duration) == OK
        time, exact = time + duration, exact + Fraction(duration) * 10**9
        stepper.motion[0] = row
        while (done + 1) * period <= exact + 3:  # [ns] a millionth of a tick, for times that round
            stepper.step()
            done += 1
        if done:
            assert unit.outputs().tobytes() == sent(stepper.actuation).tobytes()
        assert unit.get(99)[0] == time
    assert done > 10


def test_sums_of_steps_that_round_lose_no_tick(rig):
    unit, stepper, time = Unit(rig).initialize(), bound(), 0.0
    period = stepper.period_ns * 1e-9
    unit.set(surge=1.0)
    stepper.motion["surge"] = 1.0
    for _ in range(3000):
        assert unit.step(time, period) == OK
        time += period
        stepper.step()
        assert unit.get(111)[0] == stepper.actuation["surge_displacement"][0]


def test_outputs_before_the_first_tick_are_those_of_a_platform_at_neutral(rig):
    unit = Unit(rig)
    unit.set(surge=5.0, pitch=0.3)
    neutral = motioncue.platform(motioncue.load_profile("ccd-hexapod")).neutral
    for _ in range(2):
        np.testing.assert_allclose(unit.outputs(), [*[0.0] * 14, *neutral], atol=1e-9)
        unit = unit if unit.log else unit.initialize()
        unit.log.append("initialized")


def test_parked_actuators_rise_as_with_bind(rig):
    unit, stepper = Unit(rig), bound()
    assert unit.park(True) == OK
    unit.initialize()
    stepper.parked, period, time = True, stepper.period_ns * 1e-9, 0.0
    first = unit.outputs()[14:]
    for i in range(900):
        if i == 5:
            assert unit.park(False) == OK
            stepper.parked = False
        unit.step(time, period)
        time += period
        stepper.step()
        assert unit.outputs().tobytes() == sent(stepper.actuation).tobytes()
        assert i >= 5 or (unit.outputs()[14:] == first).all()
    assert (unit.outputs()[14:] - first > 0.01).all()  # legs grow from where they rest


# --- what must not go through ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 3.1e5, -1e300])
def test_an_input_that_is_no_motion_is_held_and_told_once(rig, bad):
    unit, stepper = Unit(rig).initialize(), bound()
    period = stepper.period_ns * 1e-9
    stepper.motion["surge"], stepper.motion["sway"] = 1.5, 1.0
    for i in range(40):
        surge = bad if 10 <= i < 20 or i == 30 else 1.5
        assert unit.set(surge=surge, sway=1.0) == (OK if surge == 1.5 else WARNING)
        assert unit.step(i * period, period) == OK
        stepper.step()
        assert unit.outputs().tobytes() == sent(stepper.actuation).tobytes()
    assert len(unit.log) == 2
    status, category, text = unit.log[0]
    assert (status, category) == (WARNING, "logStatusWarning")
    assert text.startswith("set: motion.surge: found ")
    assert text.endswith("allowed is a number up to 300000: the value before is held")


def test_all_inputs_at_their_largest_are_taken_and_give_finite_outputs(rig):
    unit = Unit(rig).initialize()
    assert unit.set(**dict.fromkeys(INPUTS, 3e5)) == OK
    assert unit.step(0.0, 1.0) == OK
    assert np.isfinite(unit.outputs()).all()
    assert unit.log == []


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda u: u.set_numbers({100: 1.0}), "set: found value reference 100, allowed are real inputs"),
        (lambda u: u.set_numbers({0: 9.0, 11: 1.0}), "set: found value reference 11, allowed are real inputs"),
        (lambda u: u._reals("Get", [114], (REAL * 1)()), "get: there is no real variable with value reference 114"),
        (lambda u: u._reals("Get", [124], (REAL * 1)()), "get: there is no real variable with value reference 124"),
        (lambda u: u._reals("Get", [2**32 - 1], (REAL * 1)()), "get: there is no real variable with value ref"),
        (lambda u: u.step(0.5, 0.01), "doStep: found time 0.5 s, allowed is 0.1 s, the last end"),
        (lambda u: u.step(0.0, 0.01), "doStep: found time 0 s, allowed is 0.1 s, the last end"),
        (lambda u: u.step(0.102, 0.01), "doStep: found time 0.102 s"),  # more than half a tick away
        (lambda u: u.step(math.nan, 0.01), "doStep: found time nan s"),
        (lambda u: u.step(0.1, -0.01), "doStep: found a step of -0.01 s, allowed is above 0 up to 3600 s"),
        (lambda u: u.step(0.1, math.nan), "doStep: found a step of nan s"),
        (lambda u: u.step(0.1, 1e9), "doStep: found a step of 1e+09 s"),
        (lambda u: u.enter(0.0), "start time: allowed once, before initialization"),
        (lambda u: u.call("ExitInitializationMode"), "exitInitializationMode: allowed after entering it"),
        (lambda u: u.call("GetString", (ctypes.c_uint32 * 1)(7), SIZE(1), None), "String: no variable is of this type"),
        (lambda u: u.call("GetDirectionalDerivative"), "DirectionalDerivative: found a call, the model description"),
    ],
)
def test_a_wrong_call_is_an_error_and_changes_nothing(rig, act, text):
    unit, untouched = Unit(rig).initialize(), Unit(rig).initialize()
    for each in (unit, untouched):
        each.set(surge=1.0)
        each.step(0.0, 0.1)
    assert act(unit) == ERROR
    ((status, category, said),) = unit.log
    assert (status, category) == (ERROR, "logStatusError")
    assert text in said
    for each in (unit, untouched):
        assert each.step(0.1, 0.1) == OK
    assert unit.outputs().tobytes() == untouched.outputs().tobytes()


def test_steps_are_allowed_between_initialization_and_the_end_only(rig):
    unit = Unit(rig)
    assert unit.step(0.0, 0.1) == ERROR
    assert unit.enter(math.inf) == ERROR
    unit.initialize()
    assert unit.step(0.0, 0.1) == OK
    assert unit.call("Terminate") == OK
    assert unit.get(99)[0] == 0.1  # results can still be read
    assert [unit.step(0.1, 0.1), unit.set(surge=1.0), unit.call("Terminate")] == [ERROR] * 3
    assert unit.call("Reset") == OK
    assert unit.initialize().step(0.0, 0.1) == OK


def test_instances_do_not_know_of_each_other_and_reset_begins_anew(rig):
    first, second = Unit(rig), Unit(rig)
    runs = []
    for unit, surge in ((first, 1.0), (second, -2.0), (first, -2.0)):
        if unit is first and runs:
            assert unit.call("Reset") == OK
            assert unit.get(0)[0] == 0.0
        unit.initialize()
        unit.set(surge=surge)
        unit.step(0.0, 0.4)
        runs.append(unit.outputs())
    second.call("FreeInstance")
    assert first.step(0.4, 0.1) == OK
    assert runs[1].tobytes() == runs[2].tobytes() != runs[0].tobytes()
    first.call("FreeInstance")


def test_what_cannot_be_made_is_refused_and_told(rig, tmp_path):
    wrong = Unit(rig, token="{0}")
    assert not wrong.fmu
    assert wrong.log[0][2].startswith("instantiate: found token {0}, allowed is {")
    nowhere = Unit(rig, resources=(tmp_path / "100% not here").as_uri() if wrong.version == "2" else str(tmp_path))
    assert not nowhere.fmu
    assert "profile.toml' is neither a built-in profile nor a file" in nowhere.log[0][2]
    (tmp_path / "profile.toml").write_text("[source]\n", encoding="utf-8")
    bad = Unit(rig, resources=tmp_path.as_uri() if wrong.version == "2" else str(tmp_path))
    assert not bad.fmu
    assert "source.system: missing" in bad.log[0][2]
    if wrong.version == "2":
        assert "allowed is their folder" in Unit(rig, resources="http://x/resources").log[0][2]


# --- a program without Python ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    program = tmp_path_factory.mktemp("host") / "host"
    source = Path(__file__).parents[1] / "reference" / "fmu_host.c"
    command = [*os.environ.get("CC", "gcc").split(), "-Wall", "-Wextra", "-Werror", str(source), "-o", str(program)]
    subprocess.run([*command, "-ldl"], check=True)
    return program


def hosted(host, rig, environment=()):
    description = ElementTree.parse(rig / "modelDescription.xml").getroot()
    version = description.get("fmiVersion")[0]
    (library,) = (rig / "binaries").glob("*/motioncue.so")
    place = (rig / "resources").as_uri() if version == "2" else f"{rig / 'resources'}/"
    command = [host, version, library, place, description.get("guid") or description.get("instantiationToken")]
    environment = {**os.environ, **dict(environment)}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=100, env=environment)


@pytest.mark.check
def test_a_program_without_python_gets_the_same_bits_and_no_allocation(rig, host):
    if not list(Path(sysconfig.get_config_var("LIBDIR")).glob("libpython3*.so*")):
        pytest.skip("this Python comes without its library")
    done = hosted(host, rig)
    assert done.returncode == 0, done.stderr
    *values, last = done.stdout.split("\n")[:-1]
    assert last == "0 0"  # nothing refused, nothing allocated
    stepper = bound()
    stepper.motion["surge"] = -3.0
    for _ in range(200 * 10_000_000 // stepper.period_ns):
        stepper.step()
    expected = [stepper.actuation[name].item() for name in ("surge", "pitch", "surge_displacement")]
    expected.append(stepper.actuation["actuators"][0, 0])
    assert [float.fromhex(value) for value in values] == expected


@pytest.mark.check
def test_a_python_without_motioncue_is_told(rig, host, tmp_path):
    if not list(Path(sysconfig.get_config_var("LIBDIR")).glob("libpython3*.so*")):
        pytest.skip("this Python comes without its library")
    (tmp_path / "motioncue.py").write_text("raise ImportError('50% of motioncue is missing')\n", encoding="utf-8")
    done = hosted(host, rig, {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 4
    told = "instantiate: 50% of motioncue is missing: the Python of this process needs motioncue; it was exported by "
    assert told in done.stderr
