"""Linear filters in continuous time, as state equations and as polynomials, and the trapezoidal rule in matrix form.

A section is ``x' = A x + B u``, ``y = C x + D u`` with x = 0 when its input begins.  The trapezoidal rule with half a
tick ``k = tan(w dt/2) / w`` is the bilinear transform prewarped at w.  The other form is the exact solution for an
input that is held from one tick to the next.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import expm


def half_tick(omega: float, dt: float) -> float:
    """Return half a tick, prewarped at `omega` [rad/s]; `dt` and the result in seconds."""
    return float(np.tan(omega * dt / 2) / omega)


class Section(NamedTuple):
    """State equations of one section, and the frequency at which its discrete form is exact."""

    a: Any
    b: Any
    c: Any
    d: Any
    exact_at: float

    def response(self, omega: Any) -> Any:
        """Return the complex gains in continuous time, shape (outputs, n)."""
        a, b = np.atleast_2d(self.a), np.atleast_1d(self.b)
        states = np.stack([np.linalg.solve(1j * w * np.eye(len(a)) - a, b) for w in np.atleast_1d(omega)], axis=1)
        return np.atleast_2d(self.c) @ states + np.reshape(self.d, (-1, 1))


def high_pass_1(omega: float) -> Section:
    """Return s/(s + w); the state is the integral of the output."""
    return Section([[-omega]], [1.0], [[-omega]], [1.0], omega)


def high_pass_2(omega: float, zeta: float) -> Section:
    """Return s^2/(s^2 + 2 z w s + w^2), its first and its second integral; the states are those integrals."""
    stiffness, damping = omega**2, 2 * zeta * omega
    return Section(
        [[-damping, -stiffness], [1.0, 0.0]],
        [1.0, 0.0],
        [[-damping, -stiffness], [1.0, 0.0], [0.0, 1.0]],
        [1.0, 0.0, 0.0],
        omega,
    )


def high_pass_1_integrated(omega: float) -> Section:
    """Return s/(s + w), its first and its second integral."""
    return Section(
        [[-omega, 0.0], [1.0, 0.0]], [1.0, 0.0], [[-omega, 0.0], [1.0, 0.0], [0.0, 1.0]], [1.0, 0.0, 0.0], omega
    )


def low_pass_2(omega: float, zeta: float) -> Section:
    """Return w^2/(s^2 + 2 z w s + w^2); the states are the output and its derivative."""
    return Section([[0.0, 1.0], [-(omega**2), -2 * zeta * omega]], [0.0, omega**2], [[1.0, 0.0]], [0.0], omega)


class Stepper:
    """The trapezoidal rule, one tick at a time, starting from rest at the first tick."""

    def __init__(self, section: Section, dt: float) -> None:
        self.c, self.d = np.atleast_2d(section.c), np.asarray(section.d, float)
        a, self.b = np.atleast_2d(section.a), np.asarray(section.b, float)
        k = half_tick(section.exact_at, dt)
        unit = np.eye(len(a))
        self.implicit, self.explicit, self.k = np.linalg.inv(unit - k * a), unit + k * a, k
        self.x = np.zeros(len(a))
        self.u: float | None = None

    def step(self, u: float) -> Any:
        """Return the outputs at this tick."""
        if self.u is not None:
            self.x = self.implicit @ (self.explicit @ self.x + self.k * self.b * (self.u + u))
        self.u = u
        return self.c @ self.x + self.d * u


class Held:
    """The exact solution for an input that is held from one tick to the next, starting from rest at the first tick."""

    def __init__(self, section: Section, dt: float) -> None:
        self.c, self.d = np.atleast_2d(section.c), np.asarray(section.d, float)
        n = len(np.atleast_2d(section.a))
        both = np.zeros((n + 1, n + 1))  # of the state and the input, whose derivative is 0
        both[:n, :n], both[:n, n] = section.a, section.b
        moved = expm(both * dt)
        self.phi, self.gamma = moved[:n, :n], moved[:n, n]
        self.x = np.zeros(n)

    def step(self, u: float) -> Any:
        """Return the outputs at this tick."""
        outputs = self.c @ self.x + self.d * u
        self.x = self.phi @ self.x + self.gamma * u
        return outputs


FORMS = {"bilinear": Stepper, "hold": Held}


class HighPass:
    """High-pass of first to third order with its integrals, of sections in series."""

    def __init__(self, order: int, omega: float, zeta: float, omega_b: float, dt: float, form: Any = Stepper) -> None:
        self.outer = form(high_pass_1(omega_b), dt) if order == 3 else None
        self.inner = form(high_pass_1_integrated(omega) if order == 1 else high_pass_2(omega, zeta), dt)

    def step(self, u: float) -> Any:
        """Return the output, its first and its second integral."""
        return self.inner.step(self.outer.step(u)[0] if self.outer else u)


def polynomials(order: int, omega: float, zeta: float = 1.0, omega_b: float = 0.0) -> tuple[Any, Any]:
    """Return numerator and denominator of the high-pass in s, highest power first."""
    if order == 1:
        return np.array([1.0, 0.0]), np.array([1.0, omega])
    second = np.array([1.0, 0.0, 0.0]), np.array([1.0, 2 * zeta * omega, omega**2])
    if order == 2:
        return second
    return np.polymul(second[0], [1.0, 0.0]), np.polymul(second[1], [1.0, omega_b])


def gain(order: int, s: Any, omega: float, zeta: float = 1.0, omega_b: float = 0.0) -> Any:
    """Return the high-pass at `s`."""
    numerator, denominator = polynomials(order, omega, zeta, omega_b)
    return np.polyval(numerator, s) / np.polyval(denominator, s)
