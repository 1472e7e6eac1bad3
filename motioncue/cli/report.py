"""``motioncue report``: one file about a problem, for somebody else."""

import ipaddress
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path, PurePath
from typing import Any

import click

from motioncue import sources
from motioncue._version import __version__
from motioncue.cli.common import drive_in, progress, refuse_source
from motioncue.engine.replay import keep, missing_ticks
from motioncue.errors import ConfigError, PacketError
from motioncue.profile.profile import parse_profile, profile_text
from motioncue.recording.drive import Drive
from motioncue.recording.packages import opening, quoted, recorded_source
from motioncue.recording.recorder import OPENING_BYTES

ELSEWHERE = "192.0.2.1"  # an address for documents (RFC 5737)
HERE = re.compile(r"(127\.[\d.]+|0\.0\.0\.0|localhost|\[::1?\]|)", re.I)
HOST = re.compile(r"\b([a-z][a-z0-9+]*)://(\[[^\]]*\]|[^:/\\\s\"']*)", re.I)
NAMED = ("memory", "pipe", "serial", "unix", "file")  # schemes followed by no host: a name of this machine, or a path
PIPE = re.compile(r"(?<=pipe://)\\\\[^\\\s]+", re.I)  # of another machine
SOCKET = re.compile(r"(?<=unix://)[^\"']*/", re.I)
DEVICE = re.compile(r"(/dev/serial/by-\w+/)[^\s\"'?]+")  # named by its maker and number
PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\\/\s\"'<>|:]+){2,}")
URL = re.compile(r"[a-z]+://\S*", re.I)
HOME = re.compile(r"([\\/](?:home|Users)[\\/]|(?<![\w\\/])~(?=\w+[\\/]))[^\\/]+")
ADDRESS = re.compile(r"(?<![\w.])(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d|\w)")
ADDRESS6 = re.compile(r"(?<![\w:.])(?=[\dA-F]*:)[\dA-F:.]{2,}(?:%\w+)?", re.I)


