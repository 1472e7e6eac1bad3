"""An extension outside the package, the one of examples/, steps the kernels and gets the same bits."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from same_bits import assert_same_bits

from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.core.filters import HighPass
from motioncue.cueing import design
from motioncue.profile.profile import parse_profile, profile_text

SOURCE = Path(__file__).parents[2] / "motioncue"
EXAMPLE = Path(__file__).parents[2] / "examples" / "cimport"
RATE_HZ = 333.33

pytestmark = pytest.mark.search


def build(folder, name):
    """Return the extension `name` after running the setup.py in `folder`."""
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    built = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert built.returncode == 0, built.stdout
    assert "performance hint" not in built.stdout
    return loaded(folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}", name)


def loaded(path, name):
    """Return the extension `name` in a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ticks(tmp_path_factory):
    """The example, built against the installed package in a folder of its own."""
    if programs := os.environ.get("MOTIONCUE_PROGRAMS"):  # built elsewhere, for a system without a compiler
        return loaded(next(Path(programs).glob("ticks.*.pyd")), "ticks")
    folder = tmp_path_factory.mktemp("cimport")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("build", "*.c", "*.so", "*.pyd"))
    return build(folder, "ticks")


def test_outside_filter_gives_the_bits_of_the_class(ticks):
    u = np.random.default_rng(1).normal(size=2000)
    filtered = np.empty((len(u), 3))
    ticks.high_pass(u, filtered, 2.5, 0.7, 1.0 / RATE_HZ)
    inside = HighPass(2, 2.5, 0.7, dt=1.0 / RATE_HZ)
    assert_same_bits(filtered, np.array([inside.step(x) for x in u]))


@pytest.mark.parametrize("preset", ["simona", "utias"])
def test_outside_washout_gives_the_bits_of_the_class(ticks, preset):
    rng = np.random.default_rng(2)
    motion = np.zeros(2000, dtype=MOTION_DTYPE)
    for name in MOTION_DTYPE.names:
        motion[name] = rng.normal(size=len(motion)) if MOTION_DTYPE[name].kind == "f" else np.arange(len(motion))
    settings = parse_profile(profile_text("ccd-dk-classical"), overrides=[f"cueing.preset={preset}"]).cueing
    cue = np.zeros(len(motion), dtype=CUE_DTYPE)
    ticks.washout(design(settings, RATE_HZ), motion, cue)
    assert_same_bits(cue, design(settings, RATE_HZ).process(motion))
    assert np.isfinite(cue["surge"]).all()
    assert np.ptp(cue["surge"]) > 0.1


def test_outside_loop_checks_its_arrays(ticks):
    with pytest.raises(ValueError, match="shapes"):
        ticks.high_pass(np.zeros(3), np.zeros((2, 3)), 1.0, 1.0, 0.01)


@pytest.mark.slow
@pytest.mark.skipif("MOTIONCUE_PROGRAMS" in os.environ, reason="builds an extension, which needs a compiler")
def test_every_kernel_can_be_cimported_with_its_headers(tmp_path):
    paths = [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.pxd")) if path.stem != "__init__"]
    assert {Path("core/clock.pxd"), Path("cueing/classical/kernel.pxd"), Path("frames/plausibility.pxd")} <= set(paths)
    lines = []
    for number, path in enumerate(paths):
        lines.append(f"from motioncue.{'.'.join(path.parent.parts)} cimport {path.stem} as room_{number}\n")
    (tmp_path / "ticks.pyx").write_text("".join(lines) + "ready = True\n", encoding="utf-8")
    shutil.copy(EXAMPLE / "setup.py", tmp_path)
    assert build(tmp_path, "ticks").ready
