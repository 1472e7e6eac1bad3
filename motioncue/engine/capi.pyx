"""The functions of ``motioncue/motioncue.h``, and the capsule in which C finds them."""

from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.math cimport NAN
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from motioncue.core.interfaces cimport mc_flush_denormals, mc_restore_fpu
from motioncue.core.records cimport CHASSIS, Actuation, Cue, Motion
from motioncue.engine.embed cimport Feeder, FeederState, Stepper, feeder_take
from motioncue.engine.tick cimport CueingState, cueing_actuate, cueing_look, cueing_reset, cueing_step

from motioncue.engine.embedding import bind

__all__ = []


cdef extern from "motioncue/motioncue.h" nogil:
    enum:
        MOTIONCUE_ABI
    ctypedef struct motioncue_motion:
        pass
    ctypedef struct motioncue_cue:
        pass
    ctypedef struct motioncue_actuation:
        pass
    ctypedef struct motioncue_stepper:
        pass
    ctypedef struct motioncue_engine:
        pass
    ctypedef struct motioncue_api:
        uint32_t abi
        uint32_t size
        motioncue_stepper* (*create)(const char*, double, char*, size_t) noexcept nogil
        int64_t (*period_ns)(const motioncue_stepper*) noexcept nogil
        int (*step)(motioncue_stepper*, const motioncue_motion*, motioncue_cue*) noexcept nogil
        void (*reset)(motioncue_stepper*) noexcept nogil
        void (*destroy)(motioncue_stepper*) noexcept nogil
        int (*retune)(motioncue_stepper*, const char*, char*, size_t) noexcept nogil
        void (*actuate)(motioncue_stepper*, const motioncue_cue*, motioncue_actuation*) noexcept nogil
        void (*park)(motioncue_stepper*, int) noexcept nogil
        motioncue_engine* (*start)(const char*, char*, size_t) noexcept nogil
        int (*feed)(motioncue_engine*, const void*, size_t) noexcept nogil
        void (*stop)(motioncue_engine*) noexcept nogil
        void (*look)(motioncue_stepper*, const motioncue_motion*) noexcept nogil
        void (*wheels)(motioncue_stepper*, const double*) noexcept nogil


ctypedef struct Handle:     # the target of a motioncue_stepper*
    CueingState* cueing
    int64_t period_ns
    bint parked
    Motion* car             # read by an output that sends the car's own motion; NULL if none does
    double chassis[CHASSIS] # read by an output that sends wheels, suspension and cab
    PyObject* stepper       # owns the memory behind the other pointers


cdef Handle* made(const char* profile, double rate_hz) except NULL:
    cdef Stepper stepper
    cdef Handle* handle
    cdef int place
    if profile == NULL:
        raise ValueError("profile: found NULL, allowed is a name or a path")
    stepper = bind((<bytes>profile).decode(), rate_hz=rate_hz if rate_hz != 0.0 else None)
    handle = <Handle*>malloc(sizeof(Handle))
    if handle == NULL:
        raise MemoryError
    handle.cueing, handle.period_ns, handle.parked = stepper.cueing, stepper.period_ns, False
    handle.car, handle.stepper = NULL, <PyObject*>stepper
    for place in range(CHASSIS):
        handle.chassis[place] = NAN
    stepper._cueing.read_chassis(handle.chassis)
    if "car_surge" in stepper._cueing.settings.chains[0].fills:
        handle.car = <Motion*>stepper._in
    Py_INCREF(stepper)
    return handle


cdef void explain(problem, char* error, size_t size) noexcept:
    """Write the reason of a refusal into C's buffer, cut to whole characters that fit."""
    cdef bytes text = (str(problem) or type(problem).__name__).encode("utf-8", "replace")
    if error != NULL and size > 0:
        text = text[: size - 1].decode("utf-8", "ignore").encode()
        memcpy(error, <const char*>text, len(text) + 1)


cdef motioncue_stepper* create(const char* profile, double rate_hz, char* error, size_t size) noexcept with gil:
    try:
        return <motioncue_stepper*>made(profile, rate_hz)
    except BaseException as problem:    # C receives the reason in `error`
        explain(problem, error, size)
    return NULL


cdef int64_t period_ns(const motioncue_stepper* stepper) noexcept nogil:
    return 0 if stepper == NULL else (<const Handle*>stepper).period_ns


