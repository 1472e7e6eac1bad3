"""Instructions a call of the kernels, counted by callgrind: a measure of speed that no other load disturbs.

python benchmarks/instructions.py              # count, compare with those that were accepted: about a minute
python benchmarks/instructions.py --accept     # count, show, and keep them as what is meant
python benchmarks/instructions.py --print      # those that were accepted, as a table

What is counted are the candidates of the benchmarks: (instructions of two runs - of one run) / calls in a run; or the
median over calls that differ.  Counts of another compiler, Python or processor say nothing about these, so they are
only shown.  Ends with status 1 if a count is more than 1 % above what was accepted, and says so where one is 1 % below:
then accept it, so that it stays.  An instruction that copies a whole structure counts as one, however long it takes.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from building import build

HERE = Path(__file__).resolve().parent
KEPT = HERE / "instructions.json"
TOLERANCE = 0.01
LEFT_OUT = (
    "jitter or replay or adaptive or scipy or numpy or struct or python_loop or recorded"
    " or bench_table or give or agree or allowed"
)
"""Benchmarks of the system's time, those whose candidate another benchmark has, and checks, which count nothing."""
UNEVEN = ("8 rigs",)
"""Beginnings of figures so small that the interpreter's own work around a call differs by more than the tolerance."""


def machine() -> dict[str, str]:
    """Return what the counts depend on beside the code."""
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    models = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)  # decides what libc does
    return {
        "compiler": compiler,
        "python": platform.python_version(),
        "processor": models[0] if models else platform.machine(),
    }


def totals(folder: Path) -> dict[str, float]:
    """Return the instructions a call by figure, from callgrind's files."""
    runs: dict[str, dict[int, float]] = {}
    singly: dict[str, list[float]] = {}
    for path in folder.glob("out.*"):
        text = path.read_text(errors="replace")
        named = re.search(r"Trigger: Client Request: (\d) (\d+) (.+)", text)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
        if named and total and not named[3].startswith(UNEVEN):
            times, items, figure = int(named[1]), int(named[2]), named[3].strip()
            if times:
                runs.setdefault(figure, {})[times] = int(total[1]) / items
            else:
                singly.setdefault(figure, []).append(int(total[1]))
    found = {figure: each[2] - each[1] for figure, each in runs.items() if {*each} == {1, 2}}
    found |= {figure: statistics.median(each) for figure, each in singly.items()}
    return dict(sorted(found.items()))


def count() -> dict[str, float]:
    """Run the benchmarks under callgrind, with little beside them: an import takes ten times as long there."""
    build()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder / 'out'}"]
        few = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"}  # threads wait for one another there
        tests = [
            "pytest",
            str(HERE),
            "-q",
            "-p",
            "pytest_benchmark.plugin",
            "--count",
            "--benchmark-disable",
            "-W",
            "ignore",
            "-k",
            f"not ({LEFT_OUT})",
        ]
        done = subprocess.run(
            [*callgrind, sys.executable, "-m", *tests, "-p", "no:cacheprovider"],
            capture_output=True,
            text=True,
            env={**os.environ, **few},
        )
        if done.returncode:
            sys.exit(f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}")
        return {figure: round(value, 1) for figure, value in totals(folder).items()}


def table(found: dict[str, float], kept: dict[str, float]) -> str:
    """Return counts beside those that were accepted."""
    lines = ["| instructions | accepted | now | change |", "|---|---:|---:|---:|"]
    for figure in sorted({*found, *kept}):
        now, before = found.get(figure), kept.get(figure)
        change = f"{100 * (now / before - 1):+.1f} %" if now and before else ""
        cells = (f"{each:,.0f}" if each is not None else "" for each in (before, now))
        lines.append(f"| {figure} | {' | '.join(cells)} | {change} |")
    return "\n".join(lines)


def main() -> None:
    """Count, compare, or keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="keep what is counted now")
    parser.add_argument("--print", action="store_true", help="print what was accepted, and count nothing")
    chosen = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"counts": {}}
    if chosen.print:
        print(table({}, kept["counts"]))
        return
    found, on = count(), machine()
    print(table(found, kept["counts"]))
    if chosen.accept:
        KEPT.write_text(json.dumps({**on, "counts": found}, indent=1) + "\n")
        return
    if {key: kept.get(key) for key in on} != on:
        print(f"accepted on another machine: {', '.join(str(kept.get(key)) for key in on)}; nothing is compared")
        return
    if missing := sorted({*kept["counts"]} ^ {*found}):
        sys.exit(f"counted only now or only then: {', '.join(missing)}; `--accept` keeps what is counted now")
    more = [each for each in found if found[each] > (1.0 + TOLERANCE) * kept["counts"][each]]
    less = [each for each in found if found[each] < (1.0 - TOLERANCE) * kept["counts"][each]]
    if less:
        print(f"fewer than accepted: {', '.join(less)}; `--accept` keeps it so")
    if more:
        sys.exit(f"more than accepted: {', '.join(more)}")


if __name__ == "__main__":
    main()
