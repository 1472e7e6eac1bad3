"""``motioncue replay``: takes a recording through the engine once more."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from motioncue.cli.common import (
    drive_in,
    echo,
    force_option,
    json_option,
    print_json,
    progress,
    refuse_source,
    set_option,
    shown_by,
    view_option,
)
from motioncue.cli.terminal import print_summary
from motioncue.engine.assembly import load_profile
from motioncue.engine.fitting import gains_for
from motioncue.engine.replay import (
    Difference,
    Progress,
    first_difference,
    keep,
    missing_ticks,
    pieces,
    profile_of,
    repeat,
)
from motioncue.errors import ConfigError, PacketError
from motioncue.profile.profile import Profile, overridden
from motioncue.recording.drive import Drive, hole_text
from motioncue.safety.supervisor import State
from motioncue.scoring.changes import changes
from motioncue.view.access import Address
from motioncue.view.playback import Played


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--profile", metavar="NAME|FILE", help="Profile to use instead of the recording's own.")
@set_option
@click.option(
    "--verify",
    is_flag=True,
    help="Compare every bit with the recorded ticks; exit status 1 if one differs or is missing.",
)
@click.option("--record", "answer", metavar="FILE", type=click.Path(path_type=Path), help="Record the replay.")
@force_option
@view_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[Path, ...],
    profile: str | None,
    overrides: tuple[str, ...],
    verify: bool,
    answer: Path | None,
    force: bool,
    view: Address | None,
    as_json: bool,
) -> None:
    """Take a recording of `motioncue run` through the whole engine once more.

    Every tick reads the same frames as in the run.  With the recording's own settings the ticks are the same, bit for
    bit; with other settings, a table shows the differences.  A run that was rolled over takes all its files.  The last
    seconds of a run are replayed from rest.

    With --view 8765, the drive plays on a page in the browser; what is tuned there is replayed at once.
    Ctrl-C ends it.

    \b
    Example:  motioncue replay drive.mcap --verify
              motioncue replay drive.mcap --profile other.toml --record new.mcap
    """
    file = files[0]
    if answer is not None:
        refuse_source("--record", answer, files)
    drive = drive_in(
        files,
        "found no recording of `motioncue run --record`, which alone can be replayed; `motioncue check` and "
        "`motioncue score` read other recordings",
    )
    settings = _settings(drive, profile, overrides)
    if view is not None and (verify or answer is not None):
        raise ConfigError("--view: allowed is without --verify and --record")
    if verify and settings is not None:
        raise ConfigError("--verify: allowed is the recording's own profile, without --profile and --set")
    missing, holes = missing_ticks(drive), drive.holes
    if verify and missing:
        raise PacketError(f"--verify: {missing}; allowed is a whole run, of a rolled one all files together")
    if missing:
        click.echo(f"{file}: {missing}: replayed from rest, the platform's state at that time is not known", err=True)
    if view is not None:
        _play(drive, settings, view, profile)
        return
    gap = ""
    if holes:
        gap = f"{hole_text(holes[0], drive.zero)}{f', and {len(holes) - 1} more holes' if holes[1:] else ''}"
    if verify and gap:
        drive = drive.between(end_s=1e-9 * (holes[0].begin - drive.zero))
    elif gap:
        click.echo(f"{file}: {gap}: from there on, ticks read the packages that had arrived", err=True)
    difference: Difference | None = None
    states: Counter[int] = Counter()
    with progress(f"replaying {file.name}") as tell:
        if settings is None and answer is None:
            for recorded, ticks in _beside(drive, tell):
                states.update(ticks["state"].tolist())
                difference = difference or first_difference(recorded, ticks)
        else:
            replayed = repeat(drive, settings, progress=tell)
            states.update(replayed.ticks["state"].tolist())
            difference = first_difference(drive.ticks, replayed.ticks) if verify else None
    result: dict[str, Any] = {"ticks": states.total(), "unreadable": list(drive.unreadable)}
    rows = [("ticks", str(states.total())), ("states", _states(states))]
    if drive.unreadable:
        rows.append(("unreadable", "; ".join(drive.unreadable[:3])))
    if verify:
        result |= {
            "identical": difference is None and not gap,
            "hole": gap or None,
            "first_difference": None if difference is None else difference._asdict(),
        }
        rows.append(
            (
                "identical",
                f"{'up to a hole' if gap else 'yes'}, every bit{gap and f': {gap}'}"
                if difference is None
                else f"no: tick {difference.tick}, {difference.channel}: "
                f"recorded {difference.recorded!r}, replayed {difference.replayed!r}",
            )
        )
    if answer is not None:
        with progress(f"writing {answer.name}") as tell:
            written = keep(replayed, answer, force=force, about={"replay of": file.name}, progress=tell)
        rows.append(("recorded", str(written)))
        result["recorded"] = str(written)
    print_summary(f"motioncue replay · {file.name}", rows)
    if settings is not None:
        found = changes(drive, replayed)
        result["changed"] = [row._asdict() for row in found.channels]
        echo("\n".join(found.lines() or ["nothing is different"]))
    if as_json:
        print_json(result)
    if verify and not result["identical"]:
        ctx.exit(1)


def _play(drive: Drive, settings: Profile | None, view: Address, profile: str | None) -> None:
    """Play a recording on a page until Ctrl-C."""
    with progress("replaying") as tell:
        played = Played(drive, settings, progress=tell)
    with shown_by(view, played, profile, plays=True), suppress(KeyboardInterrupt):
        while True:
            time.sleep(1.0)


def _settings(drive: Drive, profile: str | None, overrides: tuple[str, ...]) -> Profile | None:
    """Return the requested profile; None if it is the recording's own."""
    if profile is not None:
        return load_profile(profile, *overrides)
    if not overrides:
        return None
    if not drive.settings:
        raise PacketError("the recording has no settings, allowed is one of a run")
    return overridden(profile_of(drive.settings[0].profile), overrides, gains_for)


def _beside(drive: Drive, tell: Progress) -> Iterator[tuple[npt.NDArray[np.void], npt.NDArray[np.void]]]:
    """Yield recorded and replayed ticks, some thousand at a time."""
    done = 0
    for piece in pieces(drive, progress=tell):
        yield drive.ticks[done : done + len(piece.ticks)], piece.ticks
        done += len(piece.ticks)


def _states(ticks: Counter[int]) -> str:
    """Return a text of the share of ticks in each state."""
    shares = [(State(state).name.lower(), count / ticks.total()) for state, count in sorted(ticks.items())]
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares)
