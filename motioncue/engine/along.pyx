"""The lap before: rows along the way, where the car is among them, and what followed; see the pxd."""

from libc.math cimport NAN, cos, exp, hypot, isfinite, sin
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from motioncue.core.interfaces cimport AHEAD
from motioncue.core.records cimport Motion, Publication
from motioncue.core.threads cimport mc_fence, mc_load_acquire, mc_store_release

import struct
import zlib

import numpy as np

from motioncue.core.channels import AHEAD_S, MOTION_DTYPE
from motioncue.cueing.preview import shares_of
from motioncue.errors import PacketError

__all__ = ["LARGEST", "Along", "Recalled"]

ROW_DTYPE = np.dtype([
    ("time", "<f8"), ("place", "<f8", 2), ("heading", "<f4", 2), ("speed", "<f4"), ("felt", "<f4", FELT), ("gap", "<i4")
])
assert ROW_DTYPE.itemsize == sizeof(Row)
HEAD = struct.Struct("<16sII")
MARK, VERSION = b"motioncue laps ", b"1"
LARGEST = HEAD.size + ROWS * ROW_DTYPE.itemsize
"""Most bytes of what is taken out."""
MOST = {"time": 1e9, "place": 1e8, "heading": 1.01, "speed": 1e3, "felt": 1e3}     # [s, m, 1, m/s, m/s^2 and rad/s]
cdef int64_t recalls = 0

cdef enum:
    BEFORE = 25             # rows around the last place in which the car is looked for
    BEYOND = 75
    SEEN = 2048             # rows that are looked at in one go where it is sought

cdef double ROW_S = 0.04    # from row to row, if frames come as often
cdef double GAP_S = 0.3     # from frame to frame
cdef double SLOW = 2.0      # [m/s] below which nothing is kept or told
cdef double FAR = 15.0      # [m] beside what was driven
cdef double PRESENT_S = 10.0    # how old a row is at least
cdef double NEARER = 2.0    # [m] by which an older row has to be nearer than a newer one
cdef double PACE_S = 2.0    # in which the present pace goes over into that of before
cdef double[2] PACES = [0.4, 1.6]
cdef double[AHEAD] TIMES
TIMES[:] = AHEAD_S


cdef inline double between(double low, double value, double high) noexcept nogil:
    return low if value < low else (high if value > high else value)


cdef bytes packed(const Row* rows, int64_t count, const int64_t* now):
    """Return the newest rows of a ring as bytes; what a tick overwrites meanwhile, by the count of `now`, is left out."""
    cdef int64_t kept = ROWS - 2    # a tick may be about to overwrite one, and another before its count is seen
    cdef int64_t first = max(0, count - kept)
    cdef int64_t number
    cdef uint8_t[::1] memory
    found = np.zeros(count - first, ROW_DTYPE)
    if count > first:
        memory = found.view(np.uint8)
        with nogil:
            for number in range(first, count):
                memcpy(&memory[(number - first) * sizeof(Row)], &rows[number & (ROWS - 1)], sizeof(Row))
        mc_fence()
    found = found[max(0, mc_load_acquire(now) - kept - first) :]
    found["gap"][:1] = 1
    body = found.tobytes()
    return HEAD.pack(MARK + VERSION, len(found), zlib.crc32(body)) + body


def rows_in(bytes data):
    """Return the rows in what `Along.data` has returned, ROW_DTYPE; raise PacketError if it is anything else."""
    if len(data) < HEAD.size or not data.startswith(MARK):
        raise PacketError("found no mark of kept laps")
    mark, count, check = HEAD.unpack_from(data)
    version = mark[len(MARK) :]
    if version != VERSION:
        raise PacketError(f"found laps of version {version.decode('latin-1')!r}, allowed is {VERSION.decode()!r}")
    body = data[HEAD.size :]
    if count > ROWS or len(body) != count * ROW_DTYPE.itemsize:
        raise PacketError(f"found {len(body)} bytes for {count} rows of {ROW_DTYPE.itemsize}, of at most {ROWS}")
    if zlib.crc32(body) != check:
        raise PacketError("found rows that are not those that were written: the checksum differs")
    rows = np.frombuffer(body, ROW_DTYPE)
    for name, most in MOST.items():
        if not (np.abs(rows[name]) <= most).all():
            raise PacketError(f"found a row whose {name} is no number, or beyond {most:g}")
    if (rows["speed"] < SLOW).any() or (np.diff(rows["time"]) < 0.0).any() or (rows["time"] < 0.0).any():
        raise PacketError("found rows that go back in time, or stand")
    return rows


