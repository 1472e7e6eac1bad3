"""First- and second-order sections in the time domain, stepped by the trapezoidal rule.

Each section keeps integrator states in physical units, so every output (acceleration, velocity, displacement) comes
from one step, moving coefficients keep the state, and an order that is not wanted is a zero coefficient.  The
trapezoidal rule with its step prewarped at the break frequency is the prewarped bilinear transform (topology
preserving form: V. Zavalishin, The Art of VA Filter Design, ch. 3 and 4).
"""


ctypedef struct FirstOrder:
    double g        # tan(omega dt / 2), dimensionless; 0 passes everything
    double d        # 1 / (1 + g)


ctypedef struct SecondOrder:
    double c0       # stiffness over mass, omega_n^2 [rad^2/s^2]; 0 for a first-order section
    double b        # c1 + c0 k [rad/s]; c1: damping over mass, 2 zeta omega_n, or a first-order section's frequency
    double k        # half a tick, prewarped [s]
    double d        # 1 / (1 + b k)


ctypedef struct SecondOrderState:
    double v        # velocity integrator
    double x        # displacement integrator


ctypedef struct Integrals:
    double v        # first integral of the high-passed input
    double x        # second integral of the high-passed input


cdef inline double high_pass_1(const FirstOrder* c, double* s, double u) noexcept nogil:
    """Return s / (s + omega) of `u`."""
    cdef double y = (u - s[0]) * c.d
    s[0] += 2.0 * c.g * y
    return y


cdef inline void prime_1(const FirstOrder* c, double* s, double u) noexcept nogil:
    """Set the state so that the next step with `u` starts from rest at that very tick."""
    s[0] = -c.g * u


cdef inline double high_pass_2(const SecondOrder* c, SecondOrderState* s, double u, Integrals* out) noexcept nogil:
    """Return s^2 / (s^2 + c1 s + c0) of `u`, and its first and second integral."""
    cdef double a = (u - c.b * s.v - c.c0 * s.x) * c.d
    out.v = s.v + c.k * a
    out.x = s.x + c.k * out.v
    s.v = out.v + c.k * a
    s.x = out.x + c.k * out.v
    return a


cdef inline void prime_2(const SecondOrder* c, SecondOrderState* s, double u) noexcept nogil:
    """Set the state so that the next step with `u` starts from rest at that very tick."""
    s.v = -c.k * u
    s.x = 0.0


cdef FirstOrder first_order(double omega, double dt)
cdef SecondOrder second_order(double omega, double zeta, double dt)
cdef SecondOrder first_order_as_second(double omega, double dt)
