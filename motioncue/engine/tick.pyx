"""Cold functions of the tick: settings designed, taken, faded in and freed while it runs."""

from libc.math cimport M_PI, isfinite, remainder
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy, memset

from motioncue.core.interfaces cimport continues, step_algorithm
from motioncue.core.blend cimport smooth
from motioncue.core.records cimport CHANNELS, ROLL, YAW
from motioncue.frames.intake cimport Tuned, tuned_of
from motioncue.core.threads cimport mc_count, mc_exchange, mc_load, mc_load_acquire, mc_store_release
from motioncue.output.actuation cimport OutputChain, chain_continue
from motioncue.safety.limiter cimport limits_continue

from motioncue.bridge.bridge import KINDS

__all__ = ["Cueing", "Settings"]

cdef int64_t NOT_POSTED = 0x7FFFFFFFFFFFFFFF


cdef void retune_begin(CueingState* c) noexcept nogil:
    """Begin a change: take the settings in the mailbox; from this tick on their algorithm runs beside the current one."""
    cdef const Design* mail = <const Design*><uintptr_t>mc_exchange(&c.mail, 0)
    cdef Calls* now = &c.now.algorithm
    cdef Calls* next = &c.next.algorithm
    c.next = mail[0]
    c.overlap = 1
    c.same = True
    c.busy = True
    if next.state == now.state:
        return
    next.reset(next.state)
    if not continues(next, now):
        return
    if next.continue_from != NULL:
        c.next.coeffs = next.continue_from(next, now)
    else:
        memcpy(next.state, now.state, now.state_bytes)
    if c.next.eases:
        now[0] = next[0]
        c.now.coeffs = c.next.coeffs


