"""``motioncue check``: examines what a source reports."""

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from motioncue import sources
from motioncue.cli.common import (
    changes_option,
    duration_option,
    echo,
    json_option,
    logged,
    pick_options,
    print_json,
    source_options,
)
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.terminal import print_summary, reasons
from motioncue.core.threads import RecordRing
from motioncue.errors import ConfigError, PacketError, meant
from motioncue.profile.profile import Profile, builtin_profiles, parse_profile
from motioncue.recording.packages import (
    ANY,
    SAID,
    Pick,
    contents,
    parse_recording,
    quoted,
    system_by,
    system_of,
    why_not,
)
from motioncue.recording.recorder import RING_BYTES, sorted_out
from motioncue.recording.schema import Package
from motioncue.transports.endpoint import FORMS, parse_endpoint

QUIET_S = 0.5  # without another datagram, the simulator is waiting for an answer that only a known system gives
JUDGED = ("source.options.", "source.acceleration=", "watch.")  # keys that --set may change without a profile
SUSPECTS = 3  # explanations to name
MANEUVERS = 2  # to propose: those that settle most
MARKS = {"ok": "ok", "wrong": "WRONG", "unknown": "?"}


REMEDY = (
    "look at the simulator's version and settings; if they are right, record the drive (motioncue listen) and report it"
)
OWN = "compare your description with the simulator's document: offsets and types first, then signs, axes and units; no "
OWN += "one or two of its signs, units, orders and axes that were tried explain the drive"
REMEDIES = {
    "frame time": "have the simulator send its time in the document's unit; for a file without times, give --rate",
    "velocity and position": "have the simulator send both in the document's unit and axes; velocity gives the speed, "
    "position only tells teleports",
    "continuity": "if everything else is right, raise the thresholds in [watch]",
    "frames": "compare the simulator's version with the document's; motioncue decode shows what is in a packet",
}
"""What to do about a finding that no option of the source cures."""

SCALED = {
    "(in g?)": "if it is in g, give the acceleration's fields unit = 'g' in [source.packet]",
    "taken as g?)": "if it is in m/s^2, give the acceleration's fields unit = 'm/s^2' in [source.packet]",
    "(velocity in km/h?)": "one of these: the velocity is in km/h (give its fields unit = 'km/h' in [source.packet]), "
    "or the acceleration's scale is wrong; the drive does not tell which",
    "(velocity in mph?)": "one of these: the velocity is in mph (give its fields unit = 'mph' in [source.packet]), "
    "or the acceleration's scale is wrong; the drive does not tell which",
    "(velocity in knots?)": "one of these: the velocity is in knots (give its fields unit = 'kn' in [source.packet]), "
    "or the acceleration's scale is wrong; the drive does not tell which",
}
"""What to do about a channel that is a multiple of what it should be, by the unit that its evidence names."""

WHEELS = {
    "turn the sign": "turn the sign of suspension_front_left and so on in [source.packet]: scale = -1, or without the "
    "minus that is there; that of suspension_velocity_front_left and so on too",
    "front and rear": "exchange front and rear in the names of the suspension's channels in [source.packet]",
    "left and right": "exchange left and right in the names of the suspension's channels in [source.packet]",
}
"""What to do about a wrong sense of the suspension, by what its evidence names."""

MULTIPLE = "one of these has another unit or scale than is said: the channel, or what it is compared with; give the "
MULTIPLE += "field its unit or scale in [source.packet], or set the simulator's"


class Examined(NamedTuple):
    """The packages to examine, and where they come from."""

    system: sources.System
    packages: list[bytes]
    times: list[float] | None
    profile: Profile
    what: str
    rejected: Mapping[str, int] = {}
    """Parts of a capture that are not packages, by reason."""


