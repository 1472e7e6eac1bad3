"""``motioncue wire`` and ``identify``: move a platform on which nobody sits, to find crossed wires and its lag."""

import math
from collections.abc import Callable
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
import numpy as np

from motioncue.check.exercise import Exerciser, Found, axes_of, bump, exercised, identify, refuse_unheard, slowed
from motioncue.cli.common import Decorated, json_option, logged, print_json, set_option
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.build import build, channels_of
from motioncue.platforms.settings import Platform, Wiring
from motioncue.profile.profile import Profile, builtin_profiles
from motioncue.profile.tables import changed_text

BUMP_S = 2.5
TIMES = 3
MOST = 0.1  # largest way, as a share of an actuator's range
USUAL = 0.03


class Seen(NamedTuple):
    """What a person saw when an actuator was asked to move."""

    which: int
    """The one that moved, from 0."""
    down: bool
    """Whether it went down where it was asked to go up."""


def corrected(platform: Platform, seen: list[Seen], raised: list[float]) -> Wiring:
    """Return the wiring under which each actuator is the one that is asked, and goes the way that it is asked to.

    `platform` has the wiring under which each actuator that was asked was `seen`, in order; each is `raised` at neutral
    by a share of its range above where it should be.  ConfigError is raised if one was seen twice, so that another
    never moved.
    """
    names = list(channels_of(platform))
    twice = {names[each.which] for each in seen if sum(other.which == each.which for other in seen) > 1}
    if twice:
        raise ConfigError(f"wire: {', '.join(sorted(twice))} moved more than once, so another never did: look again")
    count = len(names)
    before = platform.wiring or Wiring()
    order = before.order or tuple(range(1, count + 1))
    turned = before.reversed or (False,) * count
    offsets = before.offset or (0.0,) * count
    new_order, new_turned = [0] * count, [False] * count
    for asked, each in enumerate(seen):  # what was asked went to this axis, and that is where the other one hangs
        new_order[each.which] = order[asked]
        new_turned[each.which] = turned[asked] != each.down
    sums = tuple(round(old + more, 6) for old, more in zip(offsets, raised, strict=True))
    return Wiring(order=tuple(new_order), reversed=tuple(new_turned), offset=sums if any(sums) else ())


CLEAR = "Is nobody on it, is everybody clear of it, and the emergency stop at hand?"


def way_option(usual: float, text: str) -> Callable[[Decorated], Decorated]:
    """Return the option that says how far the platform moves."""
    return click.option(
        "--way",
        "share",
        type=click.FloatRange(0.005, MOST),
        default=usual,
        show_default=True,
        metavar="SHARE",
        help=f"{text}, up to {MOST:g}.",
    )


def own_profile(name: str, file: str, overrides: tuple[str, ...]) -> Profile:
    """Return the profile of a file, which can be written into; ConfigError names the command at a built-in one."""
    if file in builtin_profiles():
        raise ConfigError(f"{name}: found {file!r}, allowed is the file of a profile, which the result is written into")
    return load_profile(file, *overrides)


@click.command()
@click.argument("file", metavar="PROFILE.toml")
@set_option
@way_option(USUAL, "How far an actuator moves, as a share of its range")
def command(file: str, overrides: tuple[str, ...], share: float) -> None:
    """Find out which actuator hangs at which axis, which way round, and how far off; nobody sits on the platform.

    It rises to neutral, then moves one actuator after the other, up and back, three times, by a small way and within
    all bounds.  You say which one moved, and whether it went up first.  At the end it goes down, at Ctrl-C too.
    What was found is written into the profile, as [platform.wiring], when you say so; replies are not needed.

    \b
    Example:  motioncue wire rig.toml
    """
    profile = own_profile("wire", file, overrides)
    platform = exercised(profile).platform
    assert platform is not None
    built = build(platform)
    names, ranges = list(built.names), [each.high - each.low for each in built.bounds]
    click.echo(
        f"{file}: the platform rises to neutral and moves {len(names)} actuators, one at a time, "
        f"by {share:.1%} of its range."
    )
    click.confirm(CLEAR, abort=True)
    with logged(live=False), Exerciser(profile) as exerciser:
        seen = [_look(exerciser, names, number, share * ranges[number]) for number in range(len(names))]
        right = all(each == Seen(number, False) for number, each in enumerate(seen))
        raised = [0.0] * len(names)
        if right:
            click.echo("Each is the one that was asked, and goes the right way. Now it stands at neutral.")
            for number, name in enumerate(names):
                raised[number] = _raised(name, ranges[number], name.startswith("crank"))
    found = corrected(platform, seen, raised)
    if right and not any(raised):
        click.echo("Nothing is to be changed.")
        return
    click.echo(
        "\n".join(
            f"  {name}: axis {found.order[number]}{', reversed' if found.reversed[number] else ''}"
            for number, name in enumerate(names)
        )
    )
    if click.confirm(f"Write this into {file}?"):
        write(
            Path(file),
            {"platform.wiring": {key: list(value) for key, value in msgspec.to_builtins(found).items() if value}},
        )
        click.echo(
            f"{file} is written"
            + ("" if right else ": run `motioncue wire` once more, to see it right and for the offsets")
        )


