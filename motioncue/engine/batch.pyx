"""Many rigs in one call: side by side where they are alike and no bound acts, one after the other elsewhere."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memset

from motioncue.core.interfaces cimport Algorithm, LaneLayout, Calls, Lanes, Stage, mc_flush_denormals, mc_restore_fpu, step_algorithm
from motioncue.core.records cimport CHASSIS, Actuation, Cue, Motion
from motioncue.core.threads cimport mc_count
from motioncue.output.actuation cimport STAGES, Chain, OutputChain, chain_reset
from motioncue.safety.limiter cimport CueLimits, LimitSet, limits_rest

from operator import index

import numpy as np

from motioncue.core.channels import CUE_DTYPE

__all__ = ["Batch"]


cdef enum:
    ALIGNMENT = 64                                      # [bytes] of the widest lanes
    MOST = 512                                          # doubles of a stage at most


ctypedef struct Block:      # neighbors that can be side by side, or one that cannot
    int64_t first
    int64_t count
    double* coeffs
    double* states
    double* next_states     # room for those of the next tick
    int64_t* ticks[8]       # the counter of each rig's ticks
    int64_t unconstrained   # a bit for each rig whose state is in `states`


ctypedef struct Row:        # one stage of all rigs
    LaneLayout* rigs
    const unsigned char* parked     # whether each rig is to rest where it is parked; such rigs are stepped alone
    Block* blocks
    int64_t block_count


ctypedef struct Group:          # consecutive rigs that are stepped alike
    int64_t first
    int64_t count
    Lanes lanes                 # 0 lanes: the rigs are stepped one by one
    double* coeffs              # in blocks: each double of the coefficients, for every rig of the block
    double* states              # in blocks likewise


cdef void* aligned_zeros(list owned, size_t size) except NULL:
    """Return aligned, zeroed memory of this size, which lives as long as `owned`."""
    cdef unsigned char[::1] memory = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    owned.append(memory)
    return &memory[0] + -<uintptr_t>&memory[0] % ALIGNMENT


cdef void scatter(int lanes, double* block, int count, int64_t lane, const double* values) noexcept nogil:
    """Copy a rig's doubles into its lane of a block."""
    cdef int k
    for k in range(count):
        block[k * lanes + lane] = values[k]


cdef bint alike(const LaneLayout* rigs, int64_t n) noexcept nogil:
    """Say whether `n` rigs can be side by side."""
    cdef int64_t i
    for i in range(1, n):
        if rigs[i].tick != rigs[0].tick or memcmp(rigs[i].plan, rigs[0].plan, sizeof(rigs[0].plan)) != 0:
            return False
    return True


cdef int row_of(Row* row, LaneLayout* rigs, const unsigned char* parked, int64_t n, list owned) except -1:
    """Lay out a stage of `n` rigs; blocks with the coefficients of the block before share them."""
    cdef Block* block
    cdef Block* before = NULL
    cdef int64_t i, size, states, first = 0
    cdef double values[MOST]
    row.rigs = rigs
    row.parked = parked
    row.blocks = <Block*>aligned_zeros(owned, n * sizeof(Block))
    row.block_count = 0
    while first < n:
        if rigs[first].step == NULL:
            first += 1
            continue
        block = &row.blocks[row.block_count]
        row.block_count += 1
        block.first = first
        block.count = rigs[first].lanes
        if not 1 < block.count <= n - first or not alike(&rigs[first], block.count):
            block.count = 1
            first += 1
            continue
        size = block.count * rigs[first].coeffs_count * sizeof(double)
        states = block.count * rigs[first].state_count
        block.states = <double*>aligned_zeros(owned, states * sizeof(double))
        block.next_states = <double*>aligned_zeros(owned, states * sizeof(double))
        block.coeffs = <double*>aligned_zeros(owned, size)
        for i in range(block.count):
            block.ticks[i] = rigs[first + i].ticks
            rigs[first + i].fill_coeffs(rigs[first + i].coeffs, values)
            scatter(block.count, block.coeffs, rigs[first].coeffs_count, i, values)
        if before != NULL and rigs[before.first].coeffs_count == rigs[first].coeffs_count and (
            before.count == block.count and memcmp(before.coeffs, block.coeffs, size) == 0
        ):
            block.coeffs = before.coeffs
        before = block
        for i in range(block.count):
            load_lane(row, block, i)
        first += block.count
    return 0