@click.command()
@click.argument("target", metavar="SOURCE|FILE")
@click.argument("file", metavar="[FILE]", required=False)
@source_options
@click.option("--at", "endpoints", metavar="ENDPOINT", multiple=True, help="Where to listen; repeatable.")
@changes_option("Change a key of the profile, or an option of the source; repeatable.")
@pick_options
@duration_option("How long to watch a live source; 60 s if not given, Ctrl-C ends it.")
@json_option
def command(
    target: str,
    file: str | None,
    system: str | None,
    endpoints: tuple[str, ...],
    overrides: tuple[str, ...],
    rate: float | None,
    ports: tuple[int, ...],
    sender: str | None,
    duration: float | None,
    as_json: bool,
) -> None:
    """Examine a source: rate, jitter, gaps, and whether its signs, axes and units hold.

    SOURCE is a profile, a system (with --at) or an endpoint; FILE a recording or network capture, read as SOURCE says.
    Exit status 1: something is wrong.  Nothing is sent but the answers that a simulator waits for.

    \b
    Example:  motioncue check ccd-dk --duration 60
              motioncue check rally.toml drive.pcap
    """
    from motioncue.check.check import check

    heard = _received(target, file, system, endpoints, overrides, rate, duration, Pick(ports, sender))
    source = heard.profile.source
    try:
        report = check(
            heard.system,
            heard.packages,
            heard.times,
            source.options,
            acceleration=source.acceleration,
            watch=heard.profile.watch,
            rate_hz=rate,
        )
    except PacketError as error:
        raise PacketError(f"{quoted(heard.what)}: {error}") from error
    rejected = Counter(report.timing.rejected) + Counter(heard.rejected)
    report = report._replace(timing=report.timing._replace(rejected=dict(rejected)))
    _print(heard, report)
    if as_json:
        print_json(
            {
                "system": str(heard.system),
                "verdict": report.verdict,
                "timing": report.timing._asdict(),
                "findings": [finding._asdict() for finding in report.findings],
                "wheels": [finding._asdict() for finding in report.wheels],
                "options": [option._asdict() for option in report.options],
                "changes": report.changes,
                "either": report.either,
                "mended": report.mended,
                "left": report.left,
                "suspected": report.suspected,
            }
        )
    if report.verdict == "wrong":
        raise click.exceptions.Exit(1)


def _received(
    target: str,
    file: str | None,
    system: str | None,
    endpoints: tuple[str, ...],
    overrides: tuple[str, ...],
    rate: float | None,
    duration: float | None,
    pick: Pick,
) -> Examined:
    profile = target in builtin_profiles() or target.endswith(".toml")
    if file is not None and system is not None:
        raise click.UsageError(f"--system: {target} says it already")
    if file is not None and not profile:
        target, file, system = file, None, target
    live = file is None and (profile or "://" in target or (target in sources.SYSTEMS and not Path(target).exists()))
    foreign = [key for key in overrides if not profile and not key.startswith(JUDGED)]
    if foreign:
        raise click.UsageError(
            f"--set: found {foreign[0]!r}, allowed without a profile are source.options, source.acceleration and watch"
        )
    if live and rate is not None:
        raise click.UsageError("--rate is for files that say no times")
    if live and pick != ANY:
        raise click.UsageError("--port and --from are for network captures")
    if not live and (endpoints or duration is not None):
        raise click.UsageError("--at and --duration are for live sources")
    if profile and system is not None:
        raise click.UsageError("--system: a profile says it itself")
    if profile:
        from motioncue.engine.assembly import load_profile

        loaded = load_profile(target, *overrides)
        packet = loaded.source.packet
        described = loaded.source.system if packet is None else sources.DescribedSource(packet, target)
        if file is not None:
            return _file(file, described, loaded, pick)
        return _live(described, endpoints or loaded.source.endpoints, loaded, duration)
    if "://" in target:
        parse_endpoint(target, tuple(FORMS) if system is None else sources.source(system, "--system").SCHEMES, "SOURCE")
        return _live(system, (target, *endpoints), overrides, duration)
    if live:
        if not endpoints:
            raise ConfigError(f"--at: missing, where to listen for {target}")
        return _live(target, endpoints, overrides, duration)
    if not Path(target).exists() and system is None:
        known = (*builtin_profiles(), *sources.having("intake"))
        allowed = f"files, endpoints, and {', '.join(known)}{meant(target, known)}"
        raise ConfigError(f"{quoted(target)}: no such file; allowed are {allowed}")
    return _file(target, system, overrides, pick)


