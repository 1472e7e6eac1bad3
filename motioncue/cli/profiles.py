"""``motioncue profiles``: lists and shows the built-in profiles."""

import click

from motioncue.cli import Group
from motioncue.cli.common import echo
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError, not_among
from motioncue.profile.profile import Profile, builtin_profiles, parse_profile, profile_text, resolved_text
from motioncue.profile.reference import markdown, sections
from motioncue.wire.description import packet_presets, packet_text


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
@click.argument("name", metavar="NAME|FILE")
@click.option("--resolved", is_flag=True, help="Every key with its value, those of presets and defaults included.")
def show(name: str, resolved: bool) -> None:
    """Print a profile's TOML: a starting point for your own."""
    echo(resolved_text(load_profile(name)) if resolved else profile_text(name).rstrip("\n"))


@command.command()
@click.argument("place", metavar="[TABLE]", required=False)
@click.option("--markdown", "as_page", is_flag=True, help="As a page of Markdown.")
def keys(place: str | None, as_page: bool) -> None:
    """List the keys of a profile, or those of a table such as `source` or `cueing.surge`.

    Each has what it allows, its default, and a sentence.
    """
    found = [each for each in sections(Profile) if place is None or any(at.startswith(place) for at in each.places)]
    if not found:
        raise ConfigError(f"table: {not_among(place, Profile.__struct_fields__)}")
    if as_page:
        click.echo(markdown(found), nl=False)
        return
    for each in found:
        echo(f"\n{each.title}: {each.sentence}", indent=2)
        for key in each.keys:
            default = f"; default {key.default}" if key.default else ""
            echo(f"  {key.name}: {key.sentence} Allowed: {key.allowed}{default}", indent=6)


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
