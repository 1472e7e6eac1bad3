"""``motioncue platforms``: lists platforms and shows what they can do."""

import math
from typing import Any

import click

from motioncue.cli.common import echo, json_option, print_json
from motioncue.cli.summary import print_summary
from motioncue.errors import ConfigError, not_among
from motioncue.platforms import CHANNELS, build, platform_named, ranges
from motioncue.profile import parse_profile, profile_text
from motioncue.settings.platform import Platform, platform_presets, platform_text

__all__ = ["command"]


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the built-in platforms, or show one.

    \b
    Example:  motioncue platforms show hexapod-simona
    """
    if ctx.invoked_subcommand is None:
        presets = platform_presets()
        width = max(map(len, presets))
        for name, table in presets.items():
            echo(f"{name:<{width}}  {table['description']}", indent=width + 2)


@command.command()
@click.argument("name", metavar="NAME|FILE")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show what a platform can do: a built-in one, or that of a profile.

    Ranges are along one channel while the others are at neutral.
    """
    platform = _platform(name)
    built = build(platform)
    found = ranges(built)
    if as_json:
        actuators = {
            each: dict(zip(("min", "max", "speed", "acceleration"), bounds, strict=True), neutral=at)
            for each, bounds, at in zip(built.names, built.bounds, built.neutral, strict=True)
        }
        print_json({"name": name, "source": platform.source, "ranges": found, "actuators": actuators})
        return
    if name in platform_presets():
        echo(platform_text(name).rstrip("\n"))
    rows = [(channel, _shown(channel, *found[channel])) for channel in CHANNELS]
    print_summary(f"{name}: range along one channel", rows)


def _platform(name: str) -> Platform:
    if name in platform_presets():
        return platform_named(name)
    if not name.endswith(".toml"):
        raise ConfigError(f"platform: {not_among(name, platform_presets())}, and profiles in .toml files")
    profile = parse_profile(profile_text(name), name=name)
    if profile.platform is None:
        raise ConfigError(f"{name}: found no [platform]")
    return profile.platform


def _shown(channel: str, low: float | None, high: float | None) -> str:
    def side(value: float | None) -> Any:
        if value is None:
            return "any"
        return f"{value:+.3f} m" if channel.endswith("displacement") else f"{math.degrees(value):+.1f} deg"

    return f"{side(low)} to {side(high)}"