def _settings(system: sources.System, overrides: tuple[str, ...]) -> Profile:
    """Return a profile of a system with overrides; a described one is read as its profile says, others by default."""
    from motioncue.engine.assembly import options_of

    module = sources.source(system)
    own = module if isinstance(module, sources.DescribedSource) else None
    reading = "" if own is None else f", acceleration = {json.dumps(own.derivation.acceleration)}, options = {{ "
    if own is not None:
        reading += ", ".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in own.options.items()) + " }"
    text = f"""
        source = {{ system = {json.dumps("described" if own else str(system))}, endpoint = ""{reading} }}
        cueing = {{ algorithm = "direct" }}
        output = {{ system = "dk", motion = "" }}
    """
    profile = parse_profile(text, name="--set", overrides=overrides)
    if own is not None:
        source = msgspec.structs.replace(profile.source, system="custom", packet=own.table)
        profile = msgspec.structs.replace(profile, source=source)
    options_of(profile)
    return profile


def _file(file: str, system: sources.System | None, settings: Profile | tuple[str, ...], pick: Pick) -> Examined:
    if system is not None:
        sources.source(system, "--system")
    data = contents(file, quoted(file))
    name = system or system_of(data, quoted(file), "--system", pick)
    packages, times, _, rejected, unreadable = parse_recording(data, quoted(file), name, pick=pick)
    for line in unreadable[:SAID]:
        click.echo(f"{quoted(file)}: {line}", err=True)
    profile = settings if isinstance(settings, Profile) else _settings(name, settings)
    return Examined(name, packages, times, profile, file, rejected)


def _live(
    system: sources.System | None,
    endpoints: tuple[str, ...],
    settings: Profile | tuple[str, ...],
    duration: float | None,
) -> Examined:
    from motioncue.engine.reception import Reception, check_endpoints
    from motioncue.wire.packet import Derivation

    duration = 60.0 if duration is None else duration
    end = time.monotonic() + duration
    with Interrupts() as interrupts, logged(live=False):
        if system is None:
            system = _system_of_datagrams(endpoints[0], end, interrupts)
            end = time.monotonic() + duration  # to find the system took some of it
        module = sources.source(system)
        profile = settings if isinstance(settings, Profile) else _settings(system, settings)
        source = profile.source
        check_endpoints(module, endpoints, name="--at")
        intake = module.intake(
            msgspec.convert(source.options, module.Options), derivation=Derivation(source.acceleration)
        )
        ring = RecordRing(RING_BYTES)
        intake.record(ring)
        heard: list[Package] = []
        reception = Reception(intake, endpoints, allow=source.allow)
        thread = threading.Thread(target=reception.run, name="motioncue check", daemon=True)
        thread.start()
        try:
            click.echo(f"watching {system} at {', '.join(endpoints)} for {duration:g} s, Ctrl-C ends it", err=True)
            shown = time.monotonic() + 5.0
            while not interrupts.count and time.monotonic() < end:
                time.sleep(max(0.0, min(0.1, end - time.monotonic())))
                heard += sorted_out(ring.take()).packages
                if time.monotonic() > shown:
                    shown += 5.0
                    click.echo(f"  {intake.accepted} frames, {end - time.monotonic():.0f} s to go", err=True)
        finally:
            reception.stop()
            thread.join()
            reception.close()
    heard += sorted_out(ring.take()).packages
    if not heard:
        unheard = f" but what was refused ({reasons(intake.rejected)})" if intake.rejected else ""
        raise PacketError(
            f"{', '.join(endpoints)}: nothing came{unheard} in {duration - max(0.0, end - time.monotonic()):.3g} s"
        )
    times = [(package.time - heard[0].time) * 1e-9 for package in heard]
    packages = [package.data for package in heard]
    return Examined(system, packages, times, profile, ", ".join(endpoints))


def _system_of_datagrams(url: str, end: float, interrupts: Interrupts) -> str:
    """Return the system whose datagrams arrive at an endpoint; a stream is City Car Driving's."""
    from motioncue.transports.endpoint import open_receiver

    scheme = parse_endpoint(url).scheme
    if scheme == "memory":
        raise ConfigError(f"--system: missing for {url}; `motioncue listen --find` names the profile that fits")
    if scheme != "udp":
        return "city-car-driving"
    heard: list[bytes] = []
    with open_receiver(url) as listening:
        listening.settimeout(0.1)
        last = 0.0
        while len(heard) < 40 and not interrupts.count and time.monotonic() < end:
            try:
                heard.append(listening.recv(65536))
            except TimeoutError:
                if heard and time.monotonic() - last > QUIET_S:
                    break
                continue
            last = time.monotonic()
    if not heard:
        raise PacketError(f"{url}: nothing came")
    return system_by(
        lambda name: [data for data in heard if why_not(sources.system(name), data) is None], url, "--system"
    )