cdef void load_lane(Row* row, Block* block, int64_t lane) noexcept nogil:
    """Put a rig's state into its lane, unless a bound acts."""
    cdef const LaneLayout* rig = &row.rigs[block.first + lane]
    cdef double values[MOST]
    if rig.to_lanes(rig.state, rig.coeffs, values):
        scatter(block.count, block.states, rig.state_count, lane, values)
        block.unconstrained |= <int64_t>1 << lane


cdef void store_lane(Row* row, Block* block, int64_t lane) noexcept nogil:
    """Take a rig's state of the tick before back from its lane."""
    cdef const LaneLayout* rig = &row.rigs[block.first + lane]
    cdef double values[MOST]
    cdef int k
    if not block.unconstrained >> lane & 1:
        return
    for k in range(rig.state_count):
        values[k] = block.next_states[k * block.count + lane]
    rig.from_lanes(rig.state, rig.coeffs, values)
    block.unconstrained &= ~(<int64_t>1 << lane)


cdef void load_row_lane(Row* row, int64_t rig) noexcept nogil:
    """Continue from a rig's own state, which has been changed from outside."""
    cdef Block* block
    cdef int64_t i
    for i in range(row.block_count):
        block = &row.blocks[i]
        if block.count > 1 and block.first <= rig < block.first + block.count:
            block.unconstrained &= ~(<int64_t>1 << rig - block.first)
            load_lane(row, block, rig - block.first)


cdef void step_alone(const Row* row, int64_t rig, double* rows) noexcept nogil:
    cdef const LaneLayout* it = &row.rigs[rig]
    it.step(it.state, it.coeffs, NULL, row.parked[rig], <Actuation*>rows)


cdef void row_step(Row* row, double* rows, int stride) noexcept nogil:
    """Do one tick of the stage; the cue or actuation of each rig is `stride` doubles after the one before."""
    cdef Block* block
    cdef const LaneLayout* rigs
    cdef double* here
    cdef int64_t i, k, done
    for k in range(row.block_count):
        block = &row.blocks[k]
        rigs = &row.rigs[block.first]
        here = rows + block.first * stride
        if block.count == 1:
            step_alone(row, block.first, here)
            continue
        done = 0
        if block.unconstrained:
            done = block.unconstrained & rigs.tick(rigs.plan, block.coeffs, block.states, block.next_states, here, stride)
            block.states, block.next_states = block.next_states, block.states
        for i in range(block.count):
            if done >> i & 1 and not row.parked[block.first + i]:
                mc_count(block.ticks[i], 1)
                continue
            store_lane(row, block, i)
            step_alone(row, block.first + i, here + i * stride)
            load_lane(row, block, i)


cdef bint row_unconstrained(const Row* row, int64_t rig) noexcept nogil:
    """Say whether a rig's state is in a block, as every state is in a row without blocks."""
    cdef const Block* block
    cdef int64_t i
    for i in range(row.block_count):
        block = &row.blocks[i]
        if block.first <= rig < block.first + block.count:
            return block.unconstrained >> rig - block.first & 1
    return True


cdef extern from "motioncue/core/records.h" nogil:
    enum:
        CUE "MC_CUE_SIZE"                   # doubles
        ACTUATION "MC_ACTUATION_SIZE"