cdef class Recalled:
    """What an earlier session felt, for the ticks to take with their settings.

    `data` is what `Along.data` has returned (nothing: begin without a memory), or PacketError says what was found.
    """

    def __cinit__(self, bytes data=b""):
        global recalls
        cdef const uint8_t[::1] memory
        rows = rows_in(data) if data else np.zeros(0, ROW_DTYPE)
        self.kept.rows = <Row*>malloc(ROWS * sizeof(Row))
        if self.kept.rows == NULL:
            raise MemoryError
        memset(self.kept.rows, 0, ROWS * sizeof(Row))   # touches every page, so that no tick waits for one
        if len(rows):
            memory = rows.view(np.uint8)
            memcpy(self.kept.rows, &memory[0], len(rows) * sizeof(Row))
            self.kept.rows[0].gap = True
            self.kept.time = rows["time"][len(rows) - 1]
        self.kept.count = len(rows)
        recalls += 1
        self.kept.number = recalls

    def __dealloc__(self):
        free(self.kept.rows)

    def __len__(self):
        return self.kept.count

    @property
    def taken(self):
        """Whether the ticks go on from it, so that it holds what was felt before."""
        return bool(mc_load_acquire(&self.kept.taken))

    def data(self):
        """Return what it holds as bytes."""
        return packed(self.kept.rows, self.kept.count, &self.kept.count)


