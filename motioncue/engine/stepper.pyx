"""The step for a Python controller: arrays are bound once, then only `step` is called."""

cimport cython
from libc.stdint cimport uint64_t

import numpy as np

from motioncue.core.interfaces cimport AHEAD, mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport Actuation, Cue, Motion
from motioncue.engine.retune cimport Settings, cueing_actuate

from motioncue.core.channels import ACTUATION_DTYPE, CUE_DTYPE, MOTION_DTYPE
from motioncue.errors import ConfigError

__all__ = ["Stepper"]


cdef checked(str name, array, str kind, dtype, bint writeable, Py_ssize_t rows=1):
    """Return `array`, or a new one if it is None; raise ConfigError unless it is contiguous rows of `dtype`."""
    if array is None:
        return np.zeros(1, dtype)
    found = type(array).__name__
    if isinstance(array, np.ndarray):
        flags = array.flags
        if (
            array.dtype == dtype
            and array.shape == (rows,)
            and flags.c_contiguous
            and array.ctypes.data % 8 == 0
            and (flags.writeable or not writeable)
        ):
            return array
        found = f"{array.dtype} of shape {array.shape}" + ("" if flags.writeable else ", read-only")
        found += "" if array.ctypes.data % 8 == 0 else ", not aligned to 8 bytes"
    raise ConfigError(
        f"{name}: found {found}, allowed is {kind}, shape ({rows},), aligned{' and writeable' if writeable else ''}"
    )


@cython.final
cdef class Stepper:
    """A profile's cueing with its arrays bound: what a controller calls in a loop of its own.

    Made by `motioncue.bind`.

    Parameters
    ----------
    settings : Settings
        The initial settings.
    motion : ndarray of MOTION_DTYPE, shape (1,), optional
        Read by each step; a new array if not given.  Any memory will do, such as one row of a larger array, or shared
        memory.
    cue : ndarray of CUE_DTYPE, shape (1,), optional
        Filled by each step; a new array if not given.
    actuation : ndarray of ACTUATION_DTYPE, shape (1,), optional
        Filled by each step with what the first output is sent; if not given, its stages are not stepped.
    ahead : ndarray of MOTION_DTYPE, shape (7,), optional
        Read by each step: what the car will do `motioncue.AHEAD_S` from then, if the controller knows; a row that is not
        finite is not known.  An algorithm that does not plan takes no notice.
    tune : callable, optional
        Called by `retune` with the change and with a function that takes the resulting Settings.

    Raises
    ------
    ConfigError
        If `motion`, `cue`, `actuation` or `ahead` is not an array of its kind, or two of them share memory.

    Attributes
    ----------
    motion, cue, actuation, ahead : ndarray
        The bound arrays; `actuation` and `ahead` are None if none was given.
    period_ns : int
        Time from one step to the next [ns].
    parked : bool
        Whether the actuators of a ``[platform]`` are to rest where it is parked; False at first.  They sink and rise in
        its ``rise_s``; a first step with True begins parked, one with False at neutral.  Without a platform, nothing
        reads it: fading the cue is the controller's.

    Notes
    -----
    Real time: `step` and `reset` do not allocate and cannot fail.  The bound arrays keep their memory as long as the
    stepper lives.  Use it from one thread at a time; only `retune` may be called from any thread.
    """

    def __cinit__(
        self, Settings settings not None, motion=None, cue=None, *, actuation=None, ahead=None, tune=None
    ):
        cdef Actuation[::1] filled
        self.motion = checked("motion", motion, "MOTION_DTYPE", MOTION_DTYPE, False)
        self.cue = checked("cue", cue, "CUE_DTYPE", CUE_DTYPE, True)
        if np.may_share_memory(self.motion, self.cue):
            raise ConfigError("cue: found memory of motion, allowed is an array of its own")
        if actuation is not None:
            self.actuation = filled = checked("actuation", actuation, "ACTUATION_DTYPE", ACTUATION_DTYPE, True)
            self._filled = &filled[0]
            for name, other in (("motion", self.motion), ("cue", self.cue)):
                if np.may_share_memory(actuation, other):
                    raise ConfigError(f"actuation: found memory of {name}, allowed is an array of its own")
        cdef const Motion[::1] seen
        if ahead is not None:
            self.ahead = seen = checked("ahead", ahead, "MOTION_DTYPE", MOTION_DTYPE, False, AHEAD)
            self._seen = &seen[0]
            for name, other in (("cue", self.cue), ("actuation", self.actuation)):
                if other is not None and np.may_share_memory(ahead, other):
                    raise ConfigError(f"ahead: found memory of {name}, allowed is an array of its own")
        cdef const Motion[::1] source = self.motion
        cdef Cue[::1] target = self.cue
        self._in = &source[0]
        self._out = &target[0]
        self._cueing = Cueing(settings)
        self.cueing = &self._cueing.state
        self.period_ns = settings.period_ns
        self._tune = tune
        # These views keep the arrays from being resized.
        bound = (array for array in (self.motion, self.cue, self.actuation, self.ahead) if array is not None)
        self._alive = tuple(map(memoryview, bound))

    @cython.binding(False)
    def step(self):
        """Do one tick: read `motion`, fill `cue` and `actuation`; their times are set to the motion's.

        Returns
        -------
        bool
            False if the motion was refused because an acceleration, an angle or a rate is not finite or beyond a
            million of its unit: then `cue` is still that of the tick before, and actuators follow it.  Speeds are not
            checked.
        """
        cdef uint64_t fpu = mc_flush_denormals()
        if self._seen != NULL:
            cueing_look(self.cueing, self._seen)
        cdef bint taken = cueing_tick(self.cueing, self._in, self._out)
        if self._filled != NULL:        # also after a refusal: actuators that move cannot stop within a tick
            self._filled[0] = cueing_actuate(self.cueing, 0, self._out, self.parked)[0]
        mc_restore_fpu(fpu)
        return taken

    def reset(self):
        """Start from rest at the next step.

        Call it only when the platform is at neutral, or where it is parked and `parked` is set.
        """
        cueing_reset(self.cueing)

    def retune(self, change):
        """Change settings from the next step on; the cue moves to them without a step.

        Parameters
        ----------
        change : Profile, str, Path, mapping or sequence of str
            A profile, its name or path, or overrides of the settings requested last, as ``"KEY=VALUE"``.

        Raises
        ------
        ConfigError
            If a key or a value is refused, or cannot change while running; then nothing changes.
        TypeError
            If this stepper was made without `tune`.
        """
        if self._tune is None:
            raise TypeError("this stepper was not made from a profile: it has nothing to change")
        self._tune(change, self._cueing.retune)

    @property
    def profile(self):
        """The profile that the current settings were made from; None if there is none."""
        return self._cueing.settings.profile
