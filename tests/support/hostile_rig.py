"""Helpers of the hostile recordings' tests: a short run, and everything that reads a recording."""

import contextlib
import struct

import msgspec
import numpy as np
from click.testing import CliRunner

import motioncue
from motioncue.cli import cli
from motioncue.core.clock import FakeClock
from motioncue.engine.pipeline import Pipeline
from motioncue.errors import MotioncueError
from motioncue.recording import mcap_reader
from motioncue.recording.mcap_reader import MAGIC
from motioncue.recording.mcap_writer import RecordingWriter
from motioncue.recording.schema import Event, Package
from motioncue.virtual.installation import drive_packages, recorded_packages

PROFILE = motioncue.load_profile("beamng-dk")
SECONDS = 2


def recorded_run(path):
    """Record a short run, flushed often, at a path; return the path, its packages and its ticks."""
    clock = FakeClock(1_000_000_000)
    pipeline = Pipeline(PROFILE, clock, trace=SECONDS * 400)
    packages, frames, now = [], [], clock.now_ns()
    pipeline.intake.begin(now)
    for paced in drive_packages("beamng", "turns", duration_s=float(SECONDS)):
        now += round(1e9 * paced.duration)
        pipeline.emitter.run(until_ns=now)
        pipeline.intake.feed(paced.package, now)
        if paced.motion:
            frames.append(pipeline.intake.frame())
        packages.append(Package(now, paced.to, paced.package))
    ticks = pipeline.emitter.trace
    frames = np.concatenate(frames)
    assert ticks["weight"].any()
    with RecordingWriter(path) as writer:
        writer.settings(1_000_000_000, 0, msgspec.to_builtins(PROFILE))
        writer.events([Event(1_000_000_000, "connected", "")])
        writer.flush()
        for part in range(8):
            writer.packages(packages[part * len(packages) // 8 : (part + 1) * len(packages) // 8])
            writer.frames(frames[part * len(frames) // 8 : (part + 1) * len(frames) // 8])
            writer.ticks(ticks[part * len(ticks) // 8 : (part + 1) * len(ticks) // 8])
            writer.flush()
    return Whole((path, packages, ticks))


class Whole(tuple):
    """Path, packages and ticks of a recording."""

    def __repr__(self):
        return "whole"


COMMANDS = {
    "check": lambda path, system: ["check", path, "--system", system, "--json"],
    "decode": lambda path, system: ["decode", system, path, "--json"],
    "export": lambda path, system: ["export", path, "--to", f"{path}.csv"],
    "replay": lambda path, system: ["replay", path, "--json"],
    "replay with other settings": lambda path, system: ["replay", path, "--set", "source.bridge=hold", "--json"],
}


def command(name, path, system="beamng"):
    """Run a command on a file; return its exit status and its output; a traceback fails the test."""
    result = CliRunner().invoke(cli, COMMANDS[name](str(path), system))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), result.output
    if result.exit_code == 2:
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert len(line) < 1000
    return result


def simulated(path, system="beamng"):
    with contextlib.suppress(MotioncueError):
        recorded_packages(system, str(path))


def everything(path):
    """Pass a file to everything that reads recordings."""
    for name in COMMANDS:
        command(name, path)
    simulated(path)


def is_part_of(found, of):
    """Say whether all rows are among others, bit for bit and in order."""
    others = iter([row.tobytes() for row in of])
    return all(row.tobytes() in others for row in found)


def chunks_of(content):
    """Return place and size of each chunk's record."""
    place, found = len(MAGIC), []
    while place < len(content) - len(MAGIC):
        opcode, length = struct.unpack_from("<BQ", content, place)
        if opcode == mcap_reader.CHUNK:
            found.append((place, 9 + length))
        place += 9 + length
    return found
