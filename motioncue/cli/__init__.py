"""The command line, ``motioncue COMMAND``: a command's module is imported only when it is used."""

import errno
import os
import re
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from motioncue._version import __version__
from motioncue.errors import MotioncueError, not_among

COMMANDS: Mapping[str, str] = {
    "demo": "Drive a virtual car through the whole engine.",
    "init": "Write a profile for your simulator and your platform.",
    "run": "Drive a platform from a simulator.",
    "tell": "Operate and retune what runs, from another terminal.",
    "wire": "Find crossed wires, one actuator at a time.",
    "identify": "Measure lag and dead time of a platform that answers.",
    "simulate": "Play a simulator.",
    "listen": "Play a platform, or watch a simulator.",
    "check": "Examine a source: rate, jitter, signs, axes, units.",
    "decode": "Say what is in a packet.",
    "send": "Send a command to a simulator.",
    "replay": "Take a recording through the engine once more.",
    "score": "Score a cueing on a drive and a platform.",
    "compare": "Show profiles, or the algorithms on one rig, side by side.",
    "tune": "Search for the settings that score best on drives and a platform.",
    "omct": "Measure a cueing's response: the Objective Motion Cueing Test.",
    "export": "Write a recording as CSV, Parquet or MDF4, a profile as an FMU.",
    "mend": "Make a killed or damaged recording whole for other programs.",
    "report": "Make one file about a problem, for somebody else.",
    "bench": "Measure how punctual this machine is.",
    "profiles": "List the built-in profiles, or show one.",
    "platforms": "List the built-in platforms, or show one.",
}
"""The commands, each with a one-line description."""

HOMES = {
    "demo": ("run", "demo"),
    "identify": ("wire", "measure"),
    "decode": ("packets", "decode"),
    "send": ("packets", "send"),
    "compare": ("score", "compare"),
    "omct": ("score", "measure"),
    "replay": ("recordings", "replay"),
    "export": ("recordings", "export_recording"),
    "mend": ("recordings", "mend_recording"),
    "profiles": ("builtin", "profiles"),
    "platforms": ("builtin", "platforms"),
}
"""Module and name of a command that has no module of its own name."""

UNWRITABLE = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO") if hasattr(errno, name)}
"""Errors that mean that output cannot be written.  EPIPE is not one: click ends quietly when a reader has left."""


class Refused(click.ClickException):
    """A refusal: one line on stderr, exit status 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the line."""
        text = " ".join(line.strip() for line in self.message.splitlines())
        click.echo(f"error: {text}", file=file, err=file is None)


class Group(click.Group):
    """A command with commands of its own; names the nearest one where a name is wrong."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the requested command; refuse one that does not exist."""
        if args[0] not in (names := self.list_commands(ctx)):
            ctx.fail(f"command: {not_among(args[0], names)}")
        return super().resolve_command(ctx, args)


class Commands(Group):
    """A group that imports a command only when it is used, so not for the group's own help."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of a call, which knows its words."""
        words = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta["motioncue.words"] = words
        return context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names, most used first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, name = HOMES.get(cmd_name, (cmd_name, "command"))
        command: click.Command = getattr(import_module(f"motioncue.cli.{module}"), name)
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see main
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands' lines without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a MotioncueError becomes one line, and so does a mistake in the command's arguments."""
        try:
            return super().invoke(ctx)
        except MotioncueError as error:
            raise Refused(str(error)) from error
        except click.UsageError as error:
            remark = what_was_meant(error)
            said = error.format_message()
            raise Refused(f"{said.rstrip('.')}{remark}" if remark else said) from error


def what_was_meant(error: click.UsageError) -> str:
    """Return a remark on the option that an extra argument belongs to, or on a missing ``--to``; empty if none is."""
    message, context = error.format_message(), error.ctx
    if context is None:
        return ""
    if isinstance(error, click.MissingParameter):
        to = error.param is not None and "--to" in error.param.opts and context.info_name == "export"
        return "; the file to write is given as --to FILE" if to else ""
    extra = re.match(r"Got unexpected extra arguments? \(([^ )]+)", message)
    if extra is None:
        return ""
    unset = [key for key in context.params.get("overrides") or () if "=" not in key]
    if unset:
        return f"; --set takes KEY=VALUE: --set {unset[0]}={extra[1]}"
    if any("--profile" in option.opts for option in context.command.params):
        return f"; a profile is given as --profile {extra[1]}"
    return ""


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="motioncue")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Motion cueing for driving simulators: telemetry in, body-frame cues out, on time.

    Try it without any hardware:  motioncue demo.  Without a command, it asks what you have.
    """
    if ctx.invoked_subcommand is None:
        import_module("motioncue.cli.init").begin(ctx)


def main() -> None:
    """Run the command line; ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until a command is imported there is nothing to end properly, so Ctrl-C ends the process without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        cli(prog_name="motioncue")
    except OSError as error:
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - the interpreter would write once more
        click.echo(f"error: output cannot be written: {error.strerror}", err=True)
        sys.exit(1)