cdef int step(motioncue_stepper* stepper, const motioncue_motion* motion, motioncue_cue* cue) noexcept nogil:
    cdef const Handle* handle
    cdef bint taken
    if stepper == NULL or motion == NULL or cue == NULL:
        return 0
    handle = <const Handle*>stepper
    taken = cueing_step(handle.cueing, <const Motion*>motion, <Cue*>cue)
    if taken and handle.car != NULL:
        handle.car[0] = (<const Motion*>motion)[0]
    return taken


cdef void reset(motioncue_stepper* stepper) noexcept nogil:
    if stepper != NULL:
        cueing_reset((<const Handle*>stepper).cueing)


cdef void output(motioncue_stepper* stepper, const motioncue_cue* cue, motioncue_actuation* actuation) noexcept nogil:
    cdef const Handle* handle = <const Handle*>stepper
    cdef uint64_t fpu
    if stepper == NULL or cue == NULL or actuation == NULL:
        return
    fpu = mc_flush_denormals()
    (<Actuation*>actuation)[0] = cueing_actuate(handle.cueing, 0, <const Cue*>cue, handle.parked)[0]
    mc_restore_fpu(fpu)


cdef void look(motioncue_stepper* stepper, const motioncue_motion* ahead) noexcept nogil:
    if stepper != NULL and ahead != NULL:
        cueing_look((<const Handle*>stepper).cueing, <const Motion*>ahead, False)


cdef void wheels(motioncue_stepper* stepper, const double* chassis) noexcept nogil:
    if stepper != NULL and chassis != NULL:
        memcpy((<Handle*>stepper).chassis, chassis, CHASSIS * sizeof(double))


cdef void park(motioncue_stepper* stepper, int parked) noexcept nogil:
    if stepper != NULL:
        (<Handle*>stepper).parked = parked != 0


cdef void destroy(motioncue_stepper* stepper) noexcept with gil:
    cdef Handle* handle = <Handle*>stepper
    if handle != NULL:
        Py_DECREF(<object>handle.stepper)
        free(handle)


cdef int retune(motioncue_stepper* stepper, const char* change, char* error, size_t size) noexcept with gil:
    try:
        if stepper == NULL:
            raise ValueError("stepper: found NULL, allowed is what create returned")
        if change == NULL:
            raise ValueError("change: found NULL, allowed is KEY=VALUE, or a profile's name or path")
        (<Stepper>(<Handle*>stepper).stepper).retune((<bytes>change).decode())
        return 1
    except BaseException as problem:
        explain(problem, error, size)
    return 0


ctypedef struct Fed:        # the target of a motioncue_engine*
    FeederState* feeder
    PyObject* engine        # owns the memory behind the other pointer


cdef Fed* started(const char* profile) except NULL:
    cdef Feeder feeder
    cdef Fed* fed
    if profile == NULL:
        raise ValueError("profile: found NULL, allowed is a name or a path")
    from motioncue.engine.engine import Engine     # loads sockets and threads, which a stepper does not need

    fed = <Fed*>malloc(sizeof(Fed))
    if fed == NULL:
        raise MemoryError
    try:
        engine = Engine((<bytes>profile).decode())
        engine._check_fed()
        engine._takes_signals = False   # handlers of Python never run while the host's main thread is in C
        engine.start()
        feeder = engine._feeder
    except BaseException:
        free(fed)
        raise
    fed[0] = Fed(&feeder.feeder, <PyObject*>engine)
    Py_INCREF(engine)
    return fed


cdef motioncue_engine* start(const char* profile, char* error, size_t size) noexcept with gil:
    try:
        return <motioncue_engine*>started(profile)
    except BaseException as problem:
        explain(problem, error, size)
    return NULL


cdef int feed(motioncue_engine* engine, const void* packet, size_t size) noexcept nogil:
    if engine == NULL:
        return 0
    if packet == NULL:      # refused for its size, and counted
        size = 0
    return feeder_take((<Fed*>engine).feeder, packet, <Py_ssize_t>min(size, <size_t>1 << 30))


cdef void stop(motioncue_engine* engine) noexcept with gil:
    cdef Fed* fed = <Fed*>engine
    if fed != NULL:
        try:
            (<object>fed.engine)._ending.end()      # no bytecode, which an interrupt could end
        finally:
            Py_DECREF(<object>fed.engine)
            free(fed)


cdef motioncue_api table = motioncue_api(
    MOTIONCUE_ABI, sizeof(motioncue_api),
    create, period_ns, step, reset, destroy, retune, output, park, start, feed, stop, look, wheels
)


_capi = PyCapsule_New(&table, "motioncue._capi", NULL)
