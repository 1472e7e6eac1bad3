"""``motioncue run`` and ``demo``: a simulator, or a virtual car, drives a platform by a profile that may change."""

import logging
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING

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
from motioncue.cli.terminal import Screen, engine_rows, platform_rows, print_summary, wanted
from motioncue.cli.watch import EngineView, watch
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.engine.fitting import Fit, against_rest, fit, told_of_rest, unlimited
from motioncue.engine.journal import Log, SeatLog
from motioncue.engine.pipeline import refuse_fixed
from motioncue.errors import ConfigError, MotioncueError, not_among
from motioncue.profile.explain import bounds_in_force
from motioncue.profile.profile import Profile, builtin_profiles
from motioncue.view.access import Address
from motioncue.view.model import path_of, values_of

if TYPE_CHECKING:
    from motioncue.virtual.installation import Installation

log = logging.getLogger("motioncue")

PERIOD_S = 0.2  # interval between looks at the file


class Looking(ABC):
    """Looks at something again and again, in a thread of its own: a context manager around that."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"motioncue {type(self).__name__.lower()}", daemon=True)

    @abstractmethod
    def look(self) -> bool:
        """Look once; return whether there was something to do."""

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            self.look()

    def __enter__(self) -> "Looking":
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()


class Follower(Looking):
    """Applies a file each time it is saved.

    A file counts as saved when two successive looks find the same new contents.  So a half-written file does not count,
    and a file that an editor has put in place of the old one does.
    """

    def __init__(self, path: Path, apply: Callable[[], None]) -> None:
        super().__init__()
        self._path = path.resolve()
        self._apply = apply
        self.refused = ""  # why what is in the file is not used; empty if it is
        self._known = self._found = self._read()

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


class Folder(Looking):
    """The profiles of a folder, its files ``*.toml``; one is in use, by name the first, and others follow with a fade.

    A profile that cannot follow the first is refused with its file and key.  The one in use follows the car whenever
    the simulator names another one that a profile has among its ``cars``.
    """

    def __init__(self, path: Path, overrides: Sequence[str]) -> None:
        super().__init__()
        self.profiles: dict[str, Profile] = {}  # by the file's name without .toml, in this order
        self.engine: Engine | None = None  # whose profile is switched
        self._car: int | str | None = None
        self._one_by_one = threading.Lock()  # keys, `motioncue tell` and the car
        for file in sorted(path.glob("*.toml")):
            try:
                profile = load_profile(file, *overrides)
                if self.profiles:
                    refuse_fixed(self.first, profile)
            except ConfigError as error:
                raise ConfigError(f"{file.name}: {error}") from error
            self.profiles[file.stem] = profile
        if not self.profiles:
            raise ConfigError(f"profile: found no *.toml in {path}, allowed is a folder with one or more")
        users: dict[int | str, str] = {}
        for name, profile in self.profiles.items():
            for car in profile.cars:
                if users.setdefault(car, name) != name:
                    raise ConfigError(f"{name}.toml: cars: found {car!r}, which {users[car]}.toml has too")
        self.used = next(iter(self.profiles))

    @property
    def first(self) -> Profile:
        """The profile to begin with."""
        return next(iter(self.profiles.values()))

    def switch(self, name: str) -> None:
        """Use another profile from now on, with the usual fade; ConfigError if there is none of the name."""
        if name not in self.profiles:
            raise ConfigError(f"profile: {not_among(name, self.profiles)}")
        assert self.engine is not None
        with self._one_by_one:
            self.engine.retune(self.profiles[name])
            self.used = name
        log.info("profile %s", name)

    def next(self) -> None:
        """Use the profile behind the one in use; behind the last one the first."""
        names = list(self.profiles)
        self.switch(names[(names.index(self.used) + 1) % len(names)])

    def look(self) -> bool:
        """Use the profile for the car that the simulator names, if it is another one than before."""
        car = None if self.engine is None else self.engine.car
        if car is None or car == self._car:
            return False
        self._car = car
        name = next((name for name, profile in self.profiles.items() if car in profile.cars), None)
        log.info("car %r: %s", car, "no profile has it among its cars" if name is None else f"profile {name}")
        if name is not None and name != self.used:
            self.switch(name)
        return True


def judged(profile: Profile, log: Log = log) -> tuple[Fit | None, float | None]:
    """Log what a profile's cue makes of its platform; return how it fits, and what it misses of rest."""
    found = fit(profile)
    for line in [] if found is None else found.lines():
        log.log(logging.WARNING if found is not None and found.beyond else logging.INFO, "%s", line)
    rest = against_rest(profile)
    if rest is not None:
        warns, line = told_of_rest(rest)
        log.log(logging.WARNING if warns else logging.INFO, "%s", line)
    for line in unlimited(profile, found):
        log.warning("%s", line)
    return found, rest


@contextmanager
def started(engine: Engine, seats: Iterable[Engine]) -> Iterator[Engine]:
    """Run an engine and those beside it, which it ends with itself; none moves before all are open."""
    engine.start(*seats)
    try:
        yield engine
    finally:
        engine.stop()


