"""The step as a Python controller calls it: arrays bound once, then nothing but the step."""

cimport cython

import numpy as np

from motioncue.kernels.records cimport Cue, Motion
from motioncue.kernels.tuning cimport Settings

from motioncue.errors import ConfigError
from motioncue.motion import CUE_DTYPE, MOTION_DTYPE

__all__ = ["Stepper"]


cdef checked(str name, array, str kind, dtype, bint writeable):
    """Return `array`, or a new one if there is none; ConfigError unless it is one row of `dtype` to point at."""
    if array is None:
        return np.zeros(1, dtype)
    found = type(array).__name__
    if isinstance(array, np.ndarray):
        flags = array.flags
        if (
            array.dtype == dtype
            and array.shape == (1,)
            and array.ctypes.data % 8 == 0
            and (flags.writeable or not writeable)
        ):
            return array
        found = f"{array.dtype} of shape {array.shape}" + ("" if flags.writeable else ", read-only")
        found += "" if array.ctypes.data % 8 == 0 else ", not aligned to 8 bytes"
    raise ConfigError(
        f"{name}: found {found}, allowed is {kind}, shape (1,), aligned{' and writeable' if writeable else ''}"
    )


@cython.final
cdef class Stepper:
    """A profile's cueing with its arrays bound: what a controller calls in a loop of its own.

    Made by `motioncue.bind`.

    Parameters
    ----------
    settings : Settings
        The first ones.
    motion : ndarray of MOTION_DTYPE, shape (1,), optional
        What each step reads; a new one if not given.  Any memory will do, such as one row of a larger array, or a shared one.
    cue : ndarray of CUE_DTYPE, shape (1,), optional
        What each step fills; a new one if not given.
    tune : callable, optional
        Takes what `retune` is given, and a function to which it gives the Settings that this means.

    Raises
    ------
    ConfigError
        If `motion` or `cue` is not an array of its kind, or both share memory.

    Attributes
    ----------
    motion, cue : ndarray
        The bound arrays.
    period_ns : int
        From one step to the next [ns].

    Notes
    -----
    Real time: `step` and `reset` do not allocate and cannot fail.  The bound arrays stay where they are as long as the
    stepper lives.  One thread at a time, but for `retune`, which any thread may call.
    """

    def __cinit__(
        self, Settings settings not None, motion=None, cue=None, *, tune=None
    ):
        self.motion = checked("motion", motion, "MOTION_DTYPE", MOTION_DTYPE, False)
        self.cue = checked("cue", cue, "CUE_DTYPE", CUE_DTYPE, True)
        if np.may_share_memory(self.motion, self.cue):
            raise ConfigError("cue: found memory of motion, allowed is an array of its own")
        cdef const Motion[::1] source = self.motion
        cdef Cue[::1] target = self.cue
        self._in = &source[0]
        self._out = &target[0]
        self._cueing = Cueing(settings)
        self.cueing = &self._cueing.state
        self.period_ns = settings.period_ns
        self._tune = tune
        # An array that lends its memory cannot be resized.
        self._alive = (memoryview(self.motion), memoryview(self.cue))

    @cython.binding(False)
    def step(self):
        """Do one tick: read `motion`, fill `cue`, whose time is that of the motion.

        Returns
        -------
        bool
            False if the motion was refused, because an acceleration, an angle or a rate is not finite or beyond a
            million of its unit: then nothing has changed, and `cue` is still that of the tick before.  Speeds go
            through unlooked at.
        """
        return cueing_step(self.cueing, self._in, self._out)

    def reset(self):
        """Forget the past: the next step starts from rest at neutral; for a platform that is there."""
        cueing_reset(self.cueing)

    def retune(self, change):
        """Change settings from the next step on, without a step in what is asked for.

        Parameters
        ----------
        change : Profile, str, Path, mapping or sequence of str
            A profile; the name or path of one; or overrides of the settings asked for last, as ``"KEY=VALUE"``.

        Raises
        ------
        ConfigError
            If a key or a value is refused, or cannot change while it runs; then nothing changes.
        TypeError
            If this stepper was made without `tune`.
        """
        if self._tune is None:
            raise TypeError("this stepper was not made from a profile: it has nothing to change")
        self._tune(change, self._cueing.retune)

    @property
    def profile(self):
        """The profile whose settings the steps use; None if it was not made from one."""
        return self._cueing.settings.profile
