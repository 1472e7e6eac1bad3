"""Rotation functions shared by several kernels; angles are aerospace roll, pitch, yaw (z-y-x)."""

from libc.math cimport M_PI, atan2, cos, fabs, sin, sqrt


cdef extern from "motioncue/core/real.h" nogil:
    ctypedef struct Turn "mc_Turn":
        double angle        # [rad]
        double sine
        double cosine

    void turn "mc_turn"(Turn* t, double angle)
    void two_turns "mc_two_turns"(Turn* t, double first, double second)

    # Within 1 ulp, with the same bits on every machine.
    void sin_cos "mc_sin_cos"(double x, double* sine, double* cosine)      # x [rad]
    double arc_sine "mc_arc_sine"(double x)
    double angle_of "mc_angle_of"(double y, double x)      # atan2(y, x)


cdef inline void up_vector(const Turn* known, double roll, double pitch, double yaw, double* out) noexcept nogil:
    """Fill `out` with the body's up axis in world axes: east, north, up.

    `known` is NULL or holds three turns; a turn whose angle is the one given supplies its sine and cosine.
    """
    cdef Turn turns[3]
    if known == NULL or known[0].angle != roll or known[1].angle != pitch or known[2].angle != yaw:
        two_turns(turns, roll, pitch)
        turn(&turns[2], yaw)
        known = turns
    cdef double level = known[0].cosine * known[1].sine
    out[0] = known[0].sine * known[2].cosine - level * known[2].sine
    out[1] = -(level * known[2].cosine + known[0].sine * known[2].sine)
    out[2] = known[0].cosine * known[1].cosine



cdef inline void from_angles(double roll, double pitch, double yaw, double* q) noexcept nogil:
    """Fill `q` with the quaternion w, x, y, z of an attitude: body to world (north, east, down)."""
    cdef double sr = sin(0.5 * roll)
    cdef double cr = cos(0.5 * roll)
    cdef double sp = sin(0.5 * pitch)
    cdef double cp = cos(0.5 * pitch)
    cdef double sy = sin(0.5 * yaw)
    cdef double cy = cos(0.5 * yaw)
    q[0] = cr * cp * cy + sr * sp * sy
    q[1] = sr * cp * cy - cr * sp * sy
    q[2] = cr * sp * cy + sr * cp * sy
    q[3] = cr * cp * sy - sr * sp * cy


cdef inline void from_ordered_angles(const double* angles, const int* order, double* q) noexcept nogil:
    """Fill `q` with the quaternion of turns by roll, pitch, yaw about the body's axes 0, 1, 2, made in `order`."""
    cdef double part[4]
    cdef double whole[4]
    cdef int i, j
    q[0], q[1], q[2], q[3] = 1.0, 0.0, 0.0, 0.0
    for i in range(3):
        for j in range(4):
            part[j] = 0.0
        part[0] = cos(0.5 * angles[order[i]])
        part[1 + order[i]] = sin(0.5 * angles[order[i]])
        multiply(q, part, whole)
        for j in range(4):
            q[j] = whole[j]


cdef inline void from_axes(const double* forward, const double* second, bint right, double* q) noexcept nogil:
    """Fill `q` with the quaternion of a body whose forward axis, and right or up axis, are given in world axes.

    `second` is the right axis if `right`, else the up axis.  `q` is zero if one is not a unit vector or they are oblique.
    """
    cdef double m[3][3]         # columns forward, right, down
    cdef double n1 = sqrt(forward[0] * forward[0] + forward[1] * forward[1] + forward[2] * forward[2])
    cdef double n2 = sqrt(second[0] * second[0] + second[1] * second[1] + second[2] * second[2])
    cdef double across
    cdef double sign = 1.0 if right else -1.0
    cdef int known = 1 if right else 2
    cdef int third = 3 - known
    cdef double n = 0.0
    cdef int i, j, k
    for i in range(4):
        q[i] = 0.0
    if not (0.9 < n1 < 1.1 and 0.9 < n2 < 1.1):     # NaN fails this too
        return
    across = (forward[0] * second[0] + forward[1] * second[1] + forward[2] * second[2]) / (n1 * n2)
    if not fabs(across) < 0.1:
        return
    for i in range(3):
        m[i][0] = forward[i] / n1
        m[i][known] = second[i] / n2 - across * m[i][0]
        n += m[i][known] * m[i][known]
    for i in range(3):
        m[i][known] *= sign / sqrt(n)
    for i in range(3):      # down = forward x right, right = down x forward
        j, k = (i + 1) % 3, (i + 2) % 3
        m[i][third] = sign * (m[j][0] * m[k][known] - m[k][0] * m[j][known])
    from_matrix(m, q)


