"""``motioncue simulate``: plays a simulator."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import click

from motioncue import sources
from motioncue.cli.common import (
    duration_option,
    json_option,
    logged,
    naming_systems,
    pick_options,
    positive,
    print_json,
    record_source_options,
    source_recorder,
)
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.terminal import print_summary, recorded
from motioncue.core.clock import now_ns
from motioncue.core.threads import RecordRing
from motioncue.engine.reception import check_endpoints
from motioncue.errors import EndpointError, MotioncueError
from motioncue.recording.packages import Pick
from motioncue.recording.recorder import RING_BYTES, package_kind
from motioncue.virtual.installation import drive_packages, make_simulator, recorded_packages

GRACE_S = 1.0  # beyond the requested time, for the last answer
TELL_S = 2.0, 10.0  # without an engine: until the first message, and from one to the next
WAIT_S = 60.0  # longest wait for an engine if a duration is requested


@click.command()
@click.argument("system", metavar="SYSTEM")
@click.option(
    "--to", "endpoints", metavar="ENDPOINT", multiple=True, required=True, help="Where the engine listens; repeatable."
)
@click.option("--recording", metavar="FILE", help="Recording to play; `sample` is the drive in the package.")
@pick_options
@click.option(
    "--drive", metavar="NAME", help="Drive the virtual car: tour (default), turns, brake, still, trouble, wave-surge."
)
@click.option(
    "--rate",
    type=float,
    callback=positive,
    metavar="HZ",
    help="Frames per second; by default the simulator's or the recording's.",
)
@duration_option(f"How long to play; all of it if not given.  With it, an engine is awaited for {WAIT_S:g} s at most.")
@record_source_options("Record what is sent, with its times, as MCAP: for check, decode, export, simulate --recording.")
@json_option
def command(
    system: str,
    endpoints: tuple[str, ...],
    recording: str | None,
    ports: tuple[int, ...],
    sender: str | None,
    drive: str | None,
    rate: float | None,
    duration: float | None,
    file: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Play a simulator: wait for the engine, then send a recording or a virtual drive.

    SYSTEM is <systems>.

    \b
    Example:  motioncue simulate city-car-driving --to pipe://DynamicCabPipe
    """
    if recording is not None and drive is not None:
        raise click.UsageError("--recording and --drive exclude each other")
    if recording is not None:
        packages = recorded_packages(system, recording, rate, duration, Pick(ports, sender))
        what = f"recording {recording}"
    else:
        if ports or sender is not None:
            raise click.UsageError("--port and --from are for network captures, with --recording")
        packages = drive_packages(system, drive or "tour", rate, duration)
        what = f"drive {drive or 'tour'}"
    check_endpoints(sources.source(system), endpoints, name="--to")
    simulator = make_simulator(system, endpoints, packages)
    recorder = None
    with Interrupts() as interrupts:
        with ExitStack() as held:
            held.enter_context(logged(live=False))
            if file is not None:
                ring = RecordRing(RING_BYTES)
                recorder = held.enter_context(source_recorder(file, force, ring, system, endpoints))
                simulator.on_sent = writer_of(ring)
            waits = "" if endpoints[0].startswith("udp:") else ", as soon as an engine listens there"
            click.echo(f"playing {what} to {', '.join(endpoints)}{waits}", err=True)
            elapsed_s = play(simulator, interrupts, duration, ", ".join(endpoints))
        interrupts.over = True
        stats = {
            "duration_s": elapsed_s,
            "frames_sent": simulator.sent,
            "rate_hz": simulator.rate_hz(),
            "replies_received": simulator.replies,
            "connections": simulator.connections,
            "lost": simulator.lost,
        }
        if hasattr(simulator, "stalls"):
            stats["stalls"] = simulator.stalls
        if recorder is not None:
            stats["recorded"] = recorder.counts()
        print_summary(
            f"motioncue simulate · {system}, {what}",
            [
                ("duration", f"{elapsed_s:.1f} s"),
                ("frames out", f"{simulator.sent} at {stats['rate_hz']:.2f} Hz"),
                ("replies in", str(simulator.replies)),
                ("connections", str(simulator.connections)),
                ("lost", str(simulator.lost)),
                *([("stalls", str(simulator.stalls))] if hasattr(simulator, "stalls") else []),
                *([] if recorder is None else [("recorded", recorded(stats["recorded"]))]),
            ],
        )
        if as_json:
            print_json(stats)


naming_systems(command, "intake")


def writer_of(ring: RecordRing) -> Callable[[bytes, int], bool]:
    """Return a function that writes a sent package into a ring, with the present time and its endpoint's number."""
    return lambda package, to: ring.write(package_kind(to), now_ns(), package)


def play(simulator: Any, interrupts: Interrupts, duration_s: float | None, where: str) -> float:
    """Let the simulator play to its end, or until a signal or the end of the time; return how long it took [s].

    Waiting for the engine before the first frame does not count, and is reported soon, then now and then; if there is a
    time limit, the wait ends after a minute.
    """
    refused: list[MotioncueError] = []

    def run() -> None:
        try:
            simulator.run()
        except MotioncueError as error:
            refused.append(error)

    thread = threading.Thread(target=run, name="motioncue simulate", daemon=True)
    start = time.monotonic()
    thread.start()
    tell_at = start + TELL_S[0]
    began: float | None = None
    while thread.is_alive():
        now = time.monotonic()
        if simulator.sent and began is None:
            began = now
        late = duration_s is not None and began is not None and now - began > duration_s + GRACE_S
        alone = duration_s is not None and began is None and now - start > WAIT_S
        if alone and not refused:
            refused.append(EndpointError(f"--to: found nobody who listens there, in {WAIT_S:g} s"))
        if interrupts.count or late or alone:
            simulator.stop()
        if now > tell_at and not simulator.replies and not simulator.rate_hz():
            tell_at = now + TELL_S[1]
            until = "" if duration_s is None or began else f", {max(0.0, start + WAIT_S - now):.0f} s more"
            click.echo(f"waiting for an engine (motioncue run) at {where}{until}; Ctrl-C ends", err=True)
        thread.join(0.05)
    if refused:
        raise refused[0]
    return time.monotonic() - start
