"""Accept what the engine now does with the drives in data/drives, after an intended change.

python tests/support/accept.py                  # replay each, show what has changed, keep it
python tests/support/accept.py beamng morai     # only these
python tests/support/accept.py --anew           # record them again: after a change of the records or of their making
"""

import sys

from kept_drives import FOLDER, MAKINGS, keep_drive, path_of, record

from motioncue.engine.replay import repeat
from motioncue.recording.recording import read
from motioncue.scoring.changes import TOLERANCE, changes


def differences(system, folder=FOLDER, tolerance=TOLERANCE):
    """Return the differences from the accepted drive as a table; empty if there are none."""
    drive = read(path_of(system, folder))
    lines = changes(drive, repeat(drive), tolerance).lines()
    return [f"{system}:", *(f"  {line}" for line in lines)] if lines else []


def accept(system, folder=FOLDER):
    """Show the changes of a drive, and store it; return whether there were any."""
    lines = differences(system, folder)
    if lines:
        print("\n".join(lines))
        keep_drive(system, repeat(read(path_of(system, folder))), folder)
    return bool(lines)


def main(arguments, folder=FOLDER):
    """Run the command line."""
    anew = "--anew" in arguments
    names = [argument for argument in arguments if argument != "--anew"] or list(MAKINGS)
    if not set(names) <= set(MAKINGS):
        print(f"{__doc__}\nfound {' '.join(names)}, allowed are {', '.join(MAKINGS)}", file=sys.stderr)
        return 2
    if anew:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            print(f"{name}: recorded, {record(name, folder).stat().st_size} bytes")
        return 0
    accepted = [name for name in names if accept(name, folder)]
    print(f"accepted: {', '.join(accepted) or 'nothing has changed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
