"""Put small wrongs into what keeps a platform safe, one at a time, and see whether the tests of that room notice.

python tests/mutants/run.py --sample 300 --seed 1             # so many of all; a minute or less each
python tests/mutants/run.py --only limiter --operator boundary  # those of some files, of one kind
python tests/mutants/run.py --list                            # what there is, and run nothing

Works in a copy of the tree, with what was built, under build/mutants; tests that found the last mutant run first.
A mutant that compiles to the same instructions is no mutant.  Ends with status 1 if one survives that judged.toml does
not list with a reason why it cannot move a platform.
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

from operators import mutants_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TREE = ROOT / "build" / "mutants" / "tree"
ROOMS = {
    "safety": ["motioncue/safety/*"],
    "frames": ["motioncue/frames/*"],
    "platforms": ["motioncue/platforms/*.h", "motioncue/platforms/actuator*"],
}
"""The rooms whose tests have to notice, and the files that are changed."""
QUICK = ("--thin", "-m", "not slow and not rt and not alone and not check and not search")
WHOLE = ("-m", "not rt and not alone")
"""What a mutant is shown to, and what one that survives that is shown to."""


def files_of(room):
    """Return the kernels of a room that are changed; some of its patterns have to match."""
    found = sorted({path for pattern in ROOMS[room] for path in ROOT.glob(pattern)})
    found = [path for path in found if path.suffix in (".pxd", ".pyx", ".h") and path.stat().st_size]
    if not found:
        sys.exit(f"{room}: found no file of {', '.join(ROOMS[room])}")
    return found


def copy_tree():
    """Make a copy of the tree, with times and what was built."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(ROOT, TREE, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", TREE.name))


def run(command, seconds):
    """Return (status, what it printed) of a command in the copy; status is None if it took too long."""
    environment = {**os.environ, "PYTHONPATH": f"{TREE}{os.pathsep}{HERE}", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=TREE, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # a kernel that never ends takes no other signal
        process.communicate()
        return None, ""
    return process.returncode, said


def build():
    """Compile what depends on a changed file; return whether it compiled."""
    return run(["setup.py", "-q", "build_ext", "--inplace"], 1800)[0] == 0


def built():
    """Return a hash of every module, by name."""
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in TREE.glob("motioncue/**/*.so")}


def test(room, chosen, seconds):
    """Return the name of the test that noticed, or None."""
    command = ["-m", "pytest", "-p", "probe_last", "-x", "-q", "--ff", "-n", "0", *chosen, f"tests/{room}"]
    status, said = run(command, seconds)
    if status is None:
        return "(took too long)"
    if status == 5 or not status:
        return None
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.M)
    return named[1] if named else f"(ended with {status})"


def judged():
    """Return the reasons why survivors cannot move a platform, by the line before and after."""
    rows = tomllib.loads((HERE / "judged.toml").read_text(encoding="utf-8")).get("harmless", [])
    return {(row["line"], row["becomes"]): row["why"] for row in rows}


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=60, help="how many mutants; 60")
    parser.add_argument("--seed", type=int, default=1, help="which ones; 1")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--operator", default="", help="only one kind, such as boundary")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no further mutant after this time")
    parser.add_argument("--list", action="store_true", help="print them, and run nothing")
    chosen = parser.parse_args()
    pool = []
    for room in ROOMS:
        for path in files_of(room):
            name = str(path.relative_to(ROOT))
            pool += [(room, each) for each in mutants_of(name, path.read_text(encoding="utf-8")) if chosen.only in name]
    pool = [each for each in pool if chosen.operator in each[1].operator]
    sample = random.Random(chosen.seed).sample(pool, min(chosen.sample, len(pool)))
    print(f"{len(sample)} of {len(pool)} mutants")
    if chosen.list:
        print(*(mutant for _, mutant in sample), sep="\n")
        return 0
    copy_tree()
    if not build():
        sys.exit("the tree does not compile")
    original, began, limits = built(), time.monotonic(), {}
    for room in {room for room, _ in sample}:
        for tests in (QUICK, WHOLE):
            start = time.monotonic()
            if noticed := test(room, tests, 3600):
                sys.exit(f"without a mutant, {noticed} fails")
            limits[room, tests] = 120.0 + 4.0 * (time.monotonic() - start)
    reasons, counts, alive = judged(), Counter(), []
    for room, mutant in sorted(
        sample, key=lambda each: (each[0], each[1].path)
    ):  # restoring rebuilds only between files
        if time.monotonic() - began > 60.0 * chosen.minutes:
            break
        path = TREE / mutant.path
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        lines[mutant.line] = mutant.after
        path.write_text("\n".join(lines), encoding="utf-8")
        if not build():
            verdict = "does not compile"
        elif built() == original:
            verdict = "same instructions"
        else:
            found = test(room, QUICK, limits[room, QUICK]) or test(room, WHOLE, limits[room, WHOLE])
            verdict = f"killed by {found}" if found else "SURVIVES"
            if not found and (reason := reasons.get((mutant.before.strip(), mutant.after.strip()))):
                verdict = f"survives, {reason}"
            elif not found:
                alive.append(mutant)
        counts[verdict.split(" by ")[0].split(",")[0]] += 1
        print(f"{mutant}\n    {verdict}", flush=True)
        path.write_text(text, encoding="utf-8")
    print(f"\n{', '.join(f'{number} {verdict}' for verdict, number in counts.most_common())}; seed {chosen.seed}")
    print(*alive, sep="\n")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
