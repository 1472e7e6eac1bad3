"""The engine: a receiver and an emitter that share one slot, and their threads."""

import json
import logging
import math
import os
import socket
import threading
import weakref
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import AHEAD_MARK, AHEAD_S, MOTION_DTYPE
from motioncue.core.clock import MonotonicClock, machine_awake, prepare_receiver, processors_awake
from motioncue.engine.assembly import baud_of, check, claims_of, load_profile, streams_of
from motioncue.engine.embed import Feeder
from motioncue.engine.emitter import Ending
from motioncue.engine.journal import CALM, LOG, Journal, Log, Outputs, SeatLog, SourceLog
from motioncue.engine.laps import LapKeeper, laps_file
from motioncue.engine.leaving import leaving_of
from motioncue.engine.pipeline import Change, Pipeline
from motioncue.engine.reception import Companion, Reception, beside_driver
from motioncue.errors import ConfigError
from motioncue.output.check_in import CheckedIn
from motioncue.output.packet import replies_of
from motioncue.output.sinks import Replies
from motioncue.platforms.build import channels_of
from motioncue.profile.explain import bounds_in_force, bounds_off, inverted, shown
from motioncue.profile.profile import Output, Profile, Record, differences
from motioncue.transports.endpoint import fail_if_unheard, open_line, open_sender, parse_endpoint
from motioncue.transports.handles import Line, error_text
from motioncue.transports.mapped import Written
from motioncue.wire.packet import Encoding

__all__ = ["Engine"]

SHOWN = 5  # changed settings to name in one line of the log
DRAIN_S = 0.1  # interval at which events are moved from the loops' queues to the log
REPLY_BYTES = 1 << 16  # of replies that the system keeps until a tick reads them
LOG_PATIENCE_S = 2.0  # for the last lines of the log: a blocked handler must not keep an engine from ending
REST_PATIENCE_S = 5.0  # beyond the longest way to rest: a machine that stalls leaves out ticks, and so takes longer