cdef inline void from_matrix(const double (*m)[3], double* q) noexcept nogil:
    """Fill `q` with the quaternion of a rotation matrix, by its largest component (Shepperd 1978)."""
    cdef double trace = m[0][0] + m[1][1] + m[2][2]
    cdef double s
    cdef int i = 0
    cdef int j, k
    if trace >= m[0][0] and trace >= m[1][1] and trace >= m[2][2]:
        s = 2.0 * sqrt(1.0 + trace)
        q[0] = 0.25 * s
        q[1] = (m[2][1] - m[1][2]) / s
        q[2] = (m[0][2] - m[2][0]) / s
        q[3] = (m[1][0] - m[0][1]) / s
        return
    if m[1][1] > m[0][0]:
        i = 1
    if m[2][2] > m[i][i]:
        i = 2
    j, k = (i + 1) % 3, (i + 2) % 3
    s = 2.0 * sqrt(1.0 + m[i][i] - m[j][j] - m[k][k])
    q[0] = (m[k][j] - m[j][k]) / s
    q[1 + i] = 0.25 * s
    q[1 + j] = (m[j][i] + m[i][j]) / s
    q[1 + k] = (m[k][i] + m[i][k]) / s


cdef inline void to_angles(const double* q, double* angles) noexcept nogil:
    """Fill `angles` with roll, pitch, yaw; roll is 0 if the nose points straight up or down, where roll and yaw
    coincide."""
    cdef double up = 2.0 * (q[0] * q[2] - q[1] * q[3])                  # up component of the forward axis
    cdef double right = 2.0 * (q[2] * q[3] + q[0] * q[1])  # right component of the world's down axis in body axes
    cdef double under = 1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2])
    cdef double level = sqrt(right * right + under * under)
    angles[1] = atan2(up, level)
    if level > 1e-9:
        angles[0] = atan2(right, under)
        angles[2] = atan2(2.0 * (q[1] * q[2] + q[0] * q[3]), 1.0 - 2.0 * (q[2] * q[2] + q[3] * q[3]))
    else:
        angles[0] = 0.0
        angles[2] = atan2(2.0 * (q[0] * q[3] - q[1] * q[2]), 1.0 - 2.0 * (q[1] * q[1] + q[3] * q[3]))


cdef inline void multiply(const double* a, const double* b, double* out) noexcept nogil:
    """Fill `out` (not `a` or `b`) with the product a b: the rotation `b` in the axes of a body turned by `a`."""
    out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
    out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]


cdef inline void turn_about(const double* q, const double* vector, double* out) noexcept nogil:
    """Fill `out` (not `q`) with `q` turned about the body axis `vector` by its length [rad]."""
    cdef double angle = sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])
    cdef double share = sin(0.5 * angle) / angle if angle > 1e-8 else 0.5
    cdef double p[4]
    p[0] = cos(0.5 * angle)
    p[1] = share * vector[0]
    p[2] = share * vector[1]
    p[3] = share * vector[2]
    multiply(q, p, out)


cdef inline double between(const double* a, const double* b, double* vector) noexcept nogil:
    """Fill `vector` with the shortest turn from `a` to `b`, in body axes; return its angle [rad]."""
    cdef double back[4]
    cdef double p[4]
    cdef double sine, angle, share
    cdef int i
    back[0], back[1], back[2], back[3] = a[0], -a[1], -a[2], -a[3]
    multiply(back, b, p)
    sine = sqrt(p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
    angle = 2.0 * atan2(sine, fabs(p[0]))
    share = angle / sine if sine > 1e-12 else 2.0
    if p[0] < 0.0:
        share = -share
    for i in range(3):
        vector[i] = share * p[1 + i]
    return angle


cdef inline void between_near(const double* a, const double* b, const double* last, double* vector) noexcept nogil:
    """Fill `vector` with the turn from `a` to `b`, the short or the long way, whichever is nearer to `last`."""
    cdef double angle = between(a, b, vector)
    cdef double share = 1.0 - 2.0 * M_PI / angle if angle > 1e-9 else 1.0
    cdef double direct = 0.0
    cdef double round_about = 0.0
    cdef int i
    for i in range(3):
        direct += (vector[i] - last[i]) * (vector[i] - last[i])
        round_about += (share * vector[i] - last[i]) * (share * vector[i] - last[i])
    if round_about < direct:
        for i in range(3):
            vector[i] *= share
