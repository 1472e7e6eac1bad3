"""Plots of motion, cue and response; they need matplotlib (the extra ``notebooks``)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from motioncue.core.channels import CUE
from motioncue.scoring.senses import felt_in_car

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_response", "plot_traces"]

FORCES = ("surge", "sway", "heave")
UNITS = {channel.name: channel.unit for channel in CUE}
SHOWN_IN = {"rad": ("deg", 180.0 / np.pi), "rad/s": ("deg/s", 180.0 / np.pi)}  # plots show degrees


def plot_traces(
    time: npt.NDArray[np.float64],
    motion: Any,
    cue: Any,
    channels: Sequence[str] = ("surge", "sway", "heave", "roll", "pitch", "yaw"),
    *,
    title: str = "",
    felt: bool = False,
) -> "Figure":
    """Plot what the car does and what the platform is asked to do over each other, one row per channel.

    Parameters
    ----------
    time : ndarray of float64, shape (n,)
        Time of the ticks [s].
    motion : ndarray of MOTION_DTYPE, shape (n,)
        What the vehicle does.
    cue : ndarray of CUE_DTYPE, shape (n,)
        What the platform is asked to do.
    channels : sequence of str
        Channel names; one that only a cue has is drawn alone.
    title : str
        Title above all rows.
    felt : bool
        Draw for surge, sway and heave the car's specific force less that of standing level, in place of its
        acceleration: what a cue that leans presents.

    Returns
    -------
    matplotlib.figure.Figure
        Angles are in degrees.
    """
    import matplotlib.pyplot as plt

    figure, rows = plt.subplots(
        len(channels), 1, figsize=(9.0, 1.5 * len(channels) + 0.9), sharex=True, squeeze=False, layout="constrained"
    )
    under: dict[str, Any] = {"color": "C0", "linewidth": 2.2, "alpha": 0.5}  # so that a cue over it does not hide it
    car = dict(zip(FORCES, felt_in_car(motion).T, strict=False)) if felt else {}
    for row, name in zip(rows[:, 0], channels, strict=True):
        unit, factor = SHOWN_IN.get(UNITS[name], (UNITS[name], 1.0))
        row.grid(True, alpha=0.3)
        row.axhline(0.0, color="k", linewidth=0.5)
        if name in car:
            row.plot(time, car[name], label="felt in the car", **under)
        elif name in motion.dtype.names:
            row.plot(time, factor * motion[name], label="car", **under)
        row.plot(time, factor * cue[name], color="C1", linewidth=0.9, label="cue")
        row.set_ylabel(f"{name.replace('_', chr(10))}\n[{unit}]", fontsize="small")
        row.legend(loc="upper right", fontsize="small", ncols=2)
    rows[-1, 0].set_xlabel("time [s]")
    if title:
        figure.suptitle(title)
    return figure


def plot_response(
    omega: npt.NDArray[np.float64],
    measured: Mapping[str, npt.NDArray[np.complex128]],
    *,
    theory_omega: npt.NDArray[np.float64] | None = None,
    theory: Mapping[str, npt.NDArray[np.complex128]] | None = None,
    title: str = "",
) -> "Figure":
    """Plot gain and phase over frequency: measurements as points, theory as lines.

    Parameters
    ----------
    omega : ndarray of float64, shape (n,)
        Frequencies of the measurements [rad/s].
    measured : mapping of str to ndarray of complex128, shape (n,)
        Complex gains by the name of their curve.
    theory_omega : ndarray of float64, shape (m,), optional
        Frequencies of `theory` [rad/s]; `omega` if not given.
    theory : mapping of str to ndarray of complex128, shape (m,), optional
        Theoretical gains; a curve of the same name has the same color.
    title : str
        Title above both plots.

    Returns
    -------
    matplotlib.figure.Figure
        Gain above, phase in degrees below, unwrapped from the highest frequency down.
    """
    import matplotlib.pyplot as plt

    figure, (gain, phase) = plt.subplots(2, 1, figsize=(7.5, 5.0), sharex=True, layout="constrained")
    colors = {name: f"C{index}" for index, name in enumerate(dict.fromkeys([*measured, *(theory or {})]))}
    for name, values in (theory or {}).items():
        at = omega if theory_omega is None else theory_omega
        label = None if name in measured else name
        gain.plot(at, np.abs(values), color=colors[name], linewidth=1.2, label=label)
        phase.plot(at, _phase_deg(values), color=colors[name], linewidth=1.2)
    for name, values in measured.items():
        gain.plot(omega, np.abs(values), "o", color=colors[name], markersize=4, label=name)
        phase.plot(omega, _phase_deg(values), "o", color=colors[name], markersize=4)
    gain.set_xscale("log")
    gain.set_ylabel("gain")
    phase.set_ylabel("phase [deg]")
    phase.set_xlabel("frequency [rad/s]")
    for side in (gain, phase):
        side.grid(True, which="both", alpha=0.3)
    gain.legend(fontsize="small")
    if title:
        figure.suptitle(title)
    return figure


def _phase_deg(values: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
    """Return the phase [deg], unwrapped from the highest frequency, where a high-pass filter's phase is small."""
    return np.degrees(np.unwrap(np.angle(values)[::-1])[::-1])
