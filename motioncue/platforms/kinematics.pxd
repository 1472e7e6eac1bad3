"""Kinematics of motion platforms without Python: see kinematics.h."""


cdef extern from "motioncue/platforms/kinematics.h" nogil:
    enum:
        LEG "MC_LEG"
        CRANK "MC_CRANK"
        POST "MC_POST"
        AXIS "MC_AXIS"
        TABLE "MC_TABLE"
        TABLES "MC_MOST_TABLES"
        ACTUATORS "MC_MOST_ACTUATORS"    # actuators of one platform at most
    ctypedef struct Actuator "mc_Actuator":
        double platform[3]      # [m] joint on the platform, from the motion reference point, platform axes
        double base[3]          # [m] joint on the base, from the motion reference point at neutral, base axes
        double plane[2]         # crank: horizontal direction of its plane, unit vector
        double crank            # [m]
        double rod              # [m]
        double share[6]         # axis: weight of surge, sway, heave [m], roll, pitch, yaw [rad]
    ctypedef struct Table "mc_Table":
        int channel             # of the pose that it takes: 0 surge, 1 sway, 5 yaw
        double low              # [m, rad] ends of its travel
        double high
        double room             # [m, rad] of the frame, for what is fast and beside the table's ends
        double below            # [Hz] slower motion is the table's
        double pace             # share of a difference that each of two lags covers in a tick; 1: no split
    ctypedef struct Geometry "mc_Platform":
        int count               # actuators, without the tables that carry them
        int kinds[12]           # with the tables, which come last
        Actuator actuators[12]
        int tables
        Table table[3]
        double line[2]          # [m] forward, right: the vertical line about which a table turns
    bint inverse "mc_inverse"(const Geometry* p, const double* pose, double* positions, double* rows)
    bint slopes "mc_slopes"(const Geometry* p, const double* pose, double* positions, double* rows)
    const double STRAIGHT "MC_STRAIGHT"     # of a crank's straightness: beyond it, no wanted pose may be
    void straightness "mc_straightness"(const Geometry* p, const double* pose, double* found, double* rows)
    bint inverse_held "mc_inverse_held"(const Geometry* p, const double* pose, double* positions, double* rows)
    void on_tables "mc_on_tables"(const Geometry* p, const double* pose, const double* tables, double* own)
    void off_tables "mc_off_tables"(const Geometry* p, const double* tables, double* pose)
    int frame_forward "mc_frame_forward"(const Geometry* p, const double* positions, double* pose, int steps)
    int forward "mc_forward"(const Geometry* p, const double* positions, double* pose, int steps)


cdef class Kinematics:
    cdef Geometry geometry
