"""Cold functions of cueing whose settings change: take, compare, join, and free old settings."""

from libc.math cimport M_PI, isfinite, remainder
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy, memset

from motioncue.kernels.actuation cimport OutputChain, chain_take
from motioncue.kernels.algorithm cimport continues, far_firmer
from motioncue.kernels.fade cimport bend_at, heading, left_at, slope_at, vanishing
from motioncue.kernels.limiter cimport limits_take
from motioncue.kernels.records cimport CHANNELS, ROLL, YAW
from motioncue.kernels.slot cimport mc_count, mc_exchange, mc_load, mc_load_acquire, mc_store_release

from motioncue.kernels.bridge import KINDS

__all__ = ["Cueing", "Settings"]

cdef int64_t NOT_POSTED = 0x7FFFFFFFFFFFFFFF


cdef inline double turned(double difference, int channel) noexcept nogil:
    """Return the difference of a channel; for roll and yaw within -pi to pi."""
    return remainder(difference, 2.0 * M_PI) if channel == ROLL or channel == YAW else difference


cdef void cueing_open(CueingState* c) noexcept nogil:
    """Take the settings in the mailbox; from this tick on their algorithm runs beside the current one."""
    cdef const Design* mail = <const Design*><uintptr_t>mc_exchange(&c.mail, 0)
    cdef Calls* now = &c.now.algorithm
    cdef Calls* next = &c.next.algorithm
    cdef bint kept
    cdef int i
    c.next = mail[0]
    if c.position >= 1.0:
        memcpy(c.firmness, now.firmness, sizeof(c.firmness))
    if next.state == now.state:
        c.next.coeffs = c.now.coeffs
    else:
        kept = continues(next, now) and not far_firmer(next.firmness, c.firmness)
        next.reset(next.state)
        if kept:
            memcpy(next.state, now.state, now.state_bytes)
        for i in range(6):
            c.firmness[i] = min(c.firmness[i], next.firmness[i]) if kept else next.firmness[i]
        if next.way != NULL:
            c.next.coeffs = next.depart(next.way, now.way if kept else NULL, c.next.pace)
    c.overlap = 1
    c.compared = 0
    c.busy = True


cdef void cueing_compare(CueingState* c, const Motion* motion, Cue* cue) noexcept nogil:
    """Step the next algorithm, keep the difference of the cues, and add what remains of the last join to the cue."""
    cdef const Calls* next = &c.next.algorithm
    cdef double* channels = <double*>cue
    cdef double* apart
    cdef Cue other
    cdef int i
    if c.overlap and next.state != c.now.algorithm.state:
        next.step(next.state, c.next.coeffs, motion, &other)
        apart = c.apart[c.compared]
        for i in range(CHANNELS):
            apart[i] = turned(channels[i] - (<double*>&other)[i], i)
        c.compared += 1
    if c.position < 1.0:
        c.position += c.pace
    if c.position < 1.0:
        for i in range(CHANNELS):
            channels[i] += left_at(&c.joins[i], c.position)
        cue.roll = remainder(cue.roll, 2.0 * M_PI)
        cue.yaw = remainder(cue.yaw, 2.0 * M_PI)


cdef void begin_join(CueingState* c, double pace) noexcept nogil:
    """Begin a join from the newest difference and what remains of the join before."""
    cdef const double* newest = c.apart[c.compared - 1]
    cdef bint going = c.position < 1.0
    cdef double scale = c.pace / pace if going else 0.0
    cdef double value, slope, bend
    cdef bint same = True
    cdef int i
    for i in range(CHANNELS):
        same = same and (newest[i] == 0.0 or newest[i] != newest[i])
    if same:
        return
    for i in range(CHANNELS):
        value = newest[i]
        slope = bend = 0.0
        if c.compared == OVERLAP:
            slope = heading(turned(newest[i] - c.apart[1][i], i), turned(c.apart[1][i] - c.apart[0][i], i)) / pace
        if going:
            value = turned(value + left_at(&c.joins[i], c.position), i)
            slope += slope_at(&c.joins[i], c.position) * scale
            bend = bend_at(&c.joins[i], c.position) * scale * scale
        if not isfinite(value + slope + bend):      # an absent channel is NaN and has no difference
            value = slope = bend = 0.0
        c.joins[i] = vanishing(value, slope, bend)
    c.position = 0.0
    c.pace = pace


