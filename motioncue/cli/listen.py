"""``motioncue listen``: plays the platform, or watches a simulator."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from motioncue import sources
from motioncue.cli.common import (
    described,
    duration_option,
    json_option,
    logged,
    naming_systems,
    packet_option,
    print_json,
    record_source_options,
    source_recorder,
)
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.terminal import (
    PERIOD_S,
    History,
    Rate,
    Screen,
    View,
    chassis_facts,
    microseconds,
    platform_rows,
    print_summary,
    reasons,
    recorded,
    wanted,
)
from motioncue.core.threads import RecordRing
from motioncue.drive.peers import DatagramListener
from motioncue.engine.assembly import load_profile
from motioncue.engine.reception import Listener, check_endpoints, readable_games
from motioncue.errors import ConfigError
from motioncue.output.described import Described
from motioncue.profile.profile import Profile, builtin_profiles
from motioncue.recording.recorder import RING_BYTES
from motioncue.transports.endpoint import parse_endpoint
from motioncue.view.model import CHANNELS, Channel, values_of

log = logging.getLogger("motioncue")

HINT = "Ctrl-C ends it"
QUIET_S = 0.5  # without a packet until a stream is shown as waiting


def find(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Show which games can be read now, and end the command."""
    if not wanted or context.resilient_parsing:
        return
    games = readable_games()
    for profile, where in games:
        click.echo(f"{profile:22}  {where}")
    if not games:
        click.echo("no game's shared memory changes now: start one that a profile with memory:// is for, and drive")
    context.exit()


