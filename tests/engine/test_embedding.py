"""Controllers with loops of their own: the examples, and the C header's promises, built outside the tree and run."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import msgspec
import numpy as np
import pytest
from conftest import loaded
from helpers import own_ports
from same_bits import assert_same_bits

import motioncue
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.profile.profile import parse_profile, profile_text

HERE = Path(__file__).parents[1]
EXAMPLES = HERE.parent / "examples"
ELSEWHERE = "MOTIONCUE_PROGRAMS" in os.environ  # for a system without a compiler
BOUNDED = profile_text("ccd-dk-classical") + "[output.limits]\npitch = { value_deg = 1, rate_deg_s = 0.1 }\n"
ROW = np.dtype([("motion", MOTION_DTYPE), ("cue", CUE_DTYPE)])

compiles = pytest.mark.skipif(ELSEWHERE, reason="builds a program, which needs a compiler")
posix = pytest.mark.skipif(sys.platform != "linux", reason="a program for Linux: its clock, its threads, its C library")


def run(command, folder, environment=None):
    """Return the output of a command that succeeds."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copied(name, folder):
    """Return a folder of its own with an example in it, without anything that was built."""
    ignore = shutil.ignore_patterns("build", "*.c", "*.so", "*.pyd") if name == "embed_cython" else None
    return Path(shutil.copytree(EXAMPLES / name, folder, ignore=ignore, dirs_exist_ok=True))


def at(profile, rate_hz):
    """Return a profile for another rate than its platform's."""
    profile = profile if isinstance(profile, motioncue.Profile) else motioncue.load_profile(profile)
    return msgspec.structs.replace(profile, output=msgspec.structs.replace(profile.output, rate_hz=rate_hz))


def assert_is_the_cueing(log, profile, ticks, period=1_000_000):
    """Fail unless a controller's log has all its ticks, on the grid, with the bits of `motioncue.cue`."""
    assert len(log) == ticks
    assert set(np.diff(log["motion"]["time"])) == {period}
    assert_same_bits(log["cue"], motioncue.cue(at(profile, 1000.0), log["motion"]))
    assert np.ptp(log["cue"]["sway"]) > 0.1


# --- Python ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_python_controller_gives_the_cueing(profile):
    namespace = {"__name__": "controller"}
    exec((EXAMPLES / "embed_python" / "controller.py").read_text(encoding="utf-8"), namespace)
    clock = FakeClock()
    time = [clock.now_ns()]

    def sleep(seconds):
        time[0] += round(seconds * 1e9)

    log, late = namespace["run"](profile, 2000, clock=lambda: time[0], sleep=sleep)
    assert_is_the_cueing(log, profile, 2000)
    assert late == 0


@pytest.mark.rt
def test_python_controller_runs_in_real_time(tmp_path):
    folder = copied("embed_python", tmp_path)
    said = run([sys.executable, "controller.py", "ccd-dk-classical", "500", "log"], folder)
    assert_is_the_cueing(np.fromfile(folder / "log", ROW), "ccd-dk-classical", 500)
    assert said.startswith("500 steps of ccd-dk-classical, at worst ")


# --- Cython ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    """The Cython example, built against the installed package in a folder of its own."""
    if ELSEWHERE:
        return loaded(next(Path(os.environ["MOTIONCUE_PROGRAMS"]).glob("controller.*.pyd")))
    folder = copied("embed_cython", tmp_path_factory.mktemp("embed_cython"))
    said = run([sys.executable, "setup.py", "build_ext", "--inplace"], folder)
    assert "performance hint" not in said
    return loaded(folder / f"controller{sysconfig.get_config_var('EXT_SUFFIX')}")


@pytest.mark.search
@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_cython_controller_gives_the_cueing(controller, profile):
    log = np.zeros(5000, ROW)
    steps, late = controller.run(motioncue.bind(profile, rate_hz=1000), FakeClock(wake_ns=70), log)
    assert (steps, late) == (5000, 70)
    assert_is_the_cueing(log, profile, 5000)


# --- C and C++ ------------------------------------------------------------------------------------------------------

CC, CXX = os.environ.get("CC", "gcc").split(), os.environ.get("CXX", "g++").split()
STRICT = ["-Wall", "-Wextra", "-Werror"]
LANGUAGES = {"C": [*CC, *STRICT], "C++": [*CXX, *STRICT, "-std=c++11", "-x", "c++"]}
no_cxx = [
    pytest.mark.check,
    pytest.mark.skipif(shutil.which(CXX[0]) is None, reason=f"no C++ compiler: {CXX[0]} is not on the PATH"),
]


