"""How one stage of many rigs is laid out and stepped."""

from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcmp

from motioncue.core.records cimport Actuation
from motioncue.core.threads cimport mc_count

import numpy as np

__all__ = []

cdef enum:
    ALIGNMENT = 64                                      # [bytes] of the widest lanes
    MOST = 512                                          # doubles of a stage at most


cdef void* room(list owned, size_t size) except NULL:
    """Return aligned, zeroed memory of this size, which lives as long as `owned`."""
    cdef unsigned char[::1] memory = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    owned.append(memory)
    return &memory[0] + -<uintptr_t>&memory[0] % ALIGNMENT


cdef void store(int lanes, double* block, int count, int64_t lane, const double* values) noexcept nogil:
    """Copy a rig's doubles into its lane of a block."""
    cdef int k
    for k in range(count):
        block[k * lanes + lane] = values[k]


cdef bint alike(const Beside* rigs, int64_t n) noexcept nogil:
    """Say whether `n` rigs can be side by side."""
    cdef int64_t i
    for i in range(1, n):
        if rigs[i].tick != rigs[0].tick or memcmp(rigs[i].plan, rigs[0].plan, sizeof(rigs[0].plan)) != 0:
            return False
    return True


cdef int row_of(Row* row, Beside* rigs, const unsigned char* parked, int64_t n, list owned) except -1:
    """Lay out a stage of `n` rigs; blocks with the coefficients of the block before share them."""
    cdef Block* block
    cdef Block* before = NULL
    cdef int64_t i, size, states, first = 0
    cdef double values[MOST]
    row.rigs = rigs
    row.parked = parked
    row.blocks = <Block*>room(owned, n * sizeof(Block))
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
        block.states = <double*>room(owned, states * sizeof(double))
        block.next_states = <double*>room(owned, states * sizeof(double))
        block.coeffs = <double*>room(owned, size)
        for i in range(block.count):
            block.ticks[i] = rigs[first + i].ticks
            rigs[first + i].lay(rigs[first + i].coeffs, values)
            store(block.count, block.coeffs, rigs[first].coeffs_count, i, values)
        if before != NULL and rigs[before.first].coeffs_count == rigs[first].coeffs_count and (
            before.count == block.count and memcmp(before.coeffs, block.coeffs, size) == 0
        ):
            block.coeffs = before.coeffs
        before = block
        for i in range(block.count):
            settle(row, block, i)
        first += block.count
    return 0


cdef void settle(Row* row, Block* block, int64_t lane) noexcept nogil:
    """Put a rig's state into its lane, unless a bound acts."""
    cdef const Beside* rig = &row.rigs[block.first + lane]
    cdef double values[MOST]
    if rig.pack(rig.state, rig.coeffs, values):
        store(block.count, block.states, rig.state_count, lane, values)
        block.calm |= <int64_t>1 << lane


cdef void unsettle(Row* row, Block* block, int64_t lane) noexcept nogil:
    """Take a rig's state of the tick before back from its lane."""
    cdef const Beside* rig = &row.rigs[block.first + lane]
    cdef double values[MOST]
    cdef int k
    if not block.calm >> lane & 1:
        return
    for k in range(rig.state_count):
        values[k] = block.next_states[k * block.count + lane]
    rig.unpack(rig.state, rig.coeffs, values)
    block.calm &= ~(<int64_t>1 << lane)


cdef void row_settle(Row* row, int64_t rig) noexcept nogil:
    """Continue from a rig's own state, which has been changed from outside."""
    cdef Block* block
    cdef int64_t i
    for i in range(row.block_count):
        block = &row.blocks[i]
        if block.count > 1 and block.first <= rig < block.first + block.count:
            block.calm &= ~(<int64_t>1 << rig - block.first)
            settle(row, block, rig - block.first)


cdef void step_alone(const Row* row, int64_t rig, double* rows) noexcept nogil:
    cdef const Beside* it = &row.rigs[rig]
    it.step(it.state, it.coeffs, NULL, row.parked[rig], <Actuation*>rows)


cdef void row_step(Row* row, double* rows, int stride) noexcept nogil:
    """Do one tick of the stage; the cue or actuation of each rig is `stride` doubles after the one before."""
    cdef Block* block
    cdef const Beside* rigs
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
        if block.calm:
            done = block.calm & rigs.tick(rigs.plan, block.coeffs, block.states, block.next_states, here, stride)
            block.states, block.next_states = block.next_states, block.states
        for i in range(block.count):
            if done >> i & 1 and not row.parked[block.first + i]:
                mc_count(block.ticks[i], 1)
                continue
            unsettle(row, block, i)
            step_alone(row, block.first + i, here + i * stride)
            settle(row, block, i)


cdef bint row_calm(const Row* row, int64_t rig) noexcept nogil:
    """Say whether a rig's state is in a block, as every state is in a row without blocks."""
    cdef const Block* block
    cdef int64_t i
    for i in range(row.block_count):
        block = &row.blocks[i]
        if block.first <= rig < block.first + block.count:
            return block.calm >> rig - block.first & 1
    return True
