"""From the simulator's axes to the body frame: the stage that every source with world-frame vectors uses."""

from motioncue.core.records cimport Motion, Telemetry


ctypedef struct BodyFrame:
    double world[3][3]      # rows north, east, down in world coordinates
    double car[3][3]        # rows forward, right, down in car coordinates
    double head[3]          # forward, right, down of the motion reference point [m]
    double sense            # direction of the quaternion: 1 rotates car to world, -1 world to car
    double gravity          # g if the acceleration includes it, as an accelerometer reads (up at rest); else 0 [m/s^2]
    bint rates_in_car       # angular velocity and acceleration are given in car coordinates


cdef int set_car_axes(BodyFrame* frame, const double* forward, const double* up) noexcept nogil
cdef int to_body(const BodyFrame* frame, const Telemetry* telemetry, Motion* motion) noexcept nogil


cdef class BodyStage:
    cdef BodyFrame frame
