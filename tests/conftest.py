"""Fixtures shared by the tests: seeded randomness, and an outside extension that uses the kernels' C interface."""

import contextlib
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

# Before numpy is loaded, here and in what tests start: as many tests run side by side as there are processors, and the
# threads of each matrix product would wait for one another, spinning: a design of predictive cueing takes nine times as
# much processor time with two of them.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import motioncue

# Rooms share rigs: those in `support`, and a few that stand where they are tested themselves.
sys.path[:0] = [str(path) for path in sorted(Path(__file__).parent.iterdir()) if path.is_dir()]

# The same examples everywhere, and no deadline: a test never depends on the speed of the machine.
settings.register_profile(
    "motioncue", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("motioncue")
# Newer versions also try the numbers of all modules imported so far, which depend on what else is run.
with contextlib.suppress(ImportError, AttributeError):
    from hypothesis.internal.conjecture import providers

    nothing = providers.Constants()
    providers._get_local_constants = lambda: nothing

# A shell's background jobs and nohup ignore signals, and programs inherit that; the tests' programs must get signals.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for name in ("SIGHUP", "SIGQUIT"):
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run every test; those that are named run without it")
    parser.addoption("--rest", action="store_true", help="run what a quick run leaves out")
    parser.addoption("--thin", action="store_true", help="of each test marked grid, run every 21st point and each name")


def is_quick(config):
    """Say whether a quick run was requested: only the tests needed to trust an installation."""
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    option = config.option
    return not (named or option.keyword or option.markexpr or option.all or option.thin or option.rest)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Spread a quick run over all processors, where pytest-xdist is installed; `-n 0` keeps it in this process."""
    option = config.option
    if is_quick(config) and not hasattr(config, "workerinput") and getattr(option, "numprocesses", 0) is None:
        option.numprocesses, option.dist = os.cpu_count(), "worksteal"


STEP = 21  # of a grid, every 21st point is run where it is thinned


def parameters(item):
    """Return what a test is parametrized with, as pairs of name and value."""
    return item.callspec.params.items() if hasattr(item, "callspec") else ()


def pytest_collection_modifyitems(config, items):
    """Leave tests out where that is asked for.

    Of a thinned grid, every 21st point stays, and one of each name among its parameters: only names differ in kind.
    A quick run thins grids, and in each file the tests of real clocks and sockets; check, slow, alone and search are
    left out.
    Slow and search, none of it waiting, have longer than two minutes: the machine may be busy.
    """
    rest = config.getoption("rest")
    quick = rest or is_quick(config)
    thinned = {"grid", "rt"} if quick else {"grid"} if config.getoption("thin") else set()
    dropped = {"check", "slow", "alone", "search"} if quick else set()
    seen, kinds = Counter(), set()
    kept, left_out = [], []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & {"slow", "search"} and not marks & {"rt", "timeout"}:
            item.add_marker(pytest.mark.timeout(1200))
        if marks & dropped:
            left_out.append(item)
            continue
        series = item.path if "rt" in marks else item.nodeid.partition("[")[0]
        names = {
            (series, key, value) for key, value in parameters(item) if isinstance(value, str) and "rt" not in marks
        }
        thin = marks & thinned and seen[series] % STEP and names <= kinds
        seen[series] += 1
        if thin:
            left_out.append(item)
        else:
            kept.append(item)
            kinds |= names
    if rest:
        kept, left_out = left_out, kept
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search for no garbage while tests are collected: a quarter of the processor time of that went there."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """Take the collected tests out of every later search for garbage: there are thousands, and none is garbage."""
    gc.collect()
    gc.freeze()


PROBE = Path(__file__).parent / "reference" / "probe.pyx"

SETUP = """
from setuptools import Extension, setup
from Cython.Build import cythonize

extension = Extension("motioncue_probe", ["motioncue_probe.pyx"], include_dirs=[{root!r}])
setup(ext_modules=cythonize([extension], include_path=[{root!r}], compiler_directives={{"language_level": 3}}))
"""


@pytest.fixture
def rng():
    """Return a generator with the same seed for every test."""
    return np.random.default_rng(20_160_523)


def write_probe(folder, root):
    """Write the probe's source into `folder`, to be built against the package in `root`."""
    from reference.records import layouts_source

    (folder / "motioncue_probe.pyx").write_text(PROBE.read_text(encoding="utf-8") + layouts_source(), encoding="utf-8")
    (folder / "setup.py").write_text(SETUP.format(root=str(root)), encoding="utf-8")


def loaded(library):
    """Return the extension in a file, whose name begins with the module's."""
    spec = importlib.util.spec_from_file_location(library.name.partition(".")[0], library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    """Return an extension built outside the package from its headers: the C interface, seen from Python."""
    if programs := os.environ.get("MOTIONCUE_PROGRAMS"):  # built on another system, for one without a compiler
        return loaded(next(Path(programs).glob("motioncue_probe.*.pyd")))
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "probe"  # one for all processes
    done = folder / "done"  # or failed
    try:
        folder.mkdir()
    except FileExistsError:
        while not done.exists():
            time.sleep(0.05)
    else:
        try:
            build_probe(folder)
        finally:
            done.mkdir()
    (library,) = (path for path in folder.iterdir() if path.suffix in (".so", ".pyd"))
    return loaded(library)


def build_probe(folder):
    """Build the probe in `folder`."""
    write_probe(folder, Path(motioncue.__file__).parents[1])
    environment = dict(os.environ)
    if sys.platform != "win32" and "CC" not in environment and shutil.which("gcc"):
        environment["CC"] = "gcc"
    # Without optimization the build takes half the time.  Windows' headers define both names: ours do without.
    environment["CFLAGS"] = environment.get("CFLAGS", "") + ("" if sys.platform == "win32" else " -O0 -Dfar= -Dnear=")
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
