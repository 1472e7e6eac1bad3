"""``motioncue profiles`` and ``platforms``: list and show what is built in."""

import math
from collections.abc import Mapping

import click
import msgspec

from motioncue.cli import Group
from motioncue.cli.common import echo, json_option, print_json, report_option, write_report
from motioncue.cli.terminal import print_summary
from motioncue.engine.assembly import check_pose, load_profile
from motioncue.engine.fitting import Fit, against_rest, fit, told_of_rest
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.build import CHANNELS
from motioncue.platforms.geometry import SINGULAR
from motioncue.platforms.machine import MotionPlatform, Workspace
from motioncue.platforms.settings import platform_presets, platform_text
from motioncue.profile.profile import Profile, builtin_profiles, parse_profile, profile_text, resolved_text
from motioncue.profile.profile import platform as platform_of
from motioncue.profile.reference import markdown, sections
from motioncue.scoring.reports import platform_report
from motioncue.wire.description import packet_presets, packet_text


def _list(descriptions: Mapping[str, str]) -> None:
    """Print names with their descriptions."""
    width = max(map(len, descriptions))
    for name, description in descriptions.items():
        echo(f"{name:<{width}}  {description}", indent=width + 2)


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def profiles(ctx: click.Context) -> None:
    """List the built-in profiles, or show one.

    \b
    Example:  motioncue profiles show ccd-dk > rig.toml
    """
    if ctx.invoked_subcommand is None:
        _list({name: parse_profile(profile_text(name), name=name).description for name in builtin_profiles()})


@profiles.command("show")
@click.argument("name", metavar="NAME|FILE")
@click.option("--resolved", is_flag=True, help="Every key with its value, those of presets and defaults included.")
def show_profile(name: str, resolved: bool) -> None:
    """Print a profile's TOML: a starting point for your own."""
    echo(resolved_text(load_profile(name)) if resolved else profile_text(name).rstrip("\n"))


@profiles.command()
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


@profiles.command()
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
    _list({each: table["description"] for each, table in presets.items()})


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def platforms(ctx: click.Context) -> None:
    """List the built-in platforms, or show one.

    \b
    Example:  motioncue platforms show hexapod-simona
    """
    if ctx.invoked_subcommand is None:
        _list({name: table["description"] for name, table in platform_presets().items()})


@platforms.command("show")
@click.argument("name", metavar="NAME|FILE")
@report_option
@click.option("--profile", metavar="NAME|FILE", help="Say how its algorithm fits on standard drives.")
@json_option
def show_platform(name: str, path: str | None, profile: str | None, as_json: bool) -> None:
    """Show what a platform can do: a built-in one, or that of a profile and how its own algorithm fits it.

    Alone: along one channel while the others are at neutral.  Together: every combination within these ranges is in
    reach.  The volume is that of the motion reference point with a level frame; it and the singular value are sampled,
    with the same random poses every time.
    """
    platform = platform_of(name)
    workspace = platform.workspace()
    if path is not None:
        write_report(path, lambda: platform_report(name, platform, workspace), [name])
    if as_json:
        found = _fit(name, profile, platform)
        actuators = {
            each: {
                "min": bounds.low,
                "max": bounds.high,
                "speed": bounds.speed,
                "acceleration": bounds.acceleration,
                "neutral": at,
            }
            for each, bounds, at in zip(platform.names, platform.bounds, platform.neutral, strict=True)
        }
        about = {"name": name, "source": platform.table.source, "ranges": platform.ranges, "shares": platform.shares}
        fits = None if found is None else found._asdict()
        print_json({**about, **workspace._asdict(), "actuators": actuators, "fit": fits})
        return
    if name in platform_presets():
        echo(platform_text(name).rstrip("\n"))
    rows = [(channel, _channel_row(channel, platform, workspace)) for channel in CHANNELS]
    for channel, parts in platform.shares.items():
        each = [f"{part} {_shown(channel, *ends)}" for part, ends in parts.items()]
        rows.insert([row for row, _ in rows].index(channel) + 1, ("", "of that, " + ", ".join(each)))
    print_summary(f"{name}: what it can do", [*rows, *_workspace_rows(workspace)])
    found = _fit(name, profile, platform)  # refuses an algorithm whose extra is missing; the platform is shown anyway
    for line in () if found is None else found.lines():
        echo(line)
    if found is not None and (rest := against_rest(_on(name, profile, platform))) is not None:
        echo(told_of_rest(rest)[1])


def _fit(name: str, profile: str | None, platform: MotionPlatform) -> Fit | None:
    """Return how the algorithm of a profile fits the platform; None without a profile."""
    if profile is None and name in platform_presets():
        return None
    settings = _on(name, profile, platform)
    check_pose(settings)
    return fit(settings)


def _on(name: str, profile: str | None, platform: MotionPlatform) -> Profile:
    """Return the profile with the platform in it."""
    return msgspec.structs.replace(load_profile(profile or name), platform=platform.table)


def _channel_row(channel: str, platform: MotionPlatform, workspace: Workspace) -> str:
    if workspace.speeds[channel] is None:
        return "no actuator"
    alone, together = (_shown(channel, *ends[channel]) for ends in (platform.ranges, workspace.together))
    speed, acceleration = (_value(channel, most[channel]) for most in (workspace.speeds, workspace.accelerations))
    return f"{alone} alone, {together} together, up to {speed}/s, {acceleration}/s²"


def _workspace_rows(workspace: Workspace) -> list[tuple[str, str]]:
    share, reached, volume = 100 * workspace.share, 100 * workspace.in_reach, workspace.volume_m3
    singular = f"{workspace.singular:.2g} of the largest at worst"
    return [
        ("together", f"{share:.0f} % of each range alone; of all poses within those, {reached:.3g} % are in reach"),
        *([] if volume is None else [("volume", f"{volume:.3g} m³ with a level frame")]),
        ("singular value", f"{singular}; below {SINGULAR} the actuators hardly hold the frame"),
    ]


def _value(channel: str, value: float | None) -> str:
    if value is None:
        return "any"
    return f"{value:.3g} m" if channel.endswith("displacement") else f"{math.degrees(value):.3g} deg"


def _shown(channel: str, low: float | None, high: float | None) -> str:
    def side(value: float | None) -> str:
        if value is None:
            return "any"
        return f"{value:+.3f}" if channel.endswith("displacement") else f"{math.degrees(value):+.1f}"

    unit = "m" if channel.endswith("displacement") else "deg"
    return f"{side(low)} to {side(high)} {unit}"
