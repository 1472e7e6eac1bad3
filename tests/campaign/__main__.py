"""Run a part of the campaign and print the table of truth against verdict.

Usage, from the project's root: ``python tests/campaign STEP [OFFSET [DRIVE...]]``; every STEPth case from OFFSET on.
"""

import os
import sys
from multiprocessing import Pool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign.cases import all_cases, confusion, described, run
from campaign.drives import DRIVES
from motioncue.check.check import check


def _outcome(case):
    return run(case, check)


def main(step="31", offset="0", *drives):
    """Print the table, and every case in which `motioncue check` erred."""
    cases = all_cases(drives or DRIVES)[int(offset) :: int(step)]
    with Pool(int(os.environ.get("CAMPAIGN_PROCESSES", "2"))) as pool:
        outcomes = [outcome for outcome in pool.map(_outcome, cases, chunksize=4) if outcome is not None]
    print(confusion(outcomes))
    for outcome in outcomes:
        if outcome.misled or outcome.silent:
            print(described(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
