"""What is checked, a session each:  nox -s lint types,  nox -s tests -- tests/safety,  nox -t check,  nox -t nightly.

`check` is what `.ci/run` runs each time; `nightly` takes an hour and more, and is run whole before a release.  Sessions
without an environment of their own use the one that nox is in: CONTRIBUTING.md says how it is set up.
"""

import datetime
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import nox

ROOT = Path(__file__).parent
KERNELS = ["core", "wire", "frames", "bridge", "cueing", "safety", "platforms", "output"]
"""Rooms whose code is compiled, and whose tests need neither clocks nor sockets."""

nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_external_run = False


def here(*tags):
    """Return a decorator for a session in the environment that nox is in."""
    return nox.session(venv_backend="none", tags=list(tags))


def python(session, *command, **options):
    """Run a module of this environment."""
    session.run(sys.executable, "-m", *command, **options)


@here("check")
def lint(session):
    """Rules and format, of everything."""
    python(session, "ruff", "check", ".")
    python(session, "ruff", "format", "--check", ".")


@here("check")
def types(session):
    """Check the public API by mypy, compiled modules against their stubs."""
    python(session, "mypy")
    stubs = [path.relative_to(ROOT) for path in sorted((ROOT / "motioncue").rglob("*.pyi"))]
    modules = [".".join(path.with_suffix("").parts) for path in stubs if (ROOT / path).with_suffix(".pyx").exists()]
    settings = ["--mypy-config-file", "pyproject.toml", "--allowlist", ".ci/stubtest-allowlist"]
    python(session, "mypy.stubtest", *settings, *modules)


@here()
def tests(session):
    """A quick run, or what is named: nox -s tests -- tests/safety."""
    python(session, "pytest", *session.posargs)


@here("check")
def more(session):
    """Run what a quick run leaves out because it takes a second or two, or uses more than the README names."""
    marked = [path for path in sorted(ROOT.glob("tests/**/*.py")) if "mark.check" in path.read_text(encoding="utf-8")]
    marks = "check and not slow and not search and not alone"
    # One more than the two processors of the machine for which the time is meant: a third of it is waiting.
    options = ["--thin", "-m", marks, "-n", "3", "--dist", "worksteal"]
    python(session, "pytest", *map(str, marked), *options, *session.posargs)


@here("nightly")
def rest(session):
    """Every test that a quick run leaves out; those that need a processor for themselves last, by themselves."""
    python(session, "pytest", "--rest", "-m", "not alone", "-n", "auto", "--dist", "worksteal", *session.posargs)
    python(session, "pytest", "-m", "alone", *session.posargs)


@here("check")
def site(session):
    """Build the documentation as a site: every link in it leads somewhere."""
    python(session, "sphinx", "-q", "-W", "-b", "html", "docs", "build/site")


@here("check")
def benchmarks(session):
    """Every benchmark once, without a figure: `python benchmarks/table.py` measures."""
    python(session, "pytest", "benchmarks", "--benchmark-disable")


@here("check")
def instructions(session):
    """Instructions a call, counted by callgrind, against those that were accepted."""
    session.run(sys.executable, "benchmarks/instructions.py", *session.posargs)


@here("nightly")
def notebooks(session):
    """Every notebook, from its first cell to its last."""
    session.run(sys.executable, "notebooks/execute.py", "--check")
    python(session, "pytest", "--nbmake", "notebooks")


def clean(folder):
    """Return a fresh copy of what is committed."""
    folder.mkdir(parents=True)
    archive = folder.with_suffix(".tar")
    os.system(f"git -c safe.directory='*' -C '{ROOT}' archive -o '{archive}' HEAD")
    shutil.unpack_archive(archive, folder)
    return folder


def distributions(session, folder):
    """Build the source distribution, and the wheel from it, without a warning; return the folder of both."""
    source = clean(folder / "source")
    quick = session.venv_backend == "uv"
    session.install("build[uv]" if quick else "build")
    build = ["build", "--installer", "uv" if quick else "pip", "--outdir", str(folder / "dist"), str(source)]
    built = session.run("python", "-m", *build, silent=True) or ""
    if "Cythonizing motioncue/engine/" not in built or "ffp-contract=off" not in built:
        session.error("the log of the build does not show how it was built")
    marks = ("performance hint:", ": warning:", "warning: motioncue/")
    if warned := [line for line in built.splitlines() if any(mark in line for mark in marks)]:
        session.error("\n".join(warned))
    return folder / "dist"