cdef void cueing_sent(CueingState* c, const Cue* cue) noexcept nogil:
    """Keep the cue sent in a tick of the overlap; after the last one the new settings are in force."""
    cdef int i
    advance(&c.now, False)
    if c.overlap:
        if c.next.algorithm.state == c.now.algorithm.state:
            c.next.coeffs = c.now.coeffs
        else:
            advance(&c.next, False)
        c.sent[c.overlap - 1] = cue[0]
        c.overlap += 1
    if c.overlap > OVERLAP:
        limits_take(c.next.limits, c.now.limits, c.sent, c.next.pace)
        if c.compared:
            begin_join(c, c.next.pace)
        for i in range(c.next.outputs):
            chain_take(c.next.chains[i], c.now.chains[i], c.next.pace)
        c.now = c.next
        c.overlap = 0
        mc_count(&c.changes, 1)
        mc_store_release(&c.in_force, c.now.number)
    c.busy = c.overlap or c.position < 1.0 or c.now.coeffs != c.now.algorithm.coeffs


cdef list stages_of(Settings settings):
    """Return what stays the same in the chains of settings: for each output, the kind of its stages and what they fill."""
    return [[(type(stage), stage.fills) for stage in chain.stages] for chain in settings.chains]


cdef class Settings:
    """A profile's settings, designed; ticks take them as a whole, and they never change.

    Parameters
    ----------
    algorithm : Algorithm
        Designed for `period_ns`.
    limits : CueLimits, optional
        Bounds on what is sent; none if not given.
    chains : sequence of OutputChain
        The stages between the limited cue and the packets of each output; one output without stages if not given.
    period_ns : int
        Time from one tick to the next [ns].
    bridge : {"hold", "linear", "predict"}
        How a tick interpolates between frames; see `motioncue.kernels.bridge.Bridge`.
    hold_s, fade_s : float
        How long the last motion is held when no newer one comes, and the duration of a fade or a join [s].
    engage_s : float
        How long a platform that begins to engage stays at neutral before the fade [s].
    profile : object, optional
        What the settings were made from.

    Attributes
    ----------
    algorithm, limits, chains, period_ns, profile
        As given.

    Raises
    ------
    ValueError
        If there are more chains than outputs allowed.
    TypeError
        If one of them is not an OutputChain.
    """

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
        profile=None,
    ):
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
        self.design = Design(
            algorithm.calls,
            algorithm.calls.coeffs,
            &self.limits.set,
            &self._chains[0],      # the name alone would be copied as an array
            len(self.chains),
            min(1.0, period_ns * 1e-9 / fade_s),
            <int64_t>(hold_s * 1e9),
            <int64_t>(engage_s * 1e9),
            KINDS[bridge],
            NOT_POSTED,
        )


    @property
    def number(self):
        """Number of settings posted before these; known once they have been posted."""
        return self.design.number


cdef class Cueing:
    """Cueing that runs in a loop without the GIL, while any thread may change its settings.

    Parameters
    ----------
    settings : Settings
        The initial settings.

    Notes
    -----
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
        cdef int64_t in_force, unread
        cdef Settings kept
        if settings.period_ns != (<Settings>self._kept[0]).period_ns:
            raise ValueError(
                f"period_ns: found {settings.period_ns}, allowed is that of the ticks, {self._kept[0].period_ns}"
            )
        if stages_of(settings) != stages_of(self._kept[0]):
            raise ValueError("chains: found other stages, allowed are those of the ticks with other coefficients")
        self._kept.append(settings)
        self._posted += 1       # from here to the exchange, nothing releases the GIL
        settings.design.number = self._posted
        unread = mc_exchange(&self.state.mail, <int64_t><uintptr_t>&settings.design)
        in_force = mc_load_acquire(&self.state.in_force)
        self._kept = [
            kept for kept in self._kept
            if kept.design.number >= in_force and <int64_t><uintptr_t>&kept.design != unread
        ]
        return 0

    def retune(self, Settings settings not None):
        """Use other settings from the next tick on.

        Parameters
        ----------
        settings : Settings
            Designed for the same period, and used by no other loop.

        Raises
        ------
        ValueError
            If their period or the stages of an output differ.
        """
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
