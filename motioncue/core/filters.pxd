"""First- and second-order sections in the time domain, stepped by the trapezoidal rule.

Each section keeps integrator states in physical units.  So one step gives every output (acceleration, velocity,
displacement), changing coefficients keep the state, and an unused order is a zero coefficient.  The trapezoidal rule
with its step prewarped at the break frequency is the prewarped bilinear transform (topology preserving form:
V. Zavalishin, The Art of VA Filter Design, ch. 3 and 4).

In the other form, the input is held from one tick to the next (zero-order hold, or step-invariant), and the states, which
then stand at the tick, are moved by the exact solution.  First-order sections have the same step with other numbers: g is
half of 1 - exp(-omega dt), d is 1.  For second-order ones b is c1, d is 1, and the states move by `integrate_held_2`.
"""


from libc.math cimport sqrt


cdef extern from "motioncue/core/real.h" nogil:
    ctypedef struct FirstOrder "mc_FirstOrder":
        double g        # tan(omega dt / 2), dimensionless; 0 passes everything
        double d        # 1 / (1 + g)

    ctypedef struct SecondOrder "mc_SecondOrder":
        double c0       # stiffness over mass, omega_n^2 [rad^2/s^2]; 0 for a first-order section
        double b        # c1 + c0 k [rad/s], c1 = 2 zeta omega_n (damping over mass); first order: omega
        double k        # half a tick, prewarped [s]; held input: velocity that a unit of acceleration makes in a tick
        double d        # 1 / (1 + b k)
        double m        # held input: displacement that a unit of acceleration makes in a tick [s^2]; else 0

    ctypedef struct SecondOrderState "mc_SecondOrderState":
        double v        # velocity integrator
        double x        # displacement integrator

    ctypedef struct Integrals "mc_Integrals":
        double v        # first integral of the high-passed input
        double x        # second integral of the high-passed input

    double high_pass_1 "mc_high_pass_1"(const FirstOrder* c, double* s, double u)
    void prime_1 "mc_prime_1"(const FirstOrder* c, double* s, double u)
    double high_pass_2 "mc_high_pass_2"(const SecondOrder* c, SecondOrderState* s, double u, Integrals* out)
    double high_passed_2 "mc_high_passed_2"(const SecondOrder* c, const SecondOrderState* s, double u)
    void integrate_held_2 "mc_integrate_held_2"(const SecondOrder* c, SecondOrderState* s, double a, Integrals* out)
    void prime_2 "mc_prime_2"(const SecondOrder* c, SecondOrderState* s, double u)


cdef inline double no_harder(double before, double now) noexcept nogil:
    """Return the share by which a state has to shrink, so that it is pulled back no harder than before."""
    return before / now if now > before else 1.0


cdef inline void section_continue(const SecondOrder* c, const SecondOrder* before, SecondOrderState* s) noexcept nogil:
    """Shrink a state that is used to the section `before`, so that neither spring nor damper pulls harder than there.

    The displacement shrinks with the stiffness and the velocity at least with its root, so the largest acceleration of
    a free swing does not grow, whatever its damping.
    """
    cdef double stiffness = no_harder(before.c0, c.c0)
    s.x *= stiffness
    s.v *= min(no_harder(before.b, c.b), sqrt(stiffness))


cdef FirstOrder first_order(double omega, double dt, bint hold=?) noexcept nogil
cdef SecondOrder second_order(double omega, double zeta, double dt, bint hold=?) noexcept nogil
cdef SecondOrder first_order_as_second(double omega, double dt, bint hold=?) noexcept nogil
