"""Run the benchmarks and print the README's table (markdown).

python benchmarks/table.py                  # everything, some eight minutes
python benchmarks/table.py --write          # and put the table into the README, in place of the one there
python benchmarks/table.py --json FILE      # keep the results
python benchmarks/table.py --from FILE      # print what was kept
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy
import scipy
from building import package_flags

import motioncue

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"
BEGIN, END = "<!-- the table, by table.py -->", "<!-- end of the table -->"
COMMAND = "python benchmarks/table.py"
UNITS = {"ns": "ns", "us": "µs", "ms": "ms"}


def run(results: Path) -> None:
    """Run all benchmarks; the results go to `results`."""
    command = [sys.executable, "-m", "pytest", str(HERE), "-q", "--benchmark-quiet", f"--benchmark-json={results}"]
    subprocess.run(command, check=True, stdout=sys.stderr)


def rows_of(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of all benchmarks, in the order in which they ran."""
    return [row for entry in results["benchmarks"] for row in entry["extra_info"].get("rows", [])]


def number(value: float) -> str:
    """Return three digits, or whole numbers; what is not zero never reads as zero."""
    if 0.0 < value < 0.01:
        return f"{value:.1g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 10 else f"{value:.2f}"


def line(row: dict[str, Any]) -> str:
    """Return one row of the table."""
    if "value" in row:
        found, target = (f"{number(row[key])} {row['unit']}".strip() for key in ("value", "target"))
        met = "met" if row["met"] else "missed"
        return f"| {row['figure']} | {row['against']} | **{found}** | | | ≤ {target}, {met} |"
    low, high = row["quartiles"]
    ratio = f"**{number(row['ratio'])}**" + (" times faster" if row["faster"] else "")
    unit = UNITS[row["unit"]]
    target = ""
    if row["target"] is not None:
        target = f"{'≥' if row['faster'] else '≤'} {number(row['target'])}, {'met' if row['met'] else 'missed'}"
    cells = (
        row["figure"],
        row["against"],
        ratio,
        f"{number(low)} … {number(high)}",
        f"{number(row['ours'])} / {number(row['floor'])} {unit}",
        target,
    )
    return "| " + " | ".join(cells) + " |"


def machine(results: dict[str, Any]) -> str:
    """Return what the results were measured on."""
    info = results["machine_info"]
    cpu = info.get("cpu", {})
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return (
        f"{cpu.get('brand_raw', platform.machine())}, {cpu.get('count', '?')} processors, {info['system']} "
        f"{info['release'].split('-')[0]}; Python {info['python_version']}, NumPy {numpy.__version__}, "
        f"SciPy {scipy.__version__}; {compiler}, `{' '.join(package_flags())}`; motioncue {motioncue.__version__}"
    )


def commit(results: dict[str, Any]) -> str:
    """Return what was measured, and when: figures of another commit are not today's."""
    info = results["commit_info"]
    changed = ", changed since" if info["dirty"] else ""
    return f"commit {info['id'][:7]} of {info['time'][:10]}{changed}, measured on {results['datetime'][:10]}"


def put(text: str, into: str) -> str:
    """Return the README with the table in place of the one there."""
    before, begin, rest = into.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md: found no {BEGIN} and {END}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def table(results: dict[str, Any]) -> str:
    """Return the table, with what it was measured on and by which command."""
    return "\n".join(
        [
            f"`{COMMAND}`, {commit(results)}, on {machine(results)}:",
            "",
            "| figure | against, in the same run | ratio | quartiles | ours / theirs | target |",
            "|---|---|---|---|---|---|",
            *map(line, rows_of(results)),
        ]
    )


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Run the benchmarks and print the README's table.")
    parser.add_argument("--json", type=Path, help="keep the results in this file")
    parser.add_argument("--from", dest="source", type=Path, help="print the results in this file, run nothing")
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    options = parser.parse_args()
    if options.source:
        results = options.source.read_text(encoding="utf-8")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.json"
            run(path)
            results = path.read_text(encoding="utf-8")
        if options.json:
            options.json.write_text(results, encoding="utf-8")
    text = table(json.loads(results))
    print(text)
    if options.write:
        README.write_text(put(text, README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