@click.command()
@click.option(
    "--find",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=find,
    help="Show whose shared memory can be read now, with the profile that fits, and end.",
)
@click.argument("system", metavar="SYSTEM")
@click.option(
    "--at",
    "endpoints",
    metavar="ENDPOINT",
    multiple=True,
    help="Where; repeatable for UDP.  A simulator's profile says it.",
)
@click.option(
    "--allow", "hosts", metavar="HOST", multiple=True, help="Host that a simulator may send from; repeatable."
)
@packet_option
@duration_option("How long to listen; until a signal if not given.")
@record_source_options(
    "Record what a simulator says, with arrival times, as MCAP: for simulate, check, decode, export.  Only what "
    "`motioncue run --record` writes can be replayed."
)
@json_option
def command(
    system: str,
    endpoints: tuple[str, ...],
    hosts: tuple[str, ...],
    packet: str | None,
    duration: float | None,
    file: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Play a platform and show what it is sent, or serve a simulator and show what it says.

    SYSTEM is <systems>, or custom with --packet.
    A profile's platform is played at the profile's outputs, and its simulator is heard at its source.endpoint.

    \b
    Example:  motioncue listen dk --at udp://:4445 --at udp://:4444
    """
    live = wanted()
    options: Mapping[str, Any] = {}
    if (system.endswith(".toml") or system in builtin_profiles()) and packet is None:
        module, system, options, endpoints = end_of(load_profile(system), system, endpoints)
    else:
        module = described(system, packet)
    if not endpoints:
        raise click.UsageError("--at: missing, where to listen")
    platform = hasattr(module, "STREAMS")
    if file is not None and platform:
        raise click.UsageError(f"--record is for what simulators say, {system} is a platform")
    if hosts and platform:
        raise click.UsageError(f"--allow is for what simulators say, {system} is a platform")
    with Interrupts() as interrupts:
        if platform:
            stats, rows = _platform(system, module, endpoints, duration, interrupts, live)
        else:
            stats, rows = _simulator(system, options, endpoints, hosts, duration, interrupts, live, file, force)
        interrupts.over = True
        print_summary(f"motioncue listen · {system}", rows)
        if as_json:
            print_json(stats)


naming_systems(command, "identify")


def end_of(
    profile: Profile, name: str, endpoints: tuple[str, ...]
) -> tuple[Any, str, Mapping[str, Any], tuple[str, ...]]:
    """Return which of a profile's ends endpoints belong to: its packets, its name, its options, and where it is."""
    source, places = profile.source, [_place(url) for url in endpoints]
    sent = {url: output for output in profile.outputs for url in (output.motion, output.gauges) if url}
    own = sources.by_profile(name)
    output = next((output for url, output in sent.items() if _place(url) in places), None)
    if output is None and not places and own is None and any(each.packet for each in profile.outputs):
        heard = f"--at {' --at '.join(source.endpoints)} for its simulator, " if source.endpoints else ""
        raise ConfigError(f"--at: missing, allowed are {heard}--at {' --at '.join(sent)} for its platform")
    if output is None and own is not None:
        return own, name, {}, endpoints or source.endpoints
    if output is None and (not places or any(place in map(_place, source.endpoints) for place in places)):
        return sources.source(source.system), source.system, source.options, endpoints or source.endpoints
    output = output or profile.outputs[0]
    if output.packet is None:
        return sources.platform(output.system), output.system, {}, endpoints
    return Described(output.packet), "custom", {}, endpoints


def _place(url: str) -> tuple[str, int, str]:
    """Return what two URLs of one place share, whatever host they name: scheme, port, path."""
    endpoint = parse_endpoint(url, name="--at")
    return endpoint.scheme, endpoint.port, endpoint.path


Outcome = tuple[dict[str, Any], list[tuple[str, str]]]


def _platform(
    system: str, module: Any, endpoints: Sequence[str], duration_s: float | None, interrupts: Interrupts, live: bool
) -> Outcome:
    """Play the platform; return its statistics and the rows of a summary."""
    for url in endpoints:
        parse_endpoint(url, ("udp", "serial") if isinstance(module, Described) else ("udp",), "--at")
    listener = DatagramListener(module, endpoints)
    thread = threading.Thread(target=listener.run, name="motioncue listen", daemon=True)
    thread.start()
    try:
        with logged(live=live), Screen(live=live) as screen:
            log.info("waiting for packets at %s", ", ".join(endpoints))
            view = PlatformView(listener, module, f"motioncue listen · {system} at {', '.join(endpoints)}", duration_s)
            elapsed_s = wait(view, screen, interrupts, duration_s)
    finally:
        listener.stop()
        thread.join()
        listener.close()
    stats = {"duration_s": elapsed_s, **listener.stats()}
    main = main_stream(stats["streams"])
    stats |= {key: main.get(key) for key in ("rate_hz", "interval_us", "last")}
    rows = [("duration", f"{elapsed_s:.1f} s"), *platform_rows(Path(system).stem.upper(), stats)]
    return stats, [*rows, ("rejected", reasons(stats["rejected"]))]


def main_stream(streams: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the statistics of the stream that moves the platform, or of the only one there is."""
    nothing: Mapping[str, Any] = {"rate_hz": 0.0}
    return streams.get("motion") or next(iter(streams.values()), nothing)


def rows_of(module: Any) -> Sequence[Channel]:
    """Return the rows that show a platform's packet: the cue's channels, or of a described one all its numbers."""
    known = {channel.name: channel for channel in CHANNELS}
    values = getattr(module, "values", known)
    names = {name: getattr(values.get(name), "channel", None) for name in getattr(module, "numbers", known)}
    rows = {channel or name: known.get(channel or name) for name, channel in names.items()}
    return [row or Channel(name, name.replace("_", " ")[:13], "", 1.0, 1.0) for name, row in rows.items()]


class PlatformView:
    """Makes views of what a platform receives."""

    def __init__(self, listener: DatagramListener, module: Any, title: str, total_s: float | None) -> None:
        self._listener, self._title, self._total_s = listener, title, total_s
        self._history = History([("cue", "cue")], rows_of(module))
        self._rates: dict[str, Rate] = {}
        self._count, self._changed_s = 0, -QUIET_S
        self._interval: Mapping[str, float | None] = {}
        self._interval_s = -1.0

    def _values(self) -> dict[str, float]:
        """Return the newest packet's numbers: the cue's channels [SI], the others as they are sent."""
        sent = {name: value for name, value in self._listener.last("motion").items() if isinstance(value, int | float)}
        return sent | values_of(self._listener.channels("motion"))

    def __call__(self, elapsed_s: float) -> View:
        """Return the current view."""
        listener = self._listener
        received = dict(listener.received)
        if sum(received.values()) != self._count:
            self._count, self._changed_s = sum(received.values()), elapsed_s
        if elapsed_s - self._interval_s > 0.5:  # quantiles of many intervals take a while to compute
            self._interval_s = elapsed_s
            self._interval = main_stream(listener.stats()["streams"]).get("interval_us") or {}
        rates = [
            (name, f"{self._rates.setdefault(name, Rate()).add(elapsed_s, count):5.1f} packets/s")
            for name, count in received.items()
        ]
        every = [("every" if key == "p50" else key, microseconds(us)) for key, us in self._interval.items() if us]
        return View(
            title=self._title,
            state="receiving" if elapsed_s - self._changed_s < QUIET_S else "waiting",
            elapsed_s=elapsed_s,
            total_s=self._total_s,
            facts=[rates, [*every, ("rejected", str(sum(listener.rejected.values())))]],
            series=self._history.add(elapsed_s, [self._values()]),
            channels=self._history.channels,
            scales=self._history.scales,
            messages=[
                f"{len(senders)} programs send {name} in turn: {', '.join(senders)}; a platform would get both"
                for name in received
                if (senders := listener.in_turn(name))
            ],
            hint=HINT,
        )


def _simulator(
    system: str,
    options: Mapping[str, Any],
    endpoints: Sequence[str],
    hosts: Sequence[str],
    duration_s: float | None,
    interrupts: Interrupts,
    live: bool,
    file: str | None,
    force: bool,
) -> Outcome:
    """Serve the simulator and record what it reports in `file`; return its statistics and the rows of a summary."""
    check_endpoints(sources.source(system), endpoints, name="--at")
    listener = Listener(system, *endpoints, allow=hosts, options=options)
    recorder = None
    with ExitStack() as held:
        messages = held.enter_context(logged(live=live))
        if file is not None:
            ring = RecordRing(RING_BYTES)
            listener.record(ring)
            recorder = held.enter_context(source_recorder(file, force, ring, system, endpoints))
        held.enter_context(listener)
        screen = held.enter_context(Screen(live=live))
        title = f"motioncue listen · {system} at {', '.join(endpoints)}"
        elapsed_s = wait(SimulatorView(listener, title, duration_s, messages), screen, interrupts, duration_s)
    stats = {"duration_s": elapsed_s, **listener.stats()}
    rows = [
        ("duration", f"{elapsed_s:.1f} s"),
        ("frames in", f"{stats['frames_received']} at {stats['rate_hz']:.2f} Hz"),
        ("sessions", str(stats["sessions"])),
        ("rejected", reasons(stats["rejected"])),
    ]
    if recorder is not None:
        stats["recorded"] = recorder.counts()
        rows.append(("recorded", recorded(stats["recorded"])))
    return stats, rows


class SimulatorView:
    """Makes views of what a simulator reports."""

    def __init__(self, listener: Listener, title: str, total_s: float | None, messages: Sequence[str]) -> None:
        self._listener, self._title, self._total_s, self._messages = listener, title, total_s, messages
        self._history = History([("car", "car")])
        self._rate = Rate()
        self._count, self._changed_s = 0, -QUIET_S

    def __call__(self, elapsed_s: float) -> View:
        """Return the current view."""
        stats = self._listener.stats()
        if stats["frames_received"] != self._count:
            self._count, self._changed_s = stats["frames_received"], elapsed_s
        return View(
            title=self._title,
            state="receiving" if elapsed_s - self._changed_s < QUIET_S else "waiting",
            elapsed_s=elapsed_s,
            total_s=self._total_s,
            facts=[
                [
                    ("in", f"{self._rate.add(elapsed_s, self._count):5.1f} frames/s"),
                    ("frames", str(self._count)),
                    ("rejected", str(sum(stats["rejected"].values()))),
                ],
                *([chassis_facts(stats["chassis"])] if "chassis" in stats else []),
            ],
            series=self._history.add(elapsed_s, [values_of(stats["motion"] or {})]),
            scales=self._history.scales,
            messages=tuple(self._messages),
            hint=HINT,
        )


def wait(view: Callable[[float], View], screen: Screen, interrupts: Interrupts, duration_s: float | None) -> float:
    """Show views until time is up or a signal comes; return how long it took [s]."""
    start = time.monotonic()
    while not interrupts.count and (duration_s is None or time.monotonic() - start < duration_s):
        picture = view(time.monotonic() - start)  # needed even if nothing is shown, because it polls
        screen.show(picture)
        left = PERIOD_S if duration_s is None else start + duration_s - time.monotonic()
        time.sleep(max(0.0, min(PERIOD_S, left)))
    return time.monotonic() - start
