"""``motioncue identify``: measures how a platform that answers follows, and writes it into the profile."""

from inspect import cleandoc
from pathlib import Path

import click
import numpy as np

from motioncue.check.exercise import Exerciser
from motioncue.check.identify import Found, axes_of, identify, refuse_unheard
from motioncue.cli.common import json_option, logged, print_json, set_option
from motioncue.cli.wire import MOST, write
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError
from motioncue.profile.profile import builtin_profiles

USUAL = 0.05
TRACE_S = 30.0  # of an axis
SHORT = 0.85  # share of the speed that such drives would have, below which they are slower than the profile says
LEAST_S = 0.0005  # shorter times are not written


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
    help=f"How far it moves along an axis, as a share of the way to the nearer end, up to {MOST:g}.",
)
@json_option
def command(file: str, overrides: tuple[str, ...], share: float, as_json: bool) -> None:
    """Measure lag and dead time of a platform whose replies say where its actuators are; nobody sits on it.

    It rises to neutral, then moves along each axis in small sines of 0.5, 1 and 2 Hz and small steps, within all
    bounds, and goes down at the end, at Ctrl-C too.  Then lag_s, by which what is sent leads, and dead_time_s, which
    virtual platforms have, are written into the profile, when you say so.

    \b
    Example:  motioncue identify rig.toml
    """
    if file in builtin_profiles() or not Path(file).exists():
        raise ConfigError(
            f"identify: found {file!r}, allowed is the file of a profile, which the result is written into"
        )
    profile = load_profile(file, *overrides)
    refuse_unheard(profile)
    click.echo(f"{file}: the platform rises to neutral and moves along each axis, {share:.1%} of the way to its end.")
    click.confirm("Is nobody on it, is everybody clear of it, and the emergency stop at hand?", abort=True)
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
    if click.confirm(f"Write this into {file}?"):
        write(Path(file), {f"platform.{key}": value if value > LEAST_S else None for key, value in values.items()})
    if as_json:
        print_json({**values, "axes": {axis: each._asdict() for axis, each in found.items()}})


def _row(found: Found) -> str:
    slow = "" if found.reached > SHORT else f"; reaches {found.reached:.0%} of the speed: slower than the profile says"
    return (
        f"lag {1e3 * found.lag_s:.1f} ms, dead time {1e3 * found.dead_time_s:.1f} ms, "
        f"{found.unexplained:.1%} unexplained{slow}"
    )


command.help = cleandoc(command.help or "")