def write(path: Path, values: dict[str, object]) -> None:
    """Write values into a profile's file, and keep its comments; refuse what would make it another."""
    text = changed_text(path.read_text(encoding="utf-8"), values)
    spare = path.with_name(path.name + ".new")
    spare.write_text(text, encoding="utf-8")
    try:
        load_profile(spare)
    except BaseException:
        spare.unlink()
        raise
    spare.replace(path)


def _look(exerciser: Exerciser, names: list[str], number: int, way: float) -> Seen:
    """Move an actuator, and ask what was seen."""
    pose = exerciser.pose_of(number, way)
    while True:
        click.prompt(f"{names[number]}: Enter moves it up and back, {TIMES} times", default="", show_default=False)
        for _ in range(TIMES):
            exerciser.move(pose, partial(bump, duration_s=BUMP_S), BUMP_S)
        said = click.prompt(f"Which one moved most ({', '.join(names)}; again)", default=names[number])
        if said == "again":
            continue
        if said not in names:
            click.echo(not_among(said, [*names, "again"]))
            continue
        return Seen(names.index(said), not click.confirm("Did it go up first?", default=True))


def _raised(name: str, size: float, turns: bool) -> float:
    """Ask by how much an actuator stands too high; return it as a share of its range."""
    unit, factor = ("degrees", math.degrees(1.0)) if turns else ("mm", 1e3)
    while True:
        said = click.prompt(f"{name}: by how many {unit} does it stand higher than it should", type=float, default=0.0)
        if abs(said / factor) <= 0.25 * size:
            return float(said / factor / size)
        click.echo(f"found {said:g}, allowed is a quarter of its range: {0.25 * size * factor:.3g} {unit}")


ALONG = 0.05  # share of the way to the nearer end
TRACE_S = 30.0  # of an axis
LEAST_S = 0.0005  # shorter times are not written
UNCLEAR = 0.05  # share of the motion that is unexplained, from which on that is said


@click.command("identify")
@click.argument("file", metavar="PROFILE.toml")
@set_option
@way_option(ALONG, "How far it moves along an axis, as a share of the way to the nearer end")
@json_option
def measure(file: str, overrides: tuple[str, ...], share: float, as_json: bool) -> None:
    """Measure lag, dead time and bounds of a platform whose replies say where its actuators are; nobody sits on it.

    It rises to neutral, then moves along each axis in small sines of 0.5, 1 and 2 Hz and small steps, within all
    bounds, and goes down at the end, at Ctrl-C too.  Then lag_s, by which what is sent leads, dead_time_s, which
    virtual platforms have, and speed and acceleration of actuators that were slower than asked are written into the
    profile, when you say so.

    \b
    Example:  motioncue identify rig.toml
    """
    profile = own_profile("identify", file, overrides)
    refuse_unheard(profile)
    click.echo(f"{file}: the platform rises to neutral and moves along each axis, {share:.1%} of the way to its end.")
    click.confirm(CLEAR, abort=True)
    found: dict[str, Found] = {}
    with logged(live=False), Exerciser(profile, trace_s=6 * TRACE_S + 60.0) as exerciser:
        for axis, pose in axes_of(exerciser, share).items():
            found[axis] = identify(exerciser, pose)
            click.echo(f"  {axis.removesuffix('_displacement'):5} {_row(found[axis])}")
    if not found:
        raise ConfigError("identify: found no axis that the platform moves both ways")
    lag_s = float(np.median([each.lag_s for each in found.values()]))
    dead_s = float(np.median([each.dead_time_s for each in found.values()]))
    values = {"lag_s": round(lag_s, 4), "dead_time_s": round(dead_s, 4)}
    click.echo("  " + ", ".join(f"{key} = {value:g}" for key, value in values.items()))
    assert profile.platform is not None
    slower = slowed(profile.platform, found.values())
    for key, value in slower.items():
        click.echo(f"  {key} = {value}")
    if click.confirm(f"Write this into {file}?"):
        times = {f"platform.{key}": value if value > LEAST_S else None for key, value in values.items()}
        write(Path(file), {**times, **slower})
    if as_json:
        print_json({**values, "axes": {axis: each._asdict() for axis, each in found.items()}})


def _row(found: Found) -> str:
    slow = "" if found.speed is None else f"; no faster than {found.speed:.3g} /s: slower than the profile says"
    slow += "" if found.acceleration is None else f"; accelerates by no more than {found.acceleration:.3g} /s^2"
    slow += "; no bound of speed or acceleration explains it" if found.unexplained > UNCLEAR and not slow else ""
    return (
        f"lag {1e3 * found.lag_s:.1f} ms, dead time {1e3 * found.dead_time_s:.1f} ms, "
        f"{found.unexplained:.1%} unexplained{slow}"
    )


for each in (command, measure):
    each.help = cleandoc(each.help or "")
