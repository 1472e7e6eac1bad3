"""``motioncue wire``: finds crossed wires, one actuator at a time, before somebody sits down."""

from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from motioncue.check.exercise import Exerciser, bump, exercised
from motioncue.cli.common import logged, set_option
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.build import build, channels_of
from motioncue.platforms.settings import Platform, Wiring
from motioncue.profile.profile import builtin_profiles
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


@click.command()
@click.argument("file", metavar="PROFILE.toml")
@set_option
@click.option(
    "--way",
    "share",
    type=click.FloatRange(0.005, MOST),
    default=USUAL,
    show_default=True,
    metavar="SHARE",
    help=f"How far an actuator moves, as a share of its range, up to {MOST:g}.",
)
def command(file: str, overrides: tuple[str, ...], share: float) -> None:
    """Find out which actuator hangs at which axis, which way round, and how far off; nobody sits on the platform.

    It rises to neutral, then moves one actuator after the other, up and back, three times, by a small way and within
    all bounds.  You say which one moved, and whether it went up first.  At the end it goes down, at Ctrl-C too.
    What was found is written into the profile, as [platform.wiring], when you say so; replies are not needed.

    \b
    Example:  motioncue wire rig.toml
    """
    if file in builtin_profiles() or not Path(file).exists():
        raise ConfigError(f"wire: found {file!r}, allowed is the file of a profile, which the result is written into")
    profile = load_profile(file, *overrides)
    platform = exercised(profile).platform
    assert platform is not None
    built = build(platform)
    names, ranges = list(built.names), [each.high - each.low for each in built.bounds]
    click.echo(
        f"{file}: the platform rises to neutral and moves {len(names)} actuators, one at a time, "
        f"by {share:.1%} of its range."
    )
    click.confirm("Is nobody on it, is everybody clear of it, and the emergency stop at hand?", abort=True)
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
    try:
        text = changed_text(path.read_text(encoding="utf-8"), values)
    except ImportError as error:
        raise ConfigError(f'{path}: {error.name} is missing: pip install "motioncue[tune]"') from error
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
    unit, factor = ("degrees", 57.29577951308232) if turns else ("mm", 1e3)
    while True:
        said = click.prompt(f"{name}: by how many {unit} does it stand higher than it should", type=float, default=0.0)
        if abs(said / factor) <= 0.25 * size:
            return float(said / factor / size)
        click.echo(f"found {said:g}, allowed is a quarter of its range: {0.25 * size * factor:.3g} {unit}")


command.help = cleandoc(command.help or "")
