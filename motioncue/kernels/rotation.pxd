"""Small pieces of rotation that several kernels share; angles are aerospace roll, pitch, yaw (z-y-x)."""

from libc.math cimport cos, sin


cdef inline void up_vector(double roll, double pitch, double yaw, double* out) noexcept nogil:
    """Fill `out` with the body's up axis in world axes: east, north, up."""
    cdef double sr = sin(roll)
    cdef double cr = cos(roll)
    cdef double sp = sin(pitch)
    cdef double sy = sin(yaw)
    cdef double cy = cos(yaw)
    out[0] = sr * cy - cr * sp * sy
    out[1] = -(cr * sp * cy + sr * sy)
    out[2] = cr * cos(pitch)