cdef void place(const Group* group, double* blocks, int count, int64_t rig, const void* values) noexcept nogil:
    """Copy a rig's doubles into its lane; `rig` counts from the group's first."""
    cdef int lanes = group.lanes.lanes
    scatter(lanes, blocks + rig // lanes * lanes * count, count, rig % lanes, <const double*>values)


cdef class Batch:
    """Algorithms that are stepped together, each with its own coefficients and state.

    Set an item of `parked` to let the actuators of that rig's platform sink to where they are parked, and clear it to let
    them rise, as in `motioncue.bind`; steps without an actuation do not read it.

    Results equal those of each rig by itself, bit for bit.  Neighbors of one kind that has a form for lanes share
    blocks of 8 rigs with AVX-512, 4 with AVX2, 2 elsewhere; a partly filled block costs as much as a full one.  All
    others are stepped one by one.  Limits and actuators are stepped in such blocks as long as no bound acts.
    """

    cdef int64_t n
    cdef readonly object parked
    cdef list alive             # owns the algorithms and the limits
    cdef Calls* calls           # one per rig
    cdef LimitSet** limits      # one per rig; NULL if no rig has limits
    cdef Chain** chains         # one per rig; NULL if no rig has a chain
    cdef Row limiting           # the limits of all rigs
    cdef Row stages[STAGES]     # the stages of their chains, in order
    cdef Group* groups
    cdef int64_t group_count
    cdef list owned             # owns the memory behind these pointers
    cdef object motion_array    # the arrays given to the last `step`; the views of them are below
    cdef object cue_array
    cdef object actuation_array
    cdef const Motion[::1] motion
    cdef Cue[::1] cue
    cdef Actuation[::1] actuation

    def __init__(self, algorithms, limits=(), chains=()):
        cdef Algorithm algorithm
        cdef Group* group = NULL
        cdef int64_t i
        algorithms, limits, chains = list(algorithms), list(limits), list(chains)
        for name, kind, members in (
            ("algorithms", Algorithm, algorithms), ("limits", CueLimits, limits), ("chains", OutputChain, chains)
        ):
            for member in members:
                if not isinstance(member, kind):
                    raise TypeError(f"{name}: found {member!r}, allowed are objects of {kind.__name__}")
        if not algorithms:
            raise ValueError("algorithms: found none, allowed is one or more")
        if len(set(map(id, algorithms))) != len(algorithms):
            raise ValueError("algorithms: found one twice, allowed is one of its own for each rig")
        for name, members in (("limits", limits), ("chains", chains)):
            if members and len(members) != len(algorithms):
                raise ValueError(f"{name}: found {len(members)}, allowed are {len(algorithms)}, one a rig")
        self.alive = [algorithms, limits, chains]
        self.owned = []
        self.parked = np.zeros(len(algorithms), dtype=np.bool_)
        self.motion_array = self.cue_array = self       # a sentinel that no caller passes, so the first step binds
        self.calls = <Calls*>aligned_zeros(self.owned, len(algorithms) * sizeof(Calls))
        self.groups = <Group*>aligned_zeros(self.owned, len(algorithms) * sizeof(Group))
        self.group_count = 0
        self.limits = NULL
        if any([(<CueLimits>kept).set.count for kept in limits]):
            self.limits = <LimitSet**>aligned_zeros(self.owned, len(limits) * sizeof(LimitSet*))
            for i in range(len(limits)):
                self.limits[i] = &(<CueLimits>limits[i]).set
        self.chains = NULL
        if chains:
            self.chains = <Chain**>aligned_zeros(self.owned, len(chains) * sizeof(Chain*))
            for i in range(len(chains)):
                self.chains[i] = &(<OutputChain>chains[i]).chain
        for i, algorithm in enumerate(algorithms):
            self.calls[i] = algorithm.calls
            if group == NULL or group.lanes.tick != algorithm.lanes.tick:
                group = &self.groups[self.group_count]
                group.first = i
                group.lanes = algorithm.lanes
                self.group_count += 1
            group.count += 1
        for i in range(self.group_count):
            if self.groups[i].lanes.lanes:
                self.lay_out(&self.groups[i])
        self.line_up(limits, chains)
        self.n = len(algorithms)

    cdef int lay_out(self, Group* group) except -1:
        """Copy the coefficients and states of a group into blocks; unused lanes repeat the last rig."""
        cdef int lanes = group.lanes.lanes
        cdef int64_t places = (group.count + lanes - 1) // lanes * lanes
        cdef int64_t i
        cdef const Calls* calls
        group.coeffs = <double*>aligned_zeros(self.owned, places * group.lanes.coeffs_count * sizeof(double))
        group.states = <double*>aligned_zeros(self.owned, places * group.lanes.state_count * sizeof(double))
        for i in range(places):
            calls = &self.calls[group.first + min(i, group.count - 1)]
            place(group, group.coeffs, group.lanes.coeffs_count, i, calls.coeffs)
            place(group, group.states, group.lanes.state_count, i, calls.state)
        return 0

    cdef int line_up(self, limits, chains) except -1:
        """Lay out the limits, and each stage of the chains, for rigs side by side."""
        cdef Stage stage
        cdef CueLimits kept
        cdef LaneLayout* rigs
        cdef int64_t i, k
        cdef unsigned char[::1] parked = self.parked.view(np.uint8)
        self.owned.append(parked)       # keeps the array from being resized
        if self.limits != NULL:
            rigs = <LaneLayout*>aligned_zeros(self.owned, len(limits) * sizeof(LaneLayout))
            for i, kept in enumerate(limits):
                rigs[i] = kept.lane_layout()
            row_of(&self.limiting, rigs, &parked[0], len(limits), self.owned)
        for k in range(max([len(chain.stages) for chain in chains], default=0)):
            rigs = <LaneLayout*>aligned_zeros(self.owned, len(chains) * sizeof(LaneLayout))
            for i, chain in enumerate(chains):
                if k < len(chain.stages):
                    stage = chain.stages[k]
                    rigs[i] = stage.lane_layout()
            row_of(&self.stages[k], rigs, &parked[0], len(chains), self.owned)
        return 0

    def __len__(self):
        """Return how many rigs there are."""
        return self.n

    @property
    def unconstrained(self):
        """The rigs whose limits and actuators will be stepped side by side: ndarray of bool, shape (n,).

        They share a full block with neighbors of their kind, and no bound acted on them at the tick before.
        """
        cdef int64_t i
        cdef int k
        found = np.ones(self.n, dtype=np.bool_)
        for i in range(self.n):
            found[i] = row_unconstrained(&self.limiting, i)
            for k in range(<int>STAGES):
                found[i] &= row_unconstrained(&self.stages[k], i)
        return found

    def reset(self, rigs=None):
        """Forget the past; the next step starts from rest."""
        cdef int64_t i, k
        cdef Group* group
        which = range(self.n) if rigs is None else [index(rig) for rig in rigs]
        for rig in which:
            if not 0 <= rig < self.n:
                raise IndexError(f"rigs: found {rig}, allowed are 0 to {self.n - 1}")
        for i in which:
            self.calls[i].reset(self.calls[i].state)
            if self.limits != NULL:
                limits_rest(self.limits[i])
            if self.chains != NULL:
                chain_reset(self.chains[i])
            for k in range(self.group_count):
                group = &self.groups[k]
                if group.lanes.lanes and group.first <= i < group.first + group.count:
                    place(group, group.states, group.lanes.state_count, i - group.first, self.calls[i].state)
            load_row_lane(&self.limiting, i)
            for k in range(<int>STAGES):
                load_row_lane(&self.stages[k], i)

    cdef void tick(self, const Motion* motion, Cue* cue) noexcept nogil:
        cdef const Group* group
        cdef int64_t i, k
        for k in range(self.group_count):
            group = &self.groups[k]
            if group.lanes.lanes:
                group.lanes.tick(group.states, group.coeffs, &motion[group.first], &cue[group.first], group.count)
                continue
            for i in range(group.first, group.first + group.count):
                step_algorithm(&self.calls[i], self.calls[i].coeffs, &motion[i], &cue[i])
                cue[i].time = motion[i].time
        row_step(&self.limiting, <double*>cue, CUE)

    cdef void actuate(self, const Cue* cue, Actuation* actuation) noexcept nogil:
        cdef int k
        cdef int64_t rig
        for rig in range(self.n):
            memset(&actuation[rig].up_east, 0, <char*>&actuation[rig].car_suspension_front_left - <char*>&actuation[rig].up_east)
            actuation[rig].cue = cue[rig]
        for k in range(<int>STAGES):
            row_step(&self.stages[k], <double*>actuation, ACTUATION)

    cdef int bind(self, motion, cue, actuation) except -1:
        """Check arrays that differ from the last ones, and keep views of them."""
        cdef Actuation[::1] actuations = None
        cdef int place = 0
        if motion is None or cue is None:
            raise TypeError("step: found None, allowed are arrays")
        cdef const Motion[::1] motions = motion
        cdef Cue[::1] cues = cue
        if self.n == 0 or motions.shape[0] != self.n or cues.shape[0] != self.n:     # n is 0 if __init__ did not finish
            raise ValueError(f"step: found shapes ({motions.shape[0]},) and ({cues.shape[0]},), allowed is ({self.n},)")
        if np.may_share_memory(motion, cue):
            raise ValueError("step: found motion and cue in the same memory, allowed are arrays of their own")
        if actuation is not None:
            actuations = actuation
            if actuations.shape[0] != self.n or self.chains == NULL:
                allowed = self.n if self.chains != NULL else "none without chains"
                raise ValueError(f"step: found actuation of shape ({actuations.shape[0]},), allowed is ({allowed},)")
            if np.may_share_memory(actuation, motion) or np.may_share_memory(actuation, cue):
                raise ValueError("step: found actuation in the memory of another, allowed is an array of its own")
        # What a source says of wheels, suspension and cab never comes here, so a tick need not set it to 0 again.
        for place in range(0 if actuations is None else self.n):
            memset(&actuations[place].car_suspension_front_left, 0, (CHASSIS + 1) * sizeof(double))
        place = 0
        for chain in self.alive[2]:       # may send the car's own motion
            (<OutputChain>chain).read_motion(&motions[place], NULL, NULL)
            place += 1
        self.motion, self.cue, self.actuation = motions, cues, actuations
        self.motion_array, self.cue_array, self.actuation_array = motion, cue, actuation
        return 0

    def step(self, motion, cue, actuation=None):
        """Do one tick of every rig.

        Real time: does not allocate if the arrays are those of the call before; others are checked first (about 2 µs).
        Keeps the GIL.
        """
        cdef uint64_t fpu
        cdef int64_t i
        if motion is not self.motion_array or cue is not self.cue_array or actuation is not self.actuation_array:
            self.bind(motion, cue, actuation)
        fpu = mc_flush_denormals()
        self.tick(&self.motion[0], &self.cue[0])
        if actuation is not None:
            self.actuate(&self.cue[0], &self.actuation[0])
        mc_restore_fpu(fpu)

    def process(self, const Motion[:, ::1] motion not None, out=None):
        """Do one tick per row, bit-identical to as many calls of `step`.

        Real time: releases the GIL.
        """
        cdef Py_ssize_t i, ticks = motion.shape[0]
        cdef uint64_t fpu
        if out is None:
            out = np.zeros((ticks, self.n), dtype=CUE_DTYPE)
        cdef Cue[:, ::1] cue = out
        if self.n == 0 or motion.shape[1] != self.n or cue.shape[0] != ticks or cue.shape[1] != self.n:
            raise ValueError(
                f"process: found shapes ({ticks}, {motion.shape[1]}) and ({cue.shape[0]}, {cue.shape[1]}), "
                f"allowed is (ticks, {self.n})"
            )
        if np.may_share_memory(motion, out):
            raise ValueError("process: found motion and out in the same memory, allowed are arrays of their own")
        with nogil:
            fpu = mc_flush_denormals()
            for i in range(ticks):
                self.tick(&motion[i, 0], &cue[i, 0])
            mc_restore_fpu(fpu)
        return out
