"""``motioncue run``: a simulator drives a platform, by a profile whose changes are followed."""

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from inspect import cleandoc
from pathlib import Path
from types import TracebackType

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
from motioncue.cli.operator_input import Interrupts, operation
from motioncue.cli.terminal import Screen, engine_rows, print_summary, wanted
from motioncue.cli.watch import EngineView, watch
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.engine.fitting import fit, unlimited
from motioncue.errors import ConfigError, MotioncueError
from motioncue.profile.profile import builtin_profiles
from motioncue.scoring.quality import against_rest, told_of_rest
from motioncue.view.access import Address
from motioncue.view.model import path_of

log = logging.getLogger("motioncue")

PERIOD_S = 0.2  # interval between looks at the file


class Follower:
    """Applies a file each time it is saved; a context manager around the thread that looks at it.

    A file counts as saved when two successive looks find the same new contents.  So a half-written file does not count,
    and a file that an editor has put in place of the old one does.

    Attributes
    ----------
    refused : str
        Why what is in the file is not used; empty if it is.
    """

    def __init__(self, path: Path, apply: Callable[[], None]) -> None:
        self._path = path.resolve()
        self._apply = apply
        self.refused = ""
        self._known = self._found = self._read()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="motioncue follower", daemon=True)

    def look(self) -> bool:
        """Look at the file once, and apply it if it was saved; return whether it was."""
        found = self._read()
        gone = found is None and self._found is None and self._known is not None
        if gone and not self.refused:
            self.refused = f"{self._path.name} is gone, what was in use stays"
            log.warning("%s", self.refused)
        elif found == self._known and self.refused.endswith("is gone, what was in use stays"):
            self.refused = ""  # it is back as it was
        settled = found is not None and found == self._found and found != self._known
        self._found = found
        if not settled:
            return False
        self._known = found
        try:
            self._apply()
        except MotioncueError as error:
            self.refused = f"{self._path.name} is saved but not used, what was in use stays: {error}"
            log.warning("%s", self.refused)
        else:
            self.refused = ""
            log.info("%s is saved and used", self._path.name)
        return True

    def _read(self) -> bytes | None:
        """Return the file's contents; None while it does not exist, as when an editor replaces it."""
        try:
            return self._path.read_bytes()
        except OSError:
            return None

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            self.look()

    def __enter__(self) -> "Follower":
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()


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
            rest = against_rest(settings)
            if rest is not None:
                warns, line = told_of_rest(rest)
                log.log(logging.WARNING if warns else logging.INFO, "%s", line)
            for line in unlimited(settings, found):
                log.warning("%s", line)
            running = Engine(settings, record=recording(file, last_s, force))
            with (
                running as engine,
                follower or nullcontext(),
                shown_by(view, engine, profile) as address,
                Screen(live=live) as screen,
            ):
                picture = EngineView(
                    engine,
                    title,
                    duration,
                    messages,
                    address=address,
                    refused=lambda: "" if follower is None else follower.refused,
                )
                elapsed_s = watch(engine, picture, screen, interrupts, duration)
            interrupts.over = True
        stats = {
            "duration_s": elapsed_s,
            **engine.stats(),
            "fit": None if found is None else found._asdict(),
            "missed_of_rest": rest,
        }
        print_summary(title, engine_rows(stats))
        if as_json:
            print_json(stats)


command.help = cleandoc(command.help or "").replace("<operation>", operation(sys.platform))
