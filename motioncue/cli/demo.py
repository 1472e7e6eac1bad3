"""``motioncue demo``: a virtual car through the whole engine, shown live."""

import logging
from collections.abc import Mapping, Sequence

import click

from motioncue.cli.common import (
    duration_option,
    json_option,
    logged,
    print_json,
    record_options,
    recording,
    set_option,
    shown_by,
    view_option,
)
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.terminal import Screen, engine_rows, platform_rows, print_summary, wanted
from motioncue.cli.watch import EngineView, watch
from motioncue.profile.explain import bounds_in_force
from motioncue.view.access import Address
from motioncue.view.model import path_of, values_of
from motioncue.virtual.installation import Installation


def installation_view(installation: Installation, messages: Sequence[str] = (), address: str = "") -> EngineView:
    """Return a factory of views of an installation, in which the cue is what the platform received."""
    platform = installation.platform

    def received() -> tuple[Mapping[str, float], int]:
        shown = values_of(platform.channels("motion")) or values_of(installation.engine.newest()["cue"])
        return shown, platform.received["motion"]

    engine, title = installation.engine, title_of(installation)
    return EngineView(engine, title, installation.duration_s, messages, address=address, cue=received)


def title_of(installation: Installation) -> str:
    """Return a line that says how the installation is connected."""
    return f"motioncue demo · {path_of(installation.profile)}"


@click.command()
@duration_option("How long it takes, fade included; the drive's length if not given, with --view until it is left.")
@click.option("--drive", metavar="NAME", default="tour", show_default=True, help="Course that the car drives.")
@click.option("--profile", metavar="NAME|FILE", default="ccd-hexapod", show_default=True, help="Profile to use.")
@set_option
@view_option
@record_options
@json_option
def command(
    duration: float | None,
    drive: str,
    profile: str,
    overrides: tuple[str, ...],
    view: Address | None,
    file: str | None,
    last_s: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Drive a virtual car through the whole engine, live in the terminal.

    The car speaks its simulator's protocol through a real endpoint to the engine, which feeds a virtual platform over
    real UDP.  Nothing else is needed.  Keys and signals are those of `motioncue run`.

    \b
    Drives: tour, turns, brake, still, wave-surge to wave-yaw, and
    trouble: pauses, teleports, broken frames, honest driving in between.
    Example:  motioncue demo --drive trouble --duration 30
    """
    live = wanted()
    with Interrupts(operator="demo") as interrupts:
        with (
            logged(live=live, level=logging.WARNING) as messages,
            Installation(
                profile,
                drive,
                duration,
                overrides=overrides,
                record=recording(file, last_s, force),
                endless=view is not None and duration is None,
            ) as installation,
            shown_by(view, installation.engine, profile, player=installation.detour) as address,
        ):
            for line in bounds_in_force(installation.profile):
                click.echo(line, err=True)
            picture = installation_view(installation, messages, address)
            with Screen(live=live) as screen:
                elapsed_s = watch(installation.engine, picture, screen, interrupts, installation.duration_s)
        interrupts.over = True
        stats = {"duration_s": elapsed_s, **installation.stats()}
        platform = stats["platform"]
        system = installation.profile.outputs[0].system
        name = "platform" if system == "custom" else system.upper()
        rows = [*engine_rows(stats), *platform_rows(name, platform), (f"{name} lost", str(platform["lost"]))]
        print_summary(title_of(installation), rows)
        if as_json:
            print_json(stats)
