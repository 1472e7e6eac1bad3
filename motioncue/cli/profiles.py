"""``motioncue profiles``: lists and shows the built-in profiles."""

import click

from motioncue.cli import Group
from motioncue.cli.common import echo
from motioncue.errors import ConfigError, not_among
from motioncue.packets import packet_presets, packet_text
from motioncue.profile import builtin_profiles, parse_profile, profile_text

__all__ = ["command"]


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the built-in profiles, or show one.

    \b
    Example:  motioncue profiles show ccd-dk > rig.toml
    """
    if ctx.invoked_subcommand is None:
        names = builtin_profiles()
        width = max(map(len, names))
        for name in names:
            echo(f"{name:<{width}}  {parse_profile(profile_text(name), name=name).description}", indent=width + 2)


@command.command()
@click.argument("name", metavar="NAME")
def show(name: str) -> None:
    """Print a profile's TOML: a starting point for your own."""
    echo(profile_text(name).rstrip("\n"))


@command.command()
@click.argument("name", metavar="[NAME]", required=False)
def packets(name: str | None) -> None:
    """List the controllers whose packets are described, or print a description with its source.

    A profile uses one as `packet = { preset = "NAME" }` in its output table.
    """
    presets = packet_presets()
    if name is not None and name not in presets:
        raise ConfigError(f"packet: {not_among(name, presets)}")
    if name is not None:
        echo(packet_text(name).rstrip("\n"))
        return
    width = max(map(len, presets))
    for each, table in presets.items():
        echo(f"{each:<{width}}  {table['description']}", indent=width + 2)