@nox.session(tags=["check"], venv_backend="uv|virtualenv")
def wheel(session):
    """Source distribution and wheel, installed far from the source: demo, outside extension, what is packed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (wheel_file,) = distributions(session, folder).glob("*.whl")
        session.install(f"{wheel_file}[test]")
        session.chdir(folder)
        where = session.run("python", "-c", "import motioncue; print(motioncue.__file__)", silent=True)
        if "site-packages" not in where:
            session.error(f"imported {where}, not the wheel")
        said = session.run("motioncue", "demo", "--duration", "8", "--json", silent=True)  # rises and sinks as well
        drove = json.loads(said.splitlines()[-1])
        ran = "RUNNING" in [each["to"] for each in drove["transitions"]]
        if not (ran and drove["frames_received"] and drove["packets_sent"]) or drove["rejected"]:
            session.error(f"the demo did not drive: {drove}")
        # What can be missing in a wheel or differ in it: declarations, names, data; its code is that of the tree.
        chosen = {
            "house/test_cimport": [""],
            "house/test_public_api": [""],
            "house/test_readme": [
                "::test_python_of_the_readme_runs_and_prints_what_it_says",
                "::test_profile_of_the_readme_is_accepted",
            ],
            "profile/test_profile": [
                "::test_the_promised_profiles_are_built_in",
                "::test_every_built_in_profile_loads_and_says_what_it_is",
            ],
            "recording/test_recording": [
                "::test_the_sample_is_a_minute_of_driving_with_one_init_package",
                "::test_a_replay_gives_the_offline_cue_bit_for_bit_while_the_weight_is_one",
            ],
        }
        tests = [f"{folder / 'source' / 'tests' / each}.py{name}" for each, names in chosen.items() for name in names]
        settings = ["-c", str(folder / "source" / "pyproject.toml"), "-p", "no:cacheprovider"]
        session.run("pytest", *settings, "-m", "not check", *tests)


@nox.session(tags=["nightly"])
def debug(session):
    """Kernels with bounds, division and initialisation checked; what a kernel cannot raise fails too."""
    with tempfile.TemporaryDirectory() as name:
        tree = clean(Path(name) / "debug")
        session.install(f"{tree}[test]")
        session.run("pip", "uninstall", "-y", "-q", "motioncue")
        session.chdir(tree)
        build = ["python", "setup.py", "-q", "build_ext", "--inplace"]
        session.run(*build, env={"MOTIONCUE_CYTHON_DEBUG": "1"}, silent=True)
        chosen = [f"tests/{room}" for room in (*KERNELS, "engine")]
        marks = "not slow and not rt and not search and not alone"
        options = ["-m", marks, "--thin", "-n", "auto", "-W", "error::pytest.PytestUnraisableExceptionWarning"]
        session.run("python", "-m", "pytest", *options, *chosen, env={"PYTHONPATH": str(tree)})


@nox.session(tags=["nightly"], python=["3.12", "3.13", "3.14"])
def newer(session):
    """Newer Pythons, from the source distribution: what they can change, without real clocks and sockets."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (sdist,) = distributions(session, folder).glob("*.tar.gz")
        session.install(f"{sdist}[test]")
        session.chdir(folder)
        tests = [
            str(folder / "source" / "tests" / room) for room in (*KERNELS, "engine", "profile", "recording", "house")
        ]
        marks = "not slow and not rt and not search and not alone"
        session.run(
            "pytest", "-c", str(folder / "source" / "pyproject.toml"), "-m", marks, "--thin", "-n", "auto", *tests
        )


@here("nightly")
def mutants(session):
    """Put small wrongs into what keeps a platform safe, others each night, and see whether the tests notice."""
    chosen = session.posargs or ["--sample", "80", "--seed", str(datetime.date.today().toordinal())]
    session.run(sys.executable, "tests/mutants/run.py", *chosen)


@here("nightly")
def windows(session):
    """Test the Windows wheel under Wine: pipes, consoles, clocks, sockets, files, another compiler's numbers."""
    options = ["-m", "not slow and not search", "--thin", *(session.posargs or ["../tree/tests"])]
    # Not in this tree: what builds a package here would follow Wine's link to the whole disk.
    folder = Path.home() / ".cache" / "motioncue-windows"
    session.run(".ci/windows", str(folder), *options, env={"PYTHON": sys.executable})


@here("check")
def readme(session):
    """Run the README's two lines on a machine that has what it asks for and nothing else."""
    session.run(".ci/bare", "readme")


@here("nightly")
def newest(session):
    """Run the README's first line on Debian 13, and with the Python of the Debian after it."""
    for suite in ("trixie", "sid"):
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        session.run(*root, "env", f"SUITE={suite}", ".ci/bare", "demo")
