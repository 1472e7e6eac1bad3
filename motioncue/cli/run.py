"""``motioncue run``: a simulator drives a platform."""

import logging
import sys
from contextlib import nullcontext
from inspect import cleandoc
from pathlib import Path

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
from motioncue.cli.follow import Follower
from motioncue.cli.screen import Screen, wanted
from motioncue.cli.signals import Interrupts, operation
from motioncue.cli.summary import engine_rows, print_summary
from motioncue.cli.watch import EngineView, watch
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.engine.fitting import fit, unlimited
from motioncue.errors import ConfigError
from motioncue.profile.profile import builtin_profiles
from motioncue.view.address import Address
from motioncue.view.watched import path_of

__all__ = ["command"]

log = logging.getLogger("motioncue")


@click.command()
@click.option("--profile", metavar="NAME|FILE", default="ccd-dk", show_default=True, help="Built-in, or a TOML file.")
@set_option
@click.option("--watch", "follow", is_flag=True, help="Follow the profile's file: what is saved is used at once.")
@view_option
@duration_option("End after this time, fade included.")
@record_options
@json_option
def command(
    profile: str,
    overrides: tuple[str, ...],
    follow: bool,
    view: Address | None,
    duration: float | None,
    file: str | None,
    last_s: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Wait for the simulator and drive the platform.

    \b
    On a terminal, keys operate it:
      p, Esc   park: fade to neutral and stay there, at once
      e Enter  engage: follow the simulator; after a fault, allow motion again
      h Enter  hold: keep the motion of this moment
      q Enter  park and quit
      r Enter  keep: write what --record-last has in memory
    <operation>

    With --watch, a saved change of the profile's file is applied without a step in the cue.  A change that is not
    valid, or not possible while it runs (systems, endpoints, packets, rate), is refused with its key.

    With --view 8765, a page in the browser shows the run, operates it and tunes it (docs/view.md).

    \b
    Example:  motioncue run --profile ccd-dk --record drive.mcap
    """
    live = wanted()
    if follow and profile in builtin_profiles():
        raise ConfigError(f"--watch: found {profile!r}, which is built in; allowed is a file")
    follower = Follower(Path(profile), lambda: engine.retune(load_profile(profile, *overrides))) if follow else None
    with Interrupts(operator=Path(profile).stem) as interrupts:
        with logged(live=live) as messages:
            settings = load_profile(profile, *overrides)
            if not settings.source.endpoints:
                raise ConfigError(
                    "source.endpoint: missing, where the simulator sends to; without one, only a program that runs the "
                    "engine itself can feed it (Engine.feed)"
                )
            title = f"motioncue run · {path_of(settings)}"
            found = fit(settings)
            for line in [] if found is None else found.lines():
                log.log(logging.WARNING if found is not None and found.beyond else logging.INFO, "%s", line)
            for line in unlimited(settings, found):
                log.warning("%s", line)
            running = Engine(settings, record=recording(file, last_s, force))
            with (
                running as engine,
                follower or nullcontext(),
                shown_by(view, engine, profile) as where,
                Screen(live=live) as screen,
            ):
                picture = EngineView(engine, f"{title}{where}", duration, messages)
                elapsed_s = watch(engine, picture, screen, interrupts, duration)
            interrupts.over = True
        stats = {"duration_s": elapsed_s, **engine.stats(), "fit": None if found is None else found._asdict()}
        print_summary(title, engine_rows(stats))
        if as_json:
            print_json(stats)


command.help = cleandoc(command.help or "").replace("<operation>", operation(sys.platform))
