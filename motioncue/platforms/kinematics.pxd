"""Kinematics of motion platforms without Python: see kinematics.h."""


cdef extern from "motioncue/platforms/kinematics.h" nogil:
    enum:
        LEG "MC_LEG"
        CRANK "MC_CRANK"
        POST "MC_POST"
        AXIS "MC_AXIS"
        ACTUATORS "MC_MOST_ACTUATORS"    # actuators of one platform at most
    ctypedef struct Actuator "mc_Actuator":
        double platform[3]      # [m] joint on the platform, from the motion reference point, platform axes
        double base[3]          # [m] joint on the base, from the motion reference point at neutral, base axes
        double plane[2]         # crank: horizontal direction of its plane, unit vector
        double crank            # [m]
        double rod              # [m]
        double share[6]         # axis: weight of surge, sway, heave [m], roll, pitch, yaw [rad]
    ctypedef struct Geometry "mc_Platform":
        int count
        int kinds[12]
        Actuator actuators[12]
    bint inverse "mc_inverse"(const Geometry* p, const double* pose, double* positions, double* rows)
    bint inverse_held "mc_inverse_held"(const Geometry* p, const double* pose, double* positions, double* rows)
    int forward "mc_forward"(const Geometry* p, const double* positions, double* pose, int steps)


cdef class Kinematics:
    cdef Geometry geometry