@click.command()
@click.option(
    "--profile",
    metavar="NAME|FILE|FOLDER",
    default="ccd-dk",
    show_default=True,
    help="Built-in, a TOML file, or a folder.",
)
@set_option
@click.option(
    "--seat",
    "seats",
    metavar="NAME|FILE",
    multiple=True,
    help="Another rig that the same simulator moves, for the head of its own profile.  Repeatable.",
)
@click.option("--watch", "follow", is_flag=True, help="Follow the profile's file: what is saved is used at once.")
@view_option
@duration_option("End after this time, fade included.")
@record_options
@json_option
def command(
    profile: str,
    overrides: tuple[str, ...],
    seats: tuple[str, ...],
    follow: bool,
    view: Address | None,
    duration: float | None,
    file: str | None,
    last_s: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Wait for the simulator and drive the platform.

    --profile may be a folder of profiles that differ in what can change while it runs.  The first one by name begins;
    `n Enter`, `motioncue tell profile=NAME`, or the car that source.car reads and a profile has among its cars,
    switches to another with the usual fade.

    --seat adds a rig for a passenger, with a profile of its own: its platform, cueing, bounds and head, but this
    simulator.  What is asked of the run is asked of all; a fault of one stops no other.

    \b
    On a terminal, keys operate it:
      p, Esc   park: fade to neutral and stay there, at once
      e Enter  engage: follow the simulator; after a fault, allow motion again
      h Enter  hold: keep the motion of this moment
      q Enter  park and quit
      r Enter  keep: write what --record-last has in memory
      n Enter  next profile of the folder
    <operation>

    With --watch, a saved change of the profile's file is applied without a step in the cue.  A change that is not
    valid, or not possible while it runs (systems, endpoints, packets, rate), is refused with its key.

    With --set laps.folder=FOLDER (and laps.name=TRACK), what was felt along the way is kept for the next run there, if
    the source sends positions and the algorithm plans.

    With --view 8765, a page in the browser shows the run, operates it and tunes it (docs/view.md).

    \b
    Example:  motioncue run --profile ccd-dk --record drive.mcap
    """
    live = wanted()
    if follow and profile in builtin_profiles():
        raise ConfigError(f"--watch: found {profile!r}, which is built in; allowed is a file")
    several = profile not in builtin_profiles() and Path(profile).is_dir()
    folder = Folder(Path(profile), overrides) if several else None
    if folder is not None and follow:
        raise ConfigError(f"--watch: found the folder {profile!r}, allowed is a file")
    follower = Follower(Path(profile), lambda: engine.retune(load_profile(profile, *overrides))) if follow else None
    with Interrupts(operator=Path(profile).stem) as interrupts:
        with logged(live=live) as messages:
            settings = load_profile(profile, *overrides) if folder is None else folder.first
            if not settings.source.endpoints:
                raise ConfigError(
                    "source.endpoint: missing, where the simulator sends to; without one, only a program that runs the "
                    "engine itself can feed it (Engine.feed)"
                )
            title = f"motioncue run · {path_of(settings)}"
            found, rest = judged(settings)
            running = Engine(settings, record=recording(file, last_s, force))
            if len({Path(seat).stem for seat in seats}) < len(seats):
                raise ConfigError(f"--seat: found {', '.join(seats)}, allowed are different names")
            others = {Path(seat).stem: Engine(load_profile(seat), beside=running) for seat in seats}
            for name, other in others.items():
                judged(other.profile, SeatLog(name))
            if folder is not None:
                folder.engine = running
                profile = str(Path(profile, f"{folder.used}.toml"))
            with (
                started(running, others.values()) as engine,
                follower or folder or nullcontext(),
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
                    profiles=folder,
                    seats=others,
                )
                elapsed_s = watch(engine, picture, screen, interrupts, duration, folder)
            interrupts.over = True
        stats = {
            "duration_s": elapsed_s,
            **engine.stats(),
            "fit": None if found is None else found._asdict(),
            "missed_of_rest": rest,
            **({"seats": {name: other.stats() for name, other in others.items()}} if others else {}),
        }
        print_summary(title, engine_rows(stats))
        if as_json:
            print_json(stats)


command.help = cleandoc(command.help or "").replace("<operation>", operation(sys.platform))


def installation_view(installation: "Installation", messages: Sequence[str] = (), address: str = "") -> EngineView:
    """Return a factory of views of an installation, in which the cue is what the platform received."""
    platform = installation.platform

    def received() -> tuple[Mapping[str, float], int]:
        shown = values_of(platform.channels("motion")) or values_of(installation.engine.newest()["cue"])
        return shown, platform.received["motion"]

    engine, title = installation.engine, title_of(installation)
    return EngineView(engine, title, installation.duration_s, messages, address=address, cue=received)


def title_of(installation: "Installation") -> str:
    """Return a line that says how the installation is connected."""
    return f"motioncue demo · {path_of(installation.profile)}"


@click.command("demo")
@duration_option("How long it takes, fade included; the drive's length if not given, with --view until it is left.")
@click.option("--drive", metavar="NAME", default="tour", show_default=True, help="Course that the car drives.")
@click.option("--profile", metavar="NAME|FILE", default="ccd-hexapod", show_default=True, help="Profile to use.")
@set_option
@view_option
@record_options
@json_option
def demo(
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
    from motioncue.virtual.installation import Installation

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
