"""``motioncue run``: a simulator drives a platform."""

import click

from motioncue.cli.common import duration_option, json_option, logged, print_json
from motioncue.cli.screen import Screen, wanted
from motioncue.cli.signals import Interrupts
from motioncue.cli.summary import engine_rows, print_summary
from motioncue.cli.watch import EngineView, path_of, watch
from motioncue.runtime.assembly import load_profile
from motioncue.runtime.engine import Engine

__all__ = ["command"]


@click.command()
@click.option("--profile", metavar="NAME|FILE", default="ccd-dk", show_default=True, help="Built-in, or a TOML file.")
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a key of the profile; repeatable.")
@duration_option("End after this time, fade included; a signal ends it too.")
@json_option
def command(profile: str, overrides: tuple[str, ...], duration: float | None, as_json: bool) -> None:
    """Wait for the simulator and drive the platform.

    \b
    On a terminal, keys operate it:
      e   engage: follow the simulator; after a fault, allow motion again
      h   hold: keep the motion of this moment
      p   park: fade to neutral and stay there
      q   park and quit
    Signals do the same: SIGUSR1 holds, SIGUSR2 engages, SIGTSTP (Ctrl-Z) parks.
    Ctrl-C, SIGTERM, SIGHUP or SIGQUIT fades to neutral and ends, exit status 0.

    \b
    Example:  motioncue run --profile ccd-dk --set output.rate_hz=250
    """
    live = wanted()
    with Interrupts(operator=True) as interrupts:
        with logged(live=live) as messages:
            settings = load_profile(profile, *overrides)
            title = f"motioncue run · {path_of(settings)}"
            with Engine(settings) as engine, Screen(live=live) as screen:
                view = EngineView(engine, title, duration, messages)
                elapsed_s = watch(engine, view, screen, interrupts, duration)
            interrupts.over = True
        stats = {"duration_s": elapsed_s, **engine.stats()}
        print_summary(title, engine_rows(stats))
        if as_json:
            print_json(stats)
