"""The package's kernels in loops without Python, connected as in the emitter and the receiver."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint8_t, uint64_t

from motioncue.core.interfaces cimport Algorithm, mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport Cue, Motion, Telemetry
from motioncue.frames.convert cimport BodyStage, to_body
from motioncue.frames.intake cimport Intake, intake_take
from motioncue.output.actuation cimport OutputChain, actuate
from motioncue.platforms.kinematics cimport Kinematics, forward, inverse
from motioncue.wire.codec cimport Table, decode, encode


def unpack(Table table not None, const uint8_t[:, ::1] frames, Telemetry[::1] out):
    """Decode frames into telemetry; return how many were refused."""
    cdef Py_ssize_t i
    cdef int refused = 0
    with nogil:
        for i in range(frames.shape[0]):
            refused += decode(table.rows, table.n, &frames[i, 0], <double*>&out[i]) != 0
    return refused


def take(Intake intake not None, const uint8_t[:, ::1] packages, int64_t start, int64_t period):
    """Take packages, one each period from a time on [ns]: match, decode, body frame, watch, publish."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(packages.shape[0]):
            intake_take(intake.intake, &packages[i, 0], <int>packages.shape[1], start + i * period)


def pack(OutputChain chain not None, Table table not None, const Cue[::1] cues, uint8_t[:, ::1] packets):
    """Encode cues into packets."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(cues.shape[0]):
            actuate(&chain.chain, &cues[i], NULL)
            encode(table.rows, table.n, <const double*>&chain.chain.actuation, &packets[i, 0])


def step(BodyStage stage not None, Algorithm algorithm not None, OutputChain chain not None, Table table not None,
         const Telemetry[::1] telemetry, uint8_t[:, ::1] packets):
    """Convert telemetry to packets, one whole step after the other."""
    cdef Py_ssize_t i
    cdef Motion motion
    cdef Cue cue
    cdef uint64_t fpu
    with nogil:
        fpu = mc_flush_denormals()
        for i in range(telemetry.shape[0]):
            to_body(&stage.frame, &telemetry[i], &motion)
            algorithm.calls.step(algorithm.calls.state, algorithm.calls.coeffs, &motion, &cue)
            actuate(&chain.chain, &cue, algorithm.calls.attitude)
            encode(table.rows, table.n, <const double*>&chain.chain.actuation, &packets[i, 0])
        mc_restore_fpu(fpu)


def legs(Kinematics kinematics not None, const double[:, ::1] poses, double[:, ::1] out):
    """Fill the positions of the actuators at poses."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(poses.shape[0]):
            inverse(&kinematics.geometry, &poses[i, 0], &out[i, 0], NULL)


def frame(Kinematics kinematics not None, const double[:, ::1] positions, double[:, ::1] out):
    """Fill the poses at positions, each found from the one before; return the Newton steps of all."""
    cdef double pose[6]
    cdef Py_ssize_t i
    cdef int k
    cdef long steps = 0
    for k in range(6):
        pose[k] = 0.0
    with nogil:
        for i in range(positions.shape[0]):
            steps += forward(&kinematics.geometry, &positions[i, 0], pose, 20)
            for k in range(6):
                out[i, k] = pose[k]
    return steps


def actuated(Algorithm algorithm not None, OutputChain chain not None, Table table not None, const Motion[::1] motion,
             uint8_t[:, ::1] packets):
    """Do a tick a row: motion, cue, stages of an output, packet."""
    cdef Py_ssize_t i
    cdef Cue cue
    cdef uint64_t fpu
    with nogil:
        fpu = mc_flush_denormals()
        for i in range(motion.shape[0]):
            algorithm.calls.step(algorithm.calls.state, algorithm.calls.coeffs, &motion[i], &cue)
            actuate(&chain.chain, &cue, algorithm.calls.attitude)
            encode(table.rows, table.n, <const double*>&chain.chain.actuation, &packets[i, 0])
        mc_restore_fpu(fpu)


def washout_repeat(Algorithm algorithm not None, const Motion[::1] motion, Cue[::1] cue, Py_ssize_t n):
    """Do `n` ticks with the same motion."""
    cdef Py_ssize_t i
    cdef uint64_t fpu
    with nogil:
        fpu = mc_flush_denormals()
        for i in range(n):
            algorithm.calls.step(algorithm.calls.state, algorithm.calls.coeffs, &motion[0], &cue[0])
        mc_restore_fpu(fpu)


cdef extern from "motioncue/motioncue.h" nogil:
    ctypedef struct motioncue_motion:
        pass
    ctypedef struct motioncue_cue:
        pass
    ctypedef struct motioncue_actuation:
        pass
    ctypedef struct motioncue_stepper:
        pass
    ctypedef struct motioncue_api:
        motioncue_stepper* (*create)(const char*, double, char*, size_t) noexcept nogil
        int (*step)(motioncue_stepper*, const motioncue_motion*, motioncue_cue*) noexcept nogil
        void (*destroy)(motioncue_stepper*) noexcept nogil
        void (*actuate)(motioncue_stepper*, const motioncue_cue*, motioncue_actuation*) noexcept nogil


cdef class Embedded:
    """A stepper created and stepped through the functions of motioncue/motioncue.h."""

    cdef const motioncue_api* api
    cdef motioncue_stepper* stepper

    def __cinit__(self, capsule, bytes profile):
        self.api = <const motioncue_api*>PyCapsule_GetPointer(capsule, "motioncue._capi")
        self.stepper = self.api.create(profile, 0.0, NULL, 0)
        if self.stepper == NULL:
            raise ValueError(profile)

    def __dealloc__(self):
        self.api.destroy(self.stepper)

    def repeat(self, const Motion[::1] motion, Cue[::1] cue, Py_ssize_t n):
        """Do `n` ticks with the same motion."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(n):
                self.api.step(self.stepper, <const motioncue_motion*>&motion[0], <motioncue_cue*>&cue[0])

    def drive(self, const Motion[::1] motion):
        """Do a tick with each motion, and fill what the first output is sent."""
        cdef motioncue_cue cue
        cdef motioncue_actuation actuation
        cdef Py_ssize_t i
        with nogil:
            for i in range(motion.shape[0]):
                self.api.step(self.stepper, <const motioncue_motion*>&motion[i], &cue)
                self.api.actuate(self.stepper, &cue, &actuation)