def embedded(source, folder, compiler, *flags):
    """Compile a program that embeds Python as the example does; return its path."""
    places = [Path(folder) for folder in sysconfig.get_config_vars("LIBDIR", "LIBPL") if folder]
    if not any(list(place.glob("libpython*.*")) for place in places):
        pytest.skip("this Python comes without the library that a program is linked with")
    shutil.copy(source, folder / "controller.c")
    shutil.copy(EXAMPLES / "embed_c" / "build.py", folder)
    run([sys.executable, "build.py"], folder, {**os.environ, "CC": " ".join([*compiler, *flags])})
    return folder / "controller"


@pytest.fixture(scope="module", params=["C", pytest.param("C++", marks=no_cxx)])
def program(request, tmp_path_factory):
    """The C example, compiled as either language."""
    return embedded(EXAMPLES / "embed_c" / "controller.c", tmp_path_factory.mktemp("c"), LANGUAGES[request.param])


@compiles
@posix
@pytest.mark.parametrize(("language", "standard"), [("C", "-std=c99"), pytest.param("C++", "-std=c++11", marks=no_cxx)])
def test_header_alone_has_the_layout_of_the_dtypes(tmp_path, language, standard):
    lines = ["#include <motioncue/motioncue.h>", "#include <stdio.h>", "int main(void) {"]
    for name, dtype in {"motion": MOTION_DTYPE, "cue": CUE_DTYPE}.items():
        struct = f"motioncue_{name}"
        lines.append(f'printf("%d\\n", (int)sizeof({struct}));')
        lines += [f'printf("%d\\n", (int)offsetof({struct}, {field}));' for field in dtype.names]
    (tmp_path / "layout.c").write_text("\n".join([*lines, "return 0; }", ""]), encoding="utf-8")
    compiler = [*LANGUAGES[language], standard, "-pedantic"]
    run([*compiler, f"-I{motioncue.get_include()}", "layout.c", "-o", "layout"], tmp_path)
    found = [int(number) for number in run(["./layout"], tmp_path).split()]
    expected = []
    for dtype in (MOTION_DTYPE, CUE_DTYPE):
        expected += [dtype.itemsize, *(dtype.fields[field][1] for field in dtype.names)]
    assert found == expected