class Engine:
    """Runs a profile: a context manager around the receiving and the emitting loop.

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, or what `load_profile` takes.
    trace : int
        Number of ticks to keep for `trace`, from the first on.
    record : Record, str or Path, optional
        What to record, and where; the profile's ``[record]`` if not given.
    beside : Engine, optional
        Another rig, such as the driver's: what its simulator sends moves this one too, for another head.  Of this
        profile's source, only ``head_m`` and ``bridge`` count.  Start the other one first.  Lines of the log begin with
        ``seat`` and its profile's name.

    Raises
    ------
    ConfigError
        If the profile is refused, or keeps laps in the file of another rig on the same simulator; on entering: if the
        recording cannot be made.
    EndpointError
        On entering: if another program drives the platform at an output, the source's endpoint is in use or not
        available, or a controller does not let itself be checked in.

    Notes
    -----
    What is asked of an engine by `engage`, `hold`, `park`, `keep` and `stop` is asked of those beside it as well.  Each
    has its own supervisor, and a fault of one holds no other up.

    Both loops run without the GIL from the simulator's bytes to the platform's.  Leaving the context fades to neutral
    before sending ends, even after an exception.  An engine that has been started and never stopped fades when the
    interpreter exits; deleting it does not stop it.  Started in the main thread, it also fades at SIGTERM and
    SIGHUP, within ``supervisor.leave_s``, and the program ends by SystemExit, unless it handles them itself.  No
    interrupt shortens a fade: it is raised when the engine is closed.  A process forked meanwhile has no engine:
    there, nothing is stopped.

    Examples
    --------
    >>> with motioncue.Engine("ccd-dk") as engine:          # doctest: +SKIP
    ...     time.sleep(60)
    ...     print(engine.stats())
    """

    def __init__(
        self,
        profile: Profile | str | Path,
        *,
        trace: int = 0,
        record: Record | str | Path | None = None,
        beside: "Engine | None" = None,
    ) -> None:
        if not isinstance(trace, int | np.integer) or trace < 0:
            raise ConfigError(f"trace: found {shown(trace)}, allowed is the number of ticks to keep, at least 0")
        if isinstance(profile, Profile):
            check(profile)
        else:
            profile = load_profile(profile)
        if beside is not None and beside._beside is not None:  # a seat beside a seat is one beside its driver
            beside = beside._beside
        adapt = partial(beside_driver, driver=beside.profile) if beside is not None else lambda it: it
        profile = adapt(profile)
        if beside is not None:
            check(profile)
        self._beside: Engine | None = beside
        self._rigs: weakref.WeakSet[Engine] = weakref.WeakSet()  # of a driver: every rig made beside it
        self._log: Log = LOG if beside is None else SeatLog(self._seat_name(profile.name))
        self._asked = "engage"  # newest request
        self.seats: list[Engine] = []
        """The engines that run beside this one."""
        self._pipeline = Pipeline(profile, MonotonicClock(round(1e3 * profile.outputs[0].spin_us)), trace, adapt)
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self._ending: Ending | None = None
        self._takes_signals = True  # those by which the system ends a program
        self._logged = 0  # transitions logged
        self._lost = 0  # events lost
        self._journal = Journal(log=self._log)
        self._source_log = SourceLog(self._journal, profile.source.system, self._pipeline.intake)
        self._endpoints: list[str] = []  # URLs of the outputs
        self._lines: dict[str, Line] = {}  # serial lines by their URL
        self._memories: dict[str, Written] = {}  # shared memory by its URL
        self._replies: dict[str, Replies] = {}  # of controllers that answer, by their URL
        self._texts: dict[str, str] = {}  # the newest that was no reply but can be read, by its URL
        self._checked_in: dict[str, CheckedIn] = {}  # connections by their URL
        self._logged_profile = profile
        self._granted: dict[str, bool] = {}
        if not isinstance(record, Record | str | os.PathLike | None):
            raise ConfigError(f"record: found {shown(record)}, allowed is a path, or a Record")
        if record is not None and not isinstance(record, Record):
            record = Record(file=str(record))
        self._record = profile.record if record is None else record
        self._keeper: LapKeeper | None = None
        if profile.laps is not None:
            self._refuse_shared_laps()
            car = None if profile.source.car is None else lambda: self.car
            along, recall = self._pipeline.emitter.along, self._pipeline.recall
            self._keeper = LapKeeper(profile.laps, profile.name, along, recall, car, self._log)
        (self if beside is None else beside)._rigs.add(self)  # last of all: one that could not be made is no rig

    def _seat_name(self, name: str) -> str:
        """Return what lines of the log call this seat: its profile's name, with its number if another one has that."""
        others = [rig._log.seat for rig in self._others() if isinstance(rig._log, SeatLog)]
        numbered = (f"{name} {number}".strip() for number in count(len(others) + 1))
        return name if name and name not in others else next(each for each in numbered if each not in others)

    def _others(self) -> "list[Engine]":
        """Return the rigs on the same simulator, this one left out, that have not ended."""
        driver = self if self._beside is None else self._beside
        return [rig for rig in driver._rigs if rig is not self and not rig._ended.is_set()]

    def _refuse_shared_laps(self) -> None:
        """Refuse to keep laps in the file of another rig on the same simulator, which has the same car."""
        own = self._laps_file()
        for rig in self._others():
            if own is not None and rig._laps_file() == own:
                who = f"seat {rig._log.seat}" if isinstance(rig._log, SeatLog) else "the driver"
                raise ConfigError(
                    f"laps: found {str(own)!r}, which {who} keeps too; allowed is a laps.name or laps.folder of its own"
                )

    def _laps_file(self) -> Path | None:
        """Return the file of the laps, the car left out; None if none are kept."""
        profile = self.profile
        # Not Path.resolve, which raises an error of its own for links in a circle.
        return None if profile.laps is None else Path(os.path.realpath(laps_file(profile.laps, profile.name, None)))

    def start(self, *seats: "Engine") -> "Engine":
        """Open the endpoints and start both loops.

        Parameters
        ----------
        *seats : Engine
            Engines beside this one that start with it: nothing is sent, and nobody moves, before all are open.

        Raises
        ------
        EndpointError
            If another program drives the platform at an output, an endpoint is in use or not available, or the source
            would receive what is sent.
        RuntimeError
            If this engine has been started before, or the system cannot make its threads.
        """
        every = (self, *seats)
        if any(each._threads or each._ended.is_set() for each in every):
            raise RuntimeError("this engine has been started already; make another one")
        try:
            for each in every:
                each._open()
            for each in every:
                each._begin()
            return self
        except BaseException:  # an endpoint is in use, the system cannot make another thread, or an interrupt
            for each in reversed(every):
                each._give_up()
            raise

    def _open(self) -> None:
        """Open the endpoints and make the threads."""
        source = self.profile.source
        with ExitStack() as opened:
            # Before anything reaches a simulator or a platform.
            opened.callback((claims := claims_of(self.profile.outputs, self.profile.platform)).close)
            self._receiver: Reception | Feeder | Companion
            if self._beside is not None:
                self._beside._refuse_before_start("beside")
                if self._beside._ended.is_set():
                    raise RuntimeError("beside: that engine has ended; nothing comes to it any more")
                self._receiver = Companion(self._beside._pipeline.intake, self._pipeline.intake)
            elif source.endpoints:
                self._receiver = Reception(
                    self._pipeline.intake, source.endpoints, allow=source.allow, forward=source.forward
                )
                opened.callback(self._receiver.close)
            else:
                self._receiver = Feeder(self._pipeline.intake, MonotonicClock())
            senders: list[tuple[str, tuple[Any, ...]]] = []
            others: list[tuple[tuple[Encoding, float], ...]] = []
            for index, output in enumerate(self.profile.outputs):
                for name, (url, encoding) in streams_of(output, self.profile.platform).items():
                    replies = self._replies_of(output, url)
                    packet = encoding.table, encoding.packet, encoding.seal, index, replies, name != "motion"
                    others.append(encoding.others)
                    endpoint = parse_endpoint(url)
                    if endpoint.scheme == "serial":
                        line = open_line(url, baud_of(output, endpoint))
                        opened.callback(line.close)
                        self._lines[url] = line
                        senders.append((url, (line, None, *packet)))
                        continue
                    if endpoint.scheme == "memory":
                        written = Written(endpoint.path, encoding.table.largest)
                        opened.callback(written.close)
                        self._memories[url] = written
                        senders.append((url, (written, None, *packet)))
                        continue
                    sender, address = open_sender(url)
                    opened.callback(sender.close)
                    fail_if_unheard(sender)
                    if replies is not None:
                        sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, REPLY_BYTES)
                    listening = (self if self._beside is None else self._beside)._receiver
                    if isinstance(listening, Reception):
                        listening.refuse_output(f"output.{name}", url, address)
                    senders.append((url, (sender, address, *packet)))
            for output in self.profile.outputs:
                table = output.packet and output.packet.check_in
                if table and table.endpoint:
                    self._checked_in[table.endpoint] = CheckedIn(table, self._log)
                    opened.callback(self._checked_in[table.endpoint].close)
            for (url, each), beside in zip(senders, others, strict=True):
                self._pipeline.emitter.add_output(*each)
                for encoding, every_s in beside:
                    self._pipeline.emitter.add_other(encoding.table, encoding.packet, encoding.seal, every_s)
                self._endpoints.append(url)
            self._outputs = Outputs(self._journal, self._endpoints)
            if self._record is not None:
                opened.enter_context(self._pipeline.record(self._record, {}, self._log))
            if self._keeper is not None:
                opened.enter_context(self._keeper)
            self._tell_beginning()
            ending = Ending(self._pipeline.emitter, patience_s=self._patience_s())
            # The last one closes what the others use.
            threads = [
                threading.Thread(target=target, name=f"motioncue {target.__name__}", daemon=True)
                for target in (self._drain, self._receive, self._emit)
            ]
            self._claims, self._threads, self._opened, self._ending = claims, threads, opened.pop_all(), ending

    def _begin(self) -> None:
        """Start the threads."""
        assert self._ending is not None
        self._ending.begin(signals=self._takes_signals)
        if self._beside is not None:
            if self._beside._asked != "engage":
                self._ask(self._beside._asked)
            self._beside.seats.append(self)
        for thread in self._threads:
            thread.start()

    def _replies_of(self, output: Output, url: str) -> Replies | None:
        """Return what reads the replies that come from an output; None if none are described."""
        if output.packet is None:
            return None
        actuators = channels_of(self.profile.platform) if self.profile.platform is not None else {}
        replies = replies_of(output.packet, actuators, stream=parse_endpoint(url).scheme == "serial")
        if replies is not None:
            self._replies[url] = replies
        return replies

    def _give_up(self) -> None:
        """End what has been begun when `start` fails."""
        if self._ending is None:  # what was opened is closed
            return
        sends = self._threads[-1]
        if sends in threading.enumerate():  # it runs, or is about to: the platform gets its fade
            self._ending.end()
        if sends.ident is None:
            self._close()
            self._ending.rested()
            self._ending.closed()

    def _patience_s(self) -> float:
        """Return the time that the way to rest may take with the settings in force, and with those requested."""
        return max(leaving_of(profile).stop_s for profile in (self.profile, self.requested)) + REST_PATIENCE_S

    def _tell_beginning(self) -> None:
        """Log where motion is expected from, and what is unusual about this run."""
        source = self.profile.source
        if self._beside is not None:
            who = f"beside {self._beside.profile.name}"
        elif source.endpoints:
            who = f"waiting for {source.system} at {', '.join(source.endpoints)}"
        else:
            who = f"waiting for this program to feed {self.profile.name}"
        self._log.info("%s", who)
        for line in bounds_in_force(self.profile):
            self._log.info("%s", line)
        self._warn_of_bounds_off()
        self._warn_of_inverted()
        if late := leaving_of(self.profile).late():
            self._log.warning("%s", late)
        if not isinstance(self._receiver, Reception):
            return
        if self._receiver.held:
            self._log.warning(
                "a program still holds its end of an earlier engine's pipe: served as soon as that is closed"
            )
        if self._receiver.deaf:
            self._log.warning("source.allow names no host: nothing that comes will be heard")

    def _warn_of_bounds_off(self) -> None:
        """Warn of bounds of the profile that are off."""
        if off := bounds_off(self.profile):
            self._log.warning("bounds off: %s", "; ".join(off))

    def _warn_of_inverted(self) -> None:
        """Warn of gains that turn a sense round."""
        if keys := inverted(self.profile):
            self._log.warning("inverted, which is worse than no motion unless it is meant: %s", ", ".join(keys))

    def feed(self, motion: Any, ahead: npt.NDArray[np.void] | None = None) -> bool:
        """Take one frame from the program that runs this engine.

        Parameters
        ----------
        motion : bytes-like, such as an ndarray of MOTION_DTYPE and shape (1,)
            A packet as the profile's ``[source.packet]`` describes it; of ``program-dk``, a row of MOTION_DTYPE.
        ahead : ndarray of MOTION_DTYPE, shape (7,), optional
            What the car will do `motioncue.AHEAD_S` from this frame, if the program knows, for an algorithm that plans.
            A row with NaN is not known.  It holds until the next frame, half a second at most, and is recorded.

        Returns
        -------
        bool
            False if it gave no motion: a number is not finite or beyond its limit, its size or marks are another
            packet's, or the engine is ending.  `stats` counts these as ``rejected``.

        Raises
        ------
        ConfigError
            If the profile has a ``source.endpoint``, where this engine receives already; or if `ahead` is not an array
            of its kind.
        RuntimeError
            If the engine has not been started.

        Notes
        -----
        The program sets the pace.  Whatever comes is watched like packets from a network; frames that stop are held,
        then faded out.  Any thread may call it.  It never waits: a frame that comes while another thread feeds is
        dropped and counted as ``second_simulator``.  In C it is `feed` of ``motioncue/motioncue.h``.

        Examples
        --------
        >>> with motioncue.Engine("program-dk") as engine:          # doctest: +SKIP
        ...     motion = np.zeros(1, motioncue.MOTION_DTYPE)
        ...     for motion["frame_time"] in np.arange(0.0, 60.0, 0.01):
        ...         motion["surge"] = ...
        ...         engine.feed(motion)
        """
        if ahead is not None:
            if getattr(ahead, "dtype", None) != MOTION_DTYPE or ahead.shape != (len(AHEAD_S),):
                found = f"{ahead.dtype} of shape {ahead.shape}" if isinstance(ahead, np.ndarray) else shown(ahead)
                raise ConfigError(f"ahead: found {found}, allowed is MOTION_DTYPE, shape ({len(AHEAD_S)},)")
            motion = b"".join([memoryview(motion).tobytes(), AHEAD_MARK, ahead.tobytes()])
        return self._feeder.feed(motion)

    def _check_fed(self) -> None:
        """Raise ConfigError if this engine receives at endpoints, or beside another, so that it cannot be fed."""
        if self._beside is not None:
            raise ConfigError("feed: found an engine beside another one, allowed is to feed that one")
        urls = self.profile.source.endpoints
        if urls:
            raise ConfigError(f"source.endpoint: found {', '.join(urls)!r}, allowed is none for an engine that is fed")

    @property
    def _feeder(self) -> Feeder:
        """What `feed` calls, for C; raises as `feed` does."""
        self._check_fed()
        if not self._threads and not self._ended.is_set():
            raise RuntimeError("this engine has not been started; use it in a with statement, or call start")
        assert isinstance(self._receiver, Feeder)
        return self._receiver

    def _receive(self) -> None:
        if isinstance(self._receiver, Feeder):
            return
        self._grant({f"receiver_{name}": granted for name, granted in prepare_receiver().items()})
        self._receiver.run()

    def _grant(self, granted: dict[str, bool]) -> None:
        """Note what the system has granted, also in the recording."""
        self._granted |= granted
        if self._pipeline.recorder is not None:
            self._pipeline.recorder.add_facts({"granted": json.dumps(self._granted)})

    def _emit(self) -> None:
        """Send until the platform is at rest, then close the engine: this thread takes no signals."""
        assert self._ending is not None
        try:
            self._send()
        finally:
            self._ending.rested()
            self._ending.wait_for_close()
            try:
                self._close()
            finally:
                self._ending.closed()

    def _send(self) -> None:
        emitter, output = self._pipeline.emitter, self.profile.outputs[0]
        with ExitStack() as held:
            held.callback(self._claims.close)  # behind the last packet, whether or not anybody closes the engine
            granted = emitter.prepare_thread(output.core, output.lock_memory)
            if output.core is not None and not granted["core"]:
                self._log.warning(
                    "output.core = %d: this process may not use that processor; any sends the packets", output.core
                )
            granted |= held.enter_context(machine_awake())
            if output.keep_awake:
                granted["keep_awake"] = held.enter_context(processors_awake())
            self._grant(granted)
            emitter.run()
        if not emitter.rested:
            self._log.error("the platform was not at rest in time: packets stop where they are")

    def _drain(self) -> None:
        while not self._ended.wait(DRAIN_S):
            self._log_events()
            self._journal.tell()
        self._log_events()
        self._journal.tell(end=True)

    def _log_events(self) -> None:
        self._source_log.look()
        before, self._lost = self._lost, self._pipeline.intake.events_lost
        if self._lost > before:
            self._journal.say("lost", logging.WARNING, f"{self._lost} events came too fast to be logged, so far")
        moves, self._logged = self._pipeline.transitions(self._logged)
        for move in moves:
            if move["to"] == "FAULT":
                self.keep()
            if move["reason"] == "retuned":
                self._log_retuned()
                continue
            calm = move["reason"] in CALM
            because = (
                ""
                if calm or move["reason"].startswith("platform_")
                else f" ({move['value']:.4g}, allowed {move['limit']:.4g})"
            )
            level = logging.DEBUG if move["reason"] in CALM[:2] else logging.INFO if calm else logging.WARNING
            kind = f"{move['from'].lower()} to {move['to'].lower()}: {move['reason']}"
            self._journal.say(kind, level, f"{kind}{because}")
        self._outputs.look(self._pipeline.emitter.outputs())
        for url, replies in self._replies.items():
            if said := replies.text():
                self._texts[url] = said
                self._journal.say((url, "text"), logging.INFO, f"{url}: says {said!r}, which is no reply as described")
        for url, checked_in in self._checked_in.items():
            if checked_in.lost():
                self._journal.say((url, "lost"), logging.WARNING, f"{url}: closed by the controller; packets go on")
        for url, line in self._lines.items():
            if line.reopen():
                self._journal.say((url, "back"), logging.WARNING, f"{url}: the line is back, an engage continues")
        for url, memory in self._memories.items():
            if memory.renew():
                self._journal.say((url, "anew"), logging.WARNING, f"{url}: was removed by another program; made anew")

    @property
    def profile(self) -> Profile:
        """The profile whose settings are in force."""
        return self._pipeline.profile

    @property
    def requested(self) -> Profile:
        """The profile requested last, whose settings are in force a few ticks later, or when a fade has ended."""
        return self._pipeline.requested

    @property
    def car(self) -> int | str | None:
        """Which car the simulator says it is, where ``source.car`` reads it; None before it has said."""
        field, found = self.profile.source.car, self._pipeline.intake.car
        return None if field is None or found is None else field.value(found)

    def retune(self, change: Change) -> None:
        """Change settings while the engine runs; the cue moves to them without a step.

        Parameters
        ----------
        change : Profile, str, Path, mapping or iterable of str
            A profile, its name or path (a str with "=" is an override, a Path never is), or overrides of the settings
            requested last: ``"cueing.surge.gain=0.4"``, several of these, or a mapping.

        Raises
        ------
        ConfigError
            If a key or value is not allowed, or cannot change while running (systems, endpoints, packets, rate, options
            of the source, the platform's geometry); names it, what was found and what is allowed.  Then nothing
            changes.

        Notes
        -----
        Everything in ``cueing``, ``limits``, ``watch`` and ``supervisor`` can change, ``source.bridge`` and
        ``source.head_m``, ``output.limits``, and the platform's bounds and ways to park.  The change is checked and
        designed here, in the caller's thread; the loops take it from a mailbox without waiting.  `profile` is the new
        one once its settings are in force.

        The algorithm of before and the new one, with its state or from rest if it is another one, run side by side for
        ``supervisor.fade_s``, in which the cue goes smoothly from the one to the other.  A change meanwhile waits for
        the end of that; of several, the newest counts.  Bounds that the output does not keep yet are approached along
        a fade too; until then each of value, rate, acceleration and jerk keeps the wider of the old and the new bound.

        Examples
        --------
        >>> engine.retune("cueing.surge.gain=0.4")              # doctest: +SKIP
        >>> engine.retune({"cueing": {"surge": {"gain": 0.4}}})     # doctest: +SKIP
        >>> engine.retune("rig.toml")                           # doctest: +SKIP
        """
        self._pipeline.retune(change)
        if self._ending is not None:
            self._ending.patience_s = self._patience_s()

    def _log_retuned(self) -> None:
        """Log the settings that have changed since the last time."""
        old, self._logged_profile = self._logged_profile, self.profile
        new = differences(old, self._logged_profile)
        words = [f"{key} {_short(before)} → {_short(after)}" for key, (before, after) in new.items()]
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        if words:
            self._journal.say("retuned", logging.INFO, f"retuned: {', '.join(words[:SHOWN])}{more}")
        if bounds_off(self._logged_profile) != bounds_off(old):
            self._warn_of_bounds_off()
        if inverted(self._logged_profile) != inverted(old):
            self._warn_of_inverted()

    def keep(self) -> None:
        """Write the last seconds that a ``last_s`` recording holds in memory; other recordings need no call."""
        for seat in tuple(self.seats):
            seat.keep()
        if self._pipeline.recorder is not None:
            self._pipeline.recorder.keep()

    @property
    def recordings(self) -> list[Path]:
        """The files recorded so far, the newest last."""
        return [] if self._pipeline.recorder is None else self._pipeline.recorder.paths

    def engage(self) -> None:
        """Follow the input; after a fault, allow it again; RuntimeError before the engine runs."""
        self._ask("engage")

    def hold(self) -> None:
        """Hold the present motion until told to engage or park; RuntimeError before the engine runs."""
        self._ask("hold")

    def park(self) -> None:
        """Fade to neutral and stay there, with packets; RuntimeError before the engine runs."""
        self._ask("park")

    def _ask(self, request: str) -> None:
        """Request an operation of this engine and of those beside it."""
        self._refuse_before_start(request)
        for each in (self, *self.seats):
            each._asked = request
            getattr(each._pipeline.emitter, request)()

    def _refuse_before_start(self, request: str) -> None:
        if not self._threads and not self._ended.is_set():
            raise RuntimeError(f"{request}: this engine does not run yet; call start(), or use it in a with statement")

    def stop(self, *, wait: bool = True, leave: bool = False) -> None:
        """Fade to neutral, then end both loops and close the endpoints.

        Parameters
        ----------
        wait : bool
            False: begin the fade and return.  Later requests have no effect; a second call completes the stop.  The
            next run may begin when `over`.
        leave : bool
            Be at rest within ``supervisor.leave_s``, as when the system ends the program: for a handler of SIGTERM, or
            of a window that closes.  A stop that is under way is hurried.

        Notes
        -----
        The wait is bounded, and no signal interrupts it: a KeyboardInterrupt that comes meanwhile is raised afterwards.
        """
        ending = self._ending
        if ending is None:
            return
        for seat in tuple(self.seats):  # all go to rest at the same time
            seat.stop(wait=False, leave=leave)
        if not wait:
            self._pipeline.emitter.stop(leave)
            return
        ending.end(leave)
        for seat in tuple(self.seats):
            seat.stop()
        sends = self._threads[-1]
        if sends.ident is not None:
            sends.join(LOG_PATIENCE_S if self._ended.is_set() else 0.0)

    @property
    def over(self) -> bool:
        """Whether the last packet has been sent, after a stop; also by those beside it."""
        return self._ending is not None and self._ending.over and all(seat.over for seat in tuple(self.seats))

    def _close(self) -> None:
        """End the other threads, one after the other, and close the endpoints."""
        logs, receives, _ = self._threads
        if self._beside is not None and self in self._beside.seats:
            self._beside.seats.remove(self)
        self._receiver.stop()
        if receives.ident is not None:  # it has been started
            receives.join()
        self._ended.set()
        if logs.ident is not None:
            logs.join(LOG_PATIENCE_S)
        self._opened.close()

    def __enter__(self) -> "Engine":
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, with a fade to neutral."""
        self.stop()

    def stats(self) -> dict[str, Any]:
        """Return the statistics so far; the keys are those of ``motioncue run --json``.

        ``granted`` has each request for punctuality to the system, and whether it was granted; ``events`` counts the
        discontinuities of the source by kind, and ``transitions`` lists what changed the state and why.
        """
        outputs = [
            {
                "endpoint": endpoint,
                **counts,
                **self._said(endpoint),
                "error": error_text(counts["error"]) if counts["error"] else None,
            }
            for endpoint, counts in zip(self._endpoints, self._pipeline.emitter.outputs(), strict=True)
        ]
        kept = {} if self._keeper is None else {"laps": self._keeper.counts()}
        return {**self._pipeline.stats(), **kept, "outputs": outputs, "granted": dict(self._granted)}

    def _said(self, endpoint: str) -> dict[str, Any]:
        """Return what the controller at an endpoint has answered, by ``replies``; empty if nothing is read there.

        Its counters, what it says, the ``positions`` of its actuators [m or rad], and the newest ``text`` that was no
        reply.
        """
        replies = self._replies.get(endpoint)
        if replies is None:
            return {}
        names = () if self.profile.platform is None else channels_of(self.profile.platform)
        places = {name: at for name, at in zip(names, replies.positions, strict=False) if math.isfinite(at)}
        text = {"text": self._texts[endpoint]} if endpoint in self._texts else {}
        return {"replies": {**replies.said(), **({"positions": places} if places else {}), **text}}

    def newest(self) -> npt.NDArray[np.void]:
        """Return the newest tick, ndarray of TICK_DTYPE and shape (1,): the motion read and the cue sent.

        While the platform is parked, the motion is that of the newest frame, which nothing follows.
        """
        newest: npt.NDArray[np.void] = self._pipeline.emitter.newest()
        return newest

    @property
    def trace(self) -> npt.NDArray[np.void]:
        """The first ticks, up to the number asked for: ndarray of TICK_DTYPE."""
        trace: npt.NDArray[np.void] = self._pipeline.emitter.trace
        return trace


def _short(value: Any) -> str:
    """Return a setting as the log shows it."""
    return f"{value:.6g}" if isinstance(value, float) else "none" if value is None else str(value)