def anonymized(value: Any) -> Any:
    """Return a value of a profile without hosts of a network, folders, or what a free text may say."""
    if isinstance(value, Mapping):
        return {str(key): _plain_of(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [anonymized(each) for each in value]
    if not isinstance(value, str):
        return value
    text = HOST.sub(_elsewhere, PIPE.sub(r"\\\\.", SOCKET.sub("/", DEVICE.sub(r"\1device", value))))
    text = HOME.sub(r"\1somebody", text)
    if not URL.match(value):
        text = PATH.sub(lambda found: PurePath(found[0].replace("\\", "/")).name, text)
    return ADDRESS6.sub(_elsewhere6, ADDRESS.sub(ELSEWHERE, text))


def _elsewhere(found: re.Match[str]) -> str:
    """Return the beginning of a URL without a host of a network."""
    kept = found[1].lower() in NAMED or HERE.fullmatch(found[2])
    return found[0] if kept else f"{found[1]}://{ELSEWHERE}"


def _elsewhere6(found: re.Match[str]) -> str:
    """Return what looks like an address of IPv6, another one if it is one of a network."""
    try:
        address = ipaddress.IPv6Address(found[0].rstrip(".:"))
    except ValueError:  # a time of day, or a place in a file
        return found[0]
    return found[0] if address.is_loopback or address.is_unspecified else ELSEWHERE


def _plain_of(key: str, value: Any) -> Any:
    """Return the value of a key, by what the key is for."""
    if key == "description":
        return ""
    if key == "allow":  # hosts by themselves: an address or a name
        return [host if HERE.fullmatch(str(host)) else ELSEWHERE for host in value or ()]
    if key in ("folder", "file") and isinstance(value, str):  # also one that is relative
        return PurePath(HOME.sub(r"\1somebody", value).replace("\\", "/")).name
    return anonymized(value)


def _unreadable(texts: tuple[str, ...], files: tuple[Path, ...]) -> Any:
    """Return what could not be read, with the names of the files but not of their folders."""
    for file in files:
        names = {quoted(file): quoted(file.name), str(file): file.name}
        for found, name in names.items():
            texts = tuple(text.replace(found, name) for text in texts)
    return anonymized(texts)


def last_minutes(drive: Drive, minutes: float) -> Drive:
    """Return the last minutes of a drive without hosts, folders and descriptions."""
    about = {key: text for key, text in drive.about.items() if key in ("version", "epoch_ns", "python", "opening")}
    times = [int(rows[-1]) for rows in (drive.ticks["deadline"], drive.motion["time"]) if len(rows)]
    start_s = 1e-9 * (max(times, default=0) - drive.zero) - 60.0 * minutes
    part = drive.between(start_s) if start_s > 0.0 else drive
    if start_s > 0.0:
        start = drive.zero + 1e9 * start_s
        session = max((row.time for row in drive.events if row.what == "connected" and row.time < start), default=None)
        first = next((row for row in drive.packages if session is not None and row.time >= session), None)
        if first is not None and first.time < start and len(first.data) <= OPENING_BYTES:
            about["opening"] = first.data.hex()
    settings = [row._replace(profile=anonymized(row.profile)) for row in part.settings]
    return part._replace(settings=settings, about=about)


LARGEST = 200_000  # [characters] of what a report says that are shown
MOST_MINUTES = 30.0


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to", "target", metavar="FILE", type=click.Path(path_type=Path), help="File to write, else FILE-report.mcap."
)
@click.option(
    "--minutes",
    metavar="MIN",
    type=click.FloatRange(0.1, MOST_MINUTES),
    default=5.0,
    show_default=True,
    help="How much of the drive's end is in it.",
)
@click.option("--say", metavar="TEXT", default="", help="What happened, and when in the drive.")
@click.option("--no-bench", is_flag=True, help="Leave out how punctual this machine is, which takes ten seconds.")
@click.option("--yes", is_flag=True, help="Write it without asking.")
def command(files: tuple[Path, ...], target: Path | None, minutes: float, say: str, no_bench: bool, yes: bool) -> None:
    """Make one file about a problem, to attach to an issue; or show what such a file says.

    It is a recording: the last minutes, the profile, what `check` and `bench` say, and versions, without host names,
    addresses of a network, folders and descriptions.  All that it says is shown before it is written.  Whoever gets it
    reads it with this command; `motioncue replay`, `check` and `export` take it as any recording; nothing in it is run.

    \b
    Example:  motioncue report drive.mcap --say "a jolt at 42 s"
              motioncue report drive-report.mcap
    """
    drive = drive_in(
        files,
        "found neither a recording of a run (`run --record`, `demo --record`) nor a report, which alone are allowed; "
        "what comes in a .zip has to be unpacked",
    )
    if "report" in drive.about and len(files) == 1:
        _show(drive)
        return
    if not drive.settings:
        raise PacketError(
            f"{files[0]}: found no settings, allowed is a recording of a run (`run --record`, `demo --record`)"
        )
    target = files[0].with_name(f"{files[0].stem}-report.mcap") if target is None else target
    refuse_source("--to", target, files)
    part = last_minutes(drive, minutes)
    said = {
        "what": say,
        "made with": {
            "motioncue": drive.about.get("version", "unknown"),
            "python": drive.about.get("python", "unknown"),
        },
        "reported with": {"motioncue": __version__, "python": platform.python_version(), "system": platform.system()},
        "drive": {
            "ticks": len(part.ticks),
            "packages": len(part.packages),
            "replays": missing_ticks(part)
            or ("up to the hole, " if part.holes else "") + "to the bit, with the same build",
            "unreadable": _unreadable(part.unreadable, files),
        },
        "check": _checked(part),
        **({} if no_bench else {"bench": _measured()}),
    }
    text = json.dumps(said, indent=1, default=_plain)
    click.echo(_safe(text))
    click.echo(_safe(json.dumps(part.profile, indent=1)))
    click.echo(
        "Beside this, the file holds the simulator's packages and the motion of the drive as they were, its time of "
        "day, the kept laps that it began with, and the names that you gave. A game may put a player's name into its "
        "packages."
    )
    try:
        agreed = yes or click.confirm(f"Write {target}?")
    except click.Abort:  # nobody can be asked, or said Ctrl-C
        click.echo("\nnothing was written; --yes writes it without asking")
        raise SystemExit(1) from None
    if not agreed:
        click.echo("nothing was written")
        return
    about = {**part.about, "host": "", "system": platform.system(), "report": text}
    written = keep(part, target, about=about)
    click.echo(f"{written}: {written.stat().st_size / 1e6:.1f} MB")


def _show(drive: Drive) -> None:
    """Show what a report says, as text that cannot do anything to a terminal."""
    text = drive.about["report"]
    click.echo(_safe(text[:LARGEST]) + ("" if len(text) <= LARGEST else "\n… the rest is too long to be shown"))
    click.echo(_safe(repr(drive)))


def _safe(text: str) -> str:
    """Return a text without control characters but the ends of lines."""
    return "".join(char if char == "\n" or char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _checked(drive: Drive) -> dict[str, Any] | str:
    """Return what `check` finds in the packages of a drive; in words if it cannot."""
    from motioncue.check.check import check

    system, source = recorded_source(drive.profile), (drive.profile or {}).get("source", {})
    if system is None or not drive.packages:
        return "no packages of a simulator"
    times = [1e-9 * (package.time - drive.packages[0].time) for package in drive.packages]
    packages = [package.data for package in drive.packages]
    try:
        module = sources.source(system)
        if (announced := opening(drive.about, module.intake(module.Options()))) is not None:
            packages, times = [announced, *packages], [0.0, *times]
        found = check(system, packages, times, source.get("options"))
    except (ConfigError, PacketError) as error:
        return str(error)
    return {
        "verdict": found.verdict,
        "changes": found.changes,
        "findings": [[each.name, each.verdict, each.evidence] for each in (*found.findings, *found.wheels)],
        "timing": found.timing._asdict(),
    }


def _measured() -> Any:
    """Return how punctual this machine is, at a quick look."""
    from motioncue.bench.measure import QUICK, measure

    with progress("measuring this machine") as tell:
        result = measure(
            parse_profile(profile_text("ccd-dk"), name="ccd-dk"), QUICK, lambda share, _: tell(round(100 * share), 100)
        )
    return {key: result[key] for key in ("machine", "verdict", "sentence", "granted") if key in result}


def _plain(value: Any) -> Any:
    """Return a value that JSON knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)