cdef void crossfade(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Fade from one algorithm to another, stepping both; in the overlap only to see whether they differ."""
    cdef const Design* other = &c.next if c.overlap else &c.before
    cdef double* channels = <double*>cue
    cdef Cue second
    cdef double apart, share
    cdef int i
    if c.overlap:
        if other.algorithm.state == c.now.algorithm.state:
            return
    elif c.position >= 1.0:
        return
    step_algorithm(&other.algorithm, other.coeffs, motion, &second)
    if c.overlap:
        for i in range(CHANNELS):       # an absent channel is NaN and has no difference
            apart = (<double*>&second)[i] - channels[i]
            c.same = c.same and (apart == 0.0 or apart != apart)
        return
    c.position += c.pace
    if c.position >= 1.0:
        end_fade(c)
        return
    share = 1.0 - smooth(c.position)
    for i in range(CHANNELS):
        apart = (<double*>&second)[i] - channels[i]
        if i == ROLL or i == YAW:       # the short way round at first, and then without a jump to the other way
            c.apart[i == YAW] += remainder(apart - c.apart[i == YAW], 2.0 * M_PI)
            apart = c.apart[i == YAW]
        if isfinite(apart):
            channels[i] += share * apart
    cue.roll = remainder(cue.roll, 2.0 * M_PI)
    cue.yaw = remainder(cue.yaw, 2.0 * M_PI)


cdef void end_fade(CueingState* c) noexcept nogil:
    """Let the settings in force run alone; those of before can be freed."""
    c.position = 1.0
    mc_store_release(&c.oldest, c.now.number)


cdef void retune_finish(CueingState* c) noexcept nogil:
    """Finish any fade at once, and let coefficients be the algorithms' own."""
    if c.position < 1.0:
        end_fade(c)
    c.same = True
    finish_easing(&c.now)
    if c.overlap:
        finish_easing(&c.next)


cdef void finish_easing(Design* d) noexcept nogil:
    """Let coefficients be the algorithm's own."""
    if d.coeffs != d.algorithm.coeffs:
        d.coeffs = d.algorithm.settle(&d.algorithm, True)


cdef void retune_commit(CueingState* c, const Cue* cue) noexcept nogil:
    """Commit to the new settings after the last tick of the overlap, from the cues sent in it; then they fade in."""
    cdef int i
    if c.overlap:
        c.sent[c.overlap - 1] = cue[0]
        c.overlap += 1
    elif c.position >= 1.0 and c.now.coeffs != c.now.algorithm.coeffs:
        c.now.coeffs = c.now.algorithm.settle(&c.now.algorithm, False)
    if c.overlap > OVERLAP:
        limits_continue(c.next.limits, c.now.limits, c.sent, c.next.pace)
        for i in range(c.next.outputs):
            chain_continue(c.next.chains[i], c.now.chains[i], c.next.pace)
        if c.next.algorithm.state == c.now.algorithm.state:
            c.next.coeffs = c.now.coeffs
        elif not c.same:
            c.before = c.now
            c.position = 0.0
            c.pace = c.next.pace
            c.apart[0] = c.apart[1] = 0.0
        c.now = c.next
        c.overlap = 0
        mc_count(&c.changes, 1)
        if c.position >= 1.0:
            mc_store_release(&c.oldest, c.now.number)
        mc_store_release(&c.in_force, c.now.number)
    c.busy = c.overlap or c.position < 1.0 or c.now.coeffs != c.now.algorithm.coeffs


cdef list stages_of(Settings settings):
    """Return what stays the same in the chains of settings: for each output, the kind of its stages and what they fill."""
    return [[(type(stage), stage.fills) for stage in chain.stages] for chain in settings.chains]


cdef class Settings:
    """A profile's settings, designed; ticks take them as a whole, and they never change."""

    def __cinit__(
        self,
        Algorithm algorithm not None,
        CueLimits limits=None,
        chains=(),
        *,
        int64_t period_ns,
        str bridge="hold",
        double hold_s=0.1,
        double fade_s=1.0,
        double engage_s=0.0,
        leave_s=(1e9, 1e9),
        watch=None,
        head_m=(0.0, 0.0, 0.0),
        profile=None,
        Recalled recalled=None,
        Actuators platform=None,
        double any_fade_s=0.0,
    ):
        cdef Tuned tuned
        memset(&tuned, 0, sizeof(Tuned))
        if watch is not None:
            tuned = tuned_of(watch, head_m, fade_s)
        self.algorithm = algorithm
        self.limits = CueLimits() if limits is None else limits
        self.chains = tuple(chains) or (OutputChain(),)
        if len(self.chains) > OUTPUTS:
            raise ValueError(f"chains: found {len(self.chains)}, allowed are {OUTPUTS}")
        for i, chain in enumerate(self.chains):
            if not isinstance(chain, OutputChain):
                raise TypeError(f"chains: found {chain!r}, allowed are objects of OutputChain")
            self._chains[i] = &(<OutputChain>chain).chain
        self.period_ns = period_ns
        self.profile = profile
        self.recalled = recalled
        self.design = Design(
            algorithm.calls,
            algorithm.calls.coeffs,
            algorithm.eases,
            &self.limits.set,
            &self._chains[0],      # the name alone would be copied as an array
            len(self.chains),
            min(1.0, period_ns * 1e-9 / fade_s),
            min(1.0, period_ns * 1e-9 / leave_s[0]),
            min(1.0, period_ns * 1e-9 / leave_s[1]),
            <int64_t>(hold_s * 1e9),
            <int64_t>(engage_s * 1e9),
            KINDS[bridge],
            tuned,
            NOT_POSTED,
            NULL,
            NULL,
            any_fade_s * 1e9 / period_ns,
        )
        self._platform = platform
        if platform is not None:
            self.design.platform = &platform.params
        if recalled is not None:
            self.design.recalled = &self.recalled.kept

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """Let the outputs that send the car's own motion read it there."""
        cdef OutputChain chain
        for chain in self.chains:
            chain.read_motion(motion, weight, feedback)
        return 0

    cdef bint read_chassis(self, const double* chassis) except -1:
        """Let the outputs that send wheels, suspension and cab read them there; return whether one does."""
        cdef OutputChain chain
        cdef bint reads = False
        for chain in self.chains:
            reads |= chain.read_chassis(chassis)
        return reads

    @property
    def number(self):
        """Number of settings posted before these; known once they have been posted."""
        return self.design.number


cdef class Cueing:
    """Cueing that runs in a loop without the GIL, while any thread may change its settings.

    Real time: taking new settings does not allocate, needs no GIL and takes no lock.  Replaced settings are freed when
    newer ones are posted.
    """

    def __cinit__(self, Settings settings not None):
        memset(&self.state, 0, sizeof(CueingState))
        settings.design.number = 0
        self.state.now = settings.design
        self.state.position = 1.0
        self._kept = [settings]

    cdef int post(self, Settings settings) except -1:
        """Put settings into the mailbox, and free those that no tick uses any more."""
        cdef int64_t oldest, unread
        cdef Settings kept
        if settings.period_ns != (<Settings>self._kept[0]).period_ns:
            raise ValueError(
                f"period_ns: found {settings.period_ns}, allowed is that of the ticks, {self._kept[0].period_ns}"
            )
        if stages_of(settings) != stages_of(self._kept[0]):
            raise ValueError("chains: found other stages, allowed are those of the ticks with other coefficients")
        settings.read_motion(self._motion, self._weight, self._feedback)
        settings.read_chassis(self._chassis)
        self._kept.append(settings)
        self._posted += 1       # from here to the exchange, nothing releases the GIL
        settings.design.number = settings.design.tuned.number = self._posted
        unread = mc_exchange(&self.state.mail, <int64_t><uintptr_t>&settings.design)
        oldest = mc_load_acquire(&self.state.oldest)
        self._kept = [
            kept for kept in self._kept
            if kept.design.number >= oldest and <int64_t><uintptr_t>&kept.design != unread
        ]
        return 0

    cdef int read_motion(self, const Motion* motion, const double* weight, const double* feedback) except -1:
        """Let outputs that send the car's own motion read it there, with these settings and later ones."""
        cdef Settings kept
        self._motion, self._weight, self._feedback = motion, weight, feedback
        for kept in self._kept:
            kept.read_motion(motion, weight, feedback)
        return 0

    cdef bint read_chassis(self, const double* chassis) except -1:
        """Let outputs that send wheels, suspension and cab read them there, as above; return whether one does."""
        cdef Settings kept
        cdef bint reads = False
        self._chassis = chassis
        for kept in self._kept:
            reads |= kept.read_chassis(chassis)
        return reads

    def retune(self, Settings settings not None):
        """Use other settings from the next tick on."""
        self.post(settings)

    @property
    def settings(self):
        """The settings in force."""
        cdef int64_t in_force = mc_load_acquire(&self.state.in_force)
        cdef Settings kept
        for kept in self._kept:
            if kept.design.number == in_force:
                return kept

    @property
    def retunes(self):
        """How often new settings have come into force."""
        return mc_load(&self.state.changes)
