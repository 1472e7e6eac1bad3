"""Published parameter sets of the cueing algorithms, as profile tables.

Frequencies are published in rad/s; the tables hold Hz, as profiles do.
"""

from math import tau
from typing import Any

__all__ = ["CLASSICAL"]


def _axis(gain: float, omega: float, break_omega: float | None = None, order: int | None = None) -> dict[str, Any]:
    axis: dict[str, Any] = {"gain": gain, "order": order or (2 if break_omega is None else 3), "cutoff_hz": omega / tau}
    if axis["order"] > 1:
        axis["damping"] = 1.0
    if break_omega is not None:
        axis["break_hz"] = break_omega / tau
    return axis


CLASSICAL: dict[str, dict[str, Any]] = {
    # SIMONA research simulator, TU Delft, read from its configuration.
    "simona": {
        "surge": _axis(0.6, 0.8),
        "sway": _axis(0.6, 1.0),
        "heave": _axis(0.5, 1.0, 0.2),
        "roll": _axis(0.6, 1.0),
        "pitch": _axis(0.6, 0.8),
        "yaw": _axis(0.6, 1.0),
        "tilt": {
            "surge_cutoff_hz": 2.0 / tau,
            "sway_cutoff_hz": 2.0 / tau,
            "damping": 1.0,
            "rate_limit_deg_s": 3.0,
        },
    },
    # The set of the open project hexi; it looks like that of Reid & Nahon (UTIAS reports 296, 307, 319).
    "utias": {
        "surge": _axis(0.5, 2.5, 0.25),
        "sway": _axis(0.5, 4.0, 0.4),
        "heave": _axis(0.5, 4.0, 0.4),
        "roll": _axis(0.5, 1.0, order=1),
        "pitch": _axis(0.5, 1.0, order=1),
        "yaw": _axis(0.5, 1.0),
        "tilt": {"surge_cutoff_hz": 5.0 / tau, "sway_cutoff_hz": 8.0 / tau, "damping": 1.0},
    },
}