@compiles
@posix
@pytest.mark.rt
@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_c_controller_gives_the_cueing_without_a_page_fault(program, profile, tmp_path):
    done = subprocess.run([program, profile, "1000", "log"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    locked = "mlockall" not in done.stderr  # a user may not be allowed to lock so much memory
    assert done.stdout.startswith("1000 steps, 0 page faults, at worst " if locked else "1000 steps, ")
    assert_is_the_cueing(np.fromfile(tmp_path / "log", ROW), profile, 1000)


@compiles
@posix
def test_c_controller_says_what_is_wrong_with_a_profile(program, tmp_path):
    (tmp_path / "rig.toml").write_text("[source]\n", encoding="utf-8")
    done = subprocess.run([str(program), "rig.toml"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert "rig.toml: source.system: missing, allowed is a text: beamng, " in done.stderr


@compiles
@posix
def test_another_version_of_the_header_is_refused(tmp_path):
    header = (Path(motioncue.get_include()) / "motioncue" / "motioncue.h").read_text(encoding="utf-8")
    newer = header.replace("define MOTIONCUE_ABI 3u", "define MOTIONCUE_ABI 4u")
    assert newer != header
    (tmp_path / "motioncue").mkdir()
    (tmp_path / "motioncue" / "motioncue.h").write_text(newer, encoding="utf-8")
    program = embedded(EXAMPLES / "embed_c" / "controller.c", tmp_path, LANGUAGES["C"], f"-I{tmp_path}")
    done = subprocess.run([str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert "ImportError: motioncue: found C interface 3 of " in done.stderr


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """The results of tests/reference/embedding.c."""
    folder = tmp_path_factory.mktemp("facts")
    (folder / "bounded.toml").write_text(BOUNDED, encoding="utf-8")
    (folder / "fed.toml").write_text(own_ports(profile_text("program-dk")), encoding="utf-8")
    return json.loads(run([str(embedded(HERE / "reference" / "embedding.c", folder, CC, *STRICT, "-pthread"))], folder))


@compiles
@posix
def test_steps_in_c_need_no_gil_no_memory_and_no_new_page(facts):
    assert facts["allocations_of_create"] > 0  # they are counted
    assert (facts["steps"], facts["allocations"], facts["faults"]) == (10_000, 0, 0)


@compiles
@posix
def test_table_in_c_is_that_of_the_header(facts):
    assert (facts["abi"], facts["table"], facts["period_ns"]) == (3, 1, 1_000_000)


@compiles
@posix
def test_c_steps_give_the_cueing_and_reset_begins_anew(facts):
    motion = np.zeros(100, MOTION_DTYPE)
    motion["surge"], motion["pitch"], motion["yaw_rate"], motion["time"] = 1.0, 0.1, 0.2, np.arange(100)
    profile = at(parse_profile(BOUNDED), 1000.0)
    cues = motioncue.cue(profile, motion)
    assert [bytes.fromhex(last) for last in facts["hundredth"]] == [cues[-1:].tobytes()] * 2
    sent = motioncue.actuate(profile, cues)[-1:]
    assert 0.0 < sent["pitch"] < cues[-1]["pitch"]
    assert [bytes.fromhex(last) for last in facts["sent"]] == [sent.tobytes()] * 2


@compiles
@posix
def test_c_step_refuses_a_motion_that_is_not_finite(facts):
    assert (facts["taken"], facts["untouched"]) == (0, 1)


@compiles
@posix
def test_steppers_live_and_die_in_threads_without_the_gil(facts):
    assert facts["lived"] == 1


@compiles
@posix
def test_c_retune_gives_the_bits_of_the_stepper_without_an_allocation_in_a_step(facts):
    assert (facts["changed"], facts["allocations_of_join"]) == (1, 0)  # the first change was refused, the second taken
    assert facts["refusal"] == "output.rate_hz: found 100.0, allowed is 1000.0 while it runs"
    stepper = motioncue.bind("ccd-dk-classical", actuation=np.zeros(1, motioncue.ACTUATION_DTYPE), rate_hz=1000)
    stepper.motion["surge"] = 1.0
    for _ in range(500):
        stepper.step()
    before = stepper.cue.tobytes()
    stepper.retune(["cueing.surge.gain=0.1", "output.limits.surge.value_m_s2=0.001"])
    for _ in range(200):
        stepper.step()
    assert [bytes.fromhex(each) for each in facts["joined"]] == [before, stepper.cue.tobytes()]
    assert bytes.fromhex(facts["held"]) == stepper.actuation.tobytes()
    assert stepper.actuation["surge"] != stepper.cue["surge"]


@compiles
@posix
@pytest.mark.rt
def test_physics_loop_in_c_feeds_an_engine(tmp_path):
    program = embedded(EXAMPLES / "feed_c" / "loop.c", tmp_path, LANGUAGES["C"])
    (tmp_path / "fed.toml").write_text(own_ports(profile_text("program-dk")), encoding="utf-8")
    assert run([str(program), "fed.toml", "0.3"], tmp_path).splitlines()[-1] == "30 of 30 frames taken"
    done = subprocess.run([str(program), "ccd-dk"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert done.stderr.startswith("source.endpoint: found 'pipe://DynamicCabPipe', allowed is none")


@compiles
@posix
def test_c_feeds_an_engine_without_gil_and_memory(facts):
    assert facts["fed"] == [10_000, 0, 0]  # frames taken, broken ones taken, allocations
    refused = "source.endpoint: found 'pipe://DynamicCabPipe', allowed is none for an engine that is fed"
    assert facts["started"] == [0, refused]


@compiles
@posix
@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("unknown", "profile: 'no-such-profile' is neither a built-in profile nor a file"),
        ("too fast", "rate_hz: found 1000000.0, allowed is a number from 10 to 2000"),
        ("no profile", "profile: found NULL, allowed is a name or a path"),
        ("not UTF-8", "'utf-8' codec can't decode"),
        ("cut", "profile: 'no-such-"),  # before the character that does not fit whole
        ("no room", "untouched"),
    ],
)
def test_c_create_says_what_was_refused(facts, case, text):
    made, error = facts[case]
    assert not made
    assert error.startswith(text)
    assert case != "cut" or error == text