cdef class Along:
    """What was felt along the way so far.

    Real time: `take` does not allocate, and looks at a bounded number of rows.
    """

    def __cinit__(self):
        self.rows = <Row*>malloc(ROWS * sizeof(Row))
        if self.rows == NULL:
            raise MemoryError
        memset(self.rows, 0, ROWS * sizeof(Row))    # touches every page, so that no tick waits for one
        self.shares, self.present = shares_of(TAPS - 1, ROW_S)
        self.at, self.broken, self.nearest = -1, True, FAR

    def __dealloc__(self):
        free(self.rows)

    def newest(self):
        """Return what the car will feel next, MOTION_DTYPE, shape (7,), or None if it was not here before.

        For use without threads.
        """
        out = np.zeros(AHEAD, MOTION_DTYPE)
        cdef Motion[::1] view = out
        cdef int i
        for i in range(AHEAD):
            view[i] = self.ahead[i]
        return out if self.told else None

    def __len__(self):
        """Return how many rows there were so far, with those that were recalled."""
        return mc_load_acquire(&self.count)

    def data(self):
        """Return what was felt as bytes, at most `LARGEST`; any thread may ask, and no tick waits for it."""
        return packed(self.rows, mc_load_acquire(&self.count), &self.count)

    cdef void recall(self, Kept* kept) noexcept nogil:
        """Go on from what an earlier session felt, and leave there what was felt so far."""
        self.rows, kept.rows = kept.rows, self.rows
        self.count, kept.count = kept.count, self.count
        self.time, kept.time = kept.time + PRESENT_S, self.time
        self.recalled = kept.number
        self.skip()
        mc_store_release(&kept.taken, True)

    cdef const Row* row(self, int64_t number) noexcept nogil:
        """Return a row by its number."""
        return &self.rows[number & (ROWS - 1)]

    cdef void lose(self) noexcept nogil:
        """Begin to seek the car among all rows."""
        self.at, self.best, self.nearest = -1, -1, FAR
        self.sought = self.count - ROWS if self.count > ROWS else 0

    cdef void skip(self) noexcept nogil:
        """Note that what comes next does not follow what came so far."""
        self.broken, self.told, self.sums = True, False, 0
        memset(self.sum, 0, sizeof(self.sum))
        self.lose()

    cdef void take(self, const Publication* newest) noexcept nogil:
        """Take in a frame; tell anew what comes next, if it makes a row."""
        cdef const Motion* m = &newest.motion
        cdef double[FELT] felt = [
            m.surge, m.sway, m.heave, m.roll, m.pitch, m.roll_rate, m.pitch_rate, m.yaw_rate
        ]
        cdef double passed = m.frame_time - self.stamp
        cdef int i
        if newest.frozen or newest.epoch != self.epoch or not 0.0 <= passed < GAP_S or not m.speed > SLOW:
            self.skip()
            passed = GAP_S
        self.epoch, self.stamp = newest.epoch, m.frame_time
        self.time += passed
        if newest.frozen or not m.speed > SLOW or not isfinite(newest.place_north + newest.place_east + m.yaw):
            return
        if newest.place_north == 0.0 and newest.place_east == 0.0:     # a source that sends none
            return
        for i in range(FELT):
            self.sum[i] += felt[i]
        self.sums += 1
        if not self.broken and self.time - self.row(self.count - 1).time < ROW_S:
            return
        self.add(newest)
        self.find()
        self.told = self.at >= 0 and self.fill_ahead(newest)

    cdef void add(self, const Publication* newest) noexcept nogil:
        """Make a row of the frames since the row before."""
        cdef const Motion* m = &newest.motion
        cdef Row* row = &self.rows[self.count & (ROWS - 1)]
        cdef const Row* before = self.row(self.count - 1)
        cdef double way, expected
        cdef int i
        row.gap = self.broken or self.count == 0
        row.time = self.time
        row.place[0], row.place[1] = newest.place_north, newest.place_east
        row.heading[0], row.heading[1] = cos(m.yaw), sin(m.yaw)
        row.speed = m.speed
        for i in range(FELT):
            row.felt[i] = self.sum[i] / self.sums
            self.sum[i] = 0.0
        self.sums = 0
        if not row.gap:     # a position that stands still, or jumps, is none
            way = hypot(row.place[0] - before.place[0], row.place[1] - before.place[1])
            expected = 0.5 * (row.speed + before.speed) * (row.time - before.time)
            if not 0.5 * expected < way < 2.0 * expected + 0.5:
                row.gap = True
                self.lose()
        self.broken = False
        mc_store_release(&self.count, self.count + 1)       # for who takes rows out meanwhile

    cdef double apart(self, int64_t number) noexcept nogil:
        """Return the distance of the newest row from another in whose direction it goes [m]; else a large one."""
        cdef const Row* here = self.row(self.count - 1)
        cdef const Row* there = self.row(number)
        if here.heading[0] * there.heading[0] + here.heading[1] * there.heading[1] < 0.5:
            return 1e9
        return hypot(here.place[0] - there.place[0], here.place[1] - there.place[1])

    cdef void find(self) noexcept nogil:
        """Find the row at which the car is again: near the last one, or else among all, some of them in one go."""
        cdef double until = self.row(self.count - 1).time - PRESENT_S
        cdef int64_t oldest = self.count - ROWS if self.count > ROWS else 0
        cdef int64_t number, last
        cdef double distance
        if self.at < 0:
            last = self.sought + SEEN if self.sought + SEEN < self.count else self.count
            while self.sought < last and self.row(self.sought).time <= until:
                distance = self.apart(self.sought)
                if distance < FAR and distance < self.nearest + NEARER:
                    self.best, self.nearest = self.sought, distance
                self.sought += 1
            if self.sought < self.count and self.row(self.sought).time <= until:
                return
            number = self.best
            self.lose()
            self.at = number
            if self.at < 0:
                return
        number = self.at - BEFORE if self.at - BEFORE > oldest else oldest
        last = self.at + BEYOND
        self.best, self.nearest = -1, FAR
        while number <= last and number < self.count and self.row(number).time <= until:
            distance = self.apart(number)
            if distance < self.nearest:
                self.best, self.nearest = number, distance
            number += 1
        self.at = self.best
        if self.at < 0:
            self.lose()

    cdef bint fill_ahead(self, const Publication* newest) noexcept nogil:
        """Fill in what the car will feel if the rows that follow its place come again at its pace; say whether any do."""
        cdef const Row* at = self.row(self.at)
        cdef const Row* here = self.row(self.count - 1)
        cdef const Row* row
        cdef const Row* after
        cdef double[FELT] felt
        cdef double[FELT] first
        cdef double[AHEAD][FELT] found
        cdef double pace = between(PACES[0], here.speed / at.speed, PACES[1])
        cdef double begin, time, left, k, share, speed
        cdef int64_t number = self.at
        cdef int tap, i, node
        cdef int known = 0      # moments that are
        cdef Motion* out
        begin = (
            (here.place[0] - at.place[0]) * at.heading[0] + (here.place[1] - at.place[1]) * at.heading[1]
        ) / at.speed + at.time
        memset(found, 0, sizeof(found))
        for tap in range(TAPS):
            left = exp(-tap * ROW_S / PACE_S)
            time = begin + tap * ROW_S + (pace - 1.0) * PACE_S * (1.0 - left)
            while known == tap and number + 1 < self.count and self.row(number + 1).time <= time:
                number += 1
                if self.row(number).gap:
                    break
            row = self.row(number)
            after = self.row(number + 1)
            if known == tap and number + 1 < self.count and not after.gap and not (row.gap and number > self.at):
                share = between(0.0, (time - row.time) / (after.time - row.time), 1.0)
                speed = row.speed + share * (after.speed - row.speed)
                k = 1.0 + (pace - 1.0) * left
                for i in range(FELT):
                    felt[i] = row.felt[i] + share * (after.felt[i] - row.felt[i])
                    if i < 3:
                        felt[i] *= k * k
                    elif i > 4:
                        felt[i] *= k
                felt[0] -= speed * (pace - 1.0) / PACE_S * left
                known = tap + 1
            if tap == 0:
                if known == 0:
                    return False
                first = felt
            for node in range(AHEAD):
                for i in range(FELT):
                    found[node][i] += self.shares[node, tap] * felt[i]
        for node in range(AHEAD):
            for i in range(FELT):
                found[node][i] -= self.present[node] * first[i]
            out = &self.ahead[node]
            out.surge, out.sway, out.heave = found[node][0], found[node][1], found[node][2]
            out.roll, out.pitch = found[node][3], found[node][4]
            out.roll_rate, out.pitch_rate, out.yaw_rate = found[node][5], found[node][6], found[node][7]
            if TIMES[node] > known * ROW_S:
                out.surge = NAN
        self.now, self.taken = newest.motion, newest.place.time
        return True


