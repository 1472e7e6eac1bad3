"""Sine, cosine, arc sine and the angle of a vector: within 1 ulp, with the same bits on every machine."""


cdef extern from "motioncue/core/scalar.h" nogil:
    void sin_cos "mc_sin_cos"(double x, double* sine, double* cosine)      # x [rad]
    double arc_sine "mc_arc_sine"(double x)
    double angle_of "mc_angle_of"(double y, double x)      # atan2(y, x)
