"""``motioncue profiles``: lists and shows the built-in profiles."""

import click

from motioncue.cli.common import echo
from motioncue.profile import builtin_profiles, parse_profile, profile_text

__all__ = ["command"]


@click.group(invoke_without_command=True)
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