def _print(heard: Examined, report: Any) -> None:
    timing = report.timing
    steadily = ", ".join(f"{key} {value:.2f}" for key, value in timing.interval_ms.items())
    rows = [
        ("frames", f"{timing.frames}, {timing.rate_hz or 0.0:.2f} a second by {timing.clock} time"),
        ("intervals", f"{steadily} ms; 99 % within {timing.jitter_ms or 0.0:.2f} ms of the median"),
        ("repeats", str(timing.repeats)),
        ("gaps", f"{timing.gaps}" + (f", the longest {timing.longest_gap_s:.2f} s" if timing.longest_gap_s else "")),
        ("rejected", reasons(timing.rejected)),
    ]
    print_summary(f"motioncue check · {heard.system}, {heard.what}", rows)
    for finding in (*report.findings, *report.wheels):
        echo(f"  {MARKS[finding.verdict]:<5}  {finding.name}: {finding.evidence}", indent=9)
    for option in report.options:
        echo(f"  {MARKS[option.verdict]:<5}  {option.key} = {option.value!r}: {option.evidence}", indent=9)
    _print_advice(report, isinstance(sources.source(heard.system), sources.DescribedSource))
    asked: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.verdict == "unknown" and finding.maneuver:
            asked.setdefault(finding.maneuver, []).append(finding.name)
    for maneuver, names in sorted(asked.items(), key=lambda row: -len(row[1]))[:MANEUVERS]:
        echo(f"to settle {', '.join(names)}: {maneuver}", indent=2)
    open_ = [finding.name for finding in report.findings if finding.verdict == "unknown"]
    open_ += [option.key for option in report.options if option.verdict == "unknown"]
    words = {
        "ok": "every sign holds",
        "wrong": "something is wrong",
        "unknown": f"nothing contradicts; not shown by this drive: {', '.join(open_)}",
    }
    echo(words[report.verdict], indent=2)


def _print_advice(report: Any, described: bool) -> None:
    """Print what cures the findings, and what to do about those without a cure."""
    for key, value in report.changes.items():
        echo(f"change the profile: {_said(key, value)}")
    if report.changes:
        echo(f"with that, examined again: {', '.join(report.mended)} mended, nothing else worse", indent=2)
    for change in report.either:
        said = "one of these would mend it" if len(report.either) > 1 else "this would mend it"
        echo(f"{said}: " + ", ".join(_said(key, value) for key, value in change.items()), indent=2)
    if report.either:
        told = "which" if len(report.either) > 1 else "whether it is right"
        echo(f"the drive does not tell {told}: settle more, and examine again", indent=2)
    found = {finding.name: finding for finding in report.findings}
    if report.suspected:
        what = "; or ".join(report.suspected[:SUSPECTS])
        echo(f"no option mends that, and this would explain it: {what}", indent=2)
        echo("look at the simulator's settings and version, or what converts its data", indent=2)
    for name in report.left if not (report.either or report.suspected) else ():
        echo(f"no option mends {name}: {_remedy(found[name], described)}", indent=2)
    wrong = [finding for finding in report.wheels if finding.verdict == "wrong"]
    if wrong:  # two have the same cure
        cure = " or ".join(cure for said, cure in WHEELS.items() if said in wrong[0].evidence)
        echo(f"to mend {' and '.join(finding.name for finding in wrong)}: {cure}", indent=2)


def _said(key: str, value: Any) -> str:
    """Return a change of the profile in words; a correction of the description says itself what to write."""
    return f"in your description, [source.packet]: {value}" if key == "source.packet" else f"{key} = {value!r}"


def _remedy(finding: Any, described: bool = False) -> str:
    """Return what to do about a wrong finding that no option of the source cures."""
    if not finding.times:
        return REMEDIES.get(finding.name, OWN if described else REMEDY)
    return next((text for unit, text in SCALED.items() if unit in finding.evidence), MULTIPLE)
