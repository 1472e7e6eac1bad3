"""The same step written in pure Python, and composed from SciPy.

Both give the kernels' numbers (the benchmarks assert it), the SciPy version with the omissions named in
`ScipyPipeline`.
"""

import math
import struct
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used: counting instructions uses none

from motioncue.core.channels import CUE_DTYPE, GRAVITY, MOTION_DTYPE
from motioncue.cueing.classical.settings import Axis, Classical
from motioncue.output.dk import MOTION

PACK = struct.Struct("<12f")
TRANSLATION = ("surge", "sway", "heave")
ROTATION = ("roll", "pitch", "yaw")


def dot(a: Any, b: Any) -> Any:
    """Return the scalar product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return the vector product of two vectors."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def within(x: float, limit: float) -> float:
    """Return `x` saturated at plus or minus `limit`."""
    return limit if x > limit else -limit if x < -limit else x


class HighPass:
    """A high-pass filter of first to third order with its first two integrals, one float at a time."""

    def __init__(self, axis: Axis, dt: float) -> None:
        omega = math.tau * axis.cutoff_hz
        self.gain = axis.gain
        self.g = math.tan(0.5 * math.tau * (axis.break_hz or 0.0) * dt) if axis.order == 3 else 0.0
        self.c0 = 0.0 if axis.order == 1 else omega * omega
        self.c1 = omega if axis.order == 1 else 2.0 * axis.damping * omega
        self.k = math.tan(0.5 * omega * dt) / omega
        self.d1 = 1.0 / (1.0 + self.g)
        self.d2 = 1.0 / (1.0 + self.c1 * self.k + self.c0 * self.k**2)
        self.s1 = self.sv = self.sx = self.v = self.x = 0.0

    def prime(self, u: float) -> None:
        """Start from rest at `u`."""
        self.s1, self.sv = -self.g * u, -self.k * u

    def step(self, u: float) -> float:
        """Return the filtered value."""
        first = (u - self.s1) * self.d1
        self.s1 += 2.0 * self.g * first
        a = (first - (self.c1 + self.c0 * self.k) * self.sv - self.c0 * self.sx) * self.d2
        self.v = self.sv + self.k * a
        self.x = self.sx + self.k * self.v
        self.sv = self.v + self.k * a
        self.sx = self.x + self.k * self.v
        return a


class PythonStep:
    """The whole step in pure Python, one sample at a time."""

    def __init__(self, cueing: Classical, rate_hz: float, world: Any, car: Any, head: Any = (0.0, 0.0, 0.0)) -> None:
        dt = 1.0 / rate_hz
        tilt = cueing.tilt
        self.world, self.car, self.head, self.rate_hz = world, car, head, rate_hz
        self.translation = [HighPass(getattr(cueing, name), dt) for name in TRANSLATION]
        self.rotation = [HighPass(getattr(cueing, name), dt) for name in ROTATION]
        self.lean = [
            HighPass(Axis(cutoff_hz=hz, damping=tilt.damping), dt) for hz in (tilt.surge_cutoff_hz, tilt.sway_cutoff_hz)
        ]
        limit = tilt.rate_limit_deg_s
        self.lean_step = math.inf if limit is None else math.radians(limit) * dt
        self.angle = [0.0, 0.0]
        self.platform = (0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
        self.primed = False

    def body(self, q: Any, v: Any, a: Any, omega: Any, alpha: Any) -> tuple[Any, ...]:
        """Return acceleration, attitude, rates (x forward, y right, z down) and speed."""
        w, x, y, z = q
        n = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
        w, x, y, z = w * n, x * n, y * n, z * n
        r = (
            (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
            (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
            (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
        )
        axes = [[dot(row, axis) for row in r] for axis in self.car]
        forward, right, down = axes
        north, east, nadir = self.world
        roll = math.atan2(dot(right, nadir), dot(down, nadir))
        pitch = math.atan2(-dot(forward, nadir), math.hypot(dot(right, nadir), dot(down, nadir)))
        yaw = math.atan2(dot(forward, east), dot(forward, north))
        a, omega, alpha = ([dot(axis, u) for axis in axes] for u in (a, omega, alpha))
        arm, whirl = cross(alpha, self.head), cross(omega, self.head)
        whirl = cross(omega, whirl)
        return [a[i] + arm[i] + whirl[i] for i in range(3)], (roll, pitch, yaw), omega, math.sqrt(dot(v, v))

    def tilt(self, i: int, g_sin: float) -> float:
        """Return the change of a tilt angle, low-passed and rate-limited."""
        low = self.lean[i]
        low.step(g_sin)
        change = within(math.asin(within(low.c0 * low.x, 1.0)) - self.angle[i], self.lean_step)
        self.angle[i] += change
        return change

    def washout(self, a: Any, attitude: Any, rates: Any) -> tuple[Any, ...]:
        """Return specific force, attitude, rates and displacement of the platform."""
        g = GRAVITY
        sr, cr, sp, cp = (f(angle) for angle in attitude[:2] for f in (math.sin, math.cos))
        surge, sway, heave = self.translation
        spr, cpr, spp, cpp, _, _ = self.platform
        g_sin = surge.gain * (a[0] + g * sp) / g, sway.gain * (a[1] - g * sr * cp) / g
        x, y, z = surge.gain * a[0], sway.gain * a[1], heave.gain * a[2]
        c = y * sr + z * cr
        level = (x * cp + c * sp, y * cr - z * sr, c * cp - x * sp)
        p, q, r = (axis.gain * rate for axis, rate in zip(self.rotation, rates, strict=True))
        c = (q * spr + r * cpr) / max(cpp, 0.2)
        euler = (p + c * spp, q * cpr - r * spr, c)
        if not self.primed:
            for filters, inputs in ((self.translation, level), (self.rotation, euler), (self.lean, g_sin)):
                for each, u in zip(filters, inputs, strict=True):
                    each.prime(u)
            self.primed = True
        ax, ay, az = (each.step(u) for each, u in zip(self.translation, level, strict=True))
        dp, dq, dr = (each.step(u) for each, u in zip(self.rotation, euler, strict=True))
        dq += self.tilt(0, g_sin[0]) * self.rate_hz
        dp -= self.tilt(1, g_sin[1]) * self.rate_hz
        roll = self.rotation[0].v - self.angle[1]
        pitch = self.rotation[1].v + self.angle[0]
        yaw = self.rotation[2].v
        self.platform = sr, cr, sp, cp, sy, cy = tuple(
            f(angle) for angle in (roll, pitch, yaw) for f in (math.sin, math.cos)
        )
        az -= g
        ax, ay = cy * ax + sy * ay, cy * ay - sy * ax
        c = sp * ax + cp * az
        force = (cp * ax - sp * az, cr * ay + sr * c, -(cr * c - sr * ay + g))
        rates = (dp - dr * sp, dq * cr + dr * sr * cp, dr * cr * cp - dq * sr)
        return force, (roll, pitch, yaw), rates, (surge.x, sway.x, -heave.x)

    def step(self, packet: bytearray, *telemetry: Any) -> tuple[Any, ...]:
        """Process one sample up to `packet`; return the result of `washout`."""
        a, attitude, rates, _ = self.body(*telemetry)
        cue = force, (roll, pitch, yaw), rates, _ = self.washout(a, attitude, rates)
        sr, cr, sp, cp, sy, cy = self.platform
        up = (sr * cy - cr * sp * sy, -(cr * sp * cy + sr * sy), cr * cp)
        PACK.pack_into(packet, 28, force[1], force[0], force[2], *up, roll, pitch, yaw, *rates)
        return cue


def sections(axis: Axis, dt: float) -> Any:
    """Return a high-pass axis as second-order sections: each section bilinear, prewarped at its own frequency."""
    omega = math.tau * axis.cutoff_hz
    poles = [-omega] if axis.order == 1 else np.roots([1.0, 2.0 * axis.damping * omega, omega**2])
    all_sections = [bilinear([0.0] * len(poles), poles, axis.gain, omega, dt)]
    if axis.order == 3:
        omega_b = math.tau * (axis.break_hz or 0.0)
        all_sections.append(bilinear([0.0], [-omega_b], 1.0, omega_b, dt))
    return np.vstack(all_sections)


def bilinear(zeros: Any, poles: Any, gain: float, omega: float, dt: float) -> Any:
    """Return one section, exact at `omega`."""
    warped = omega / (2.0 * math.tan(0.5 * omega * dt))
    return scipy.signal.zpk2sos(*scipy.signal.bilinear_zpk(zeros, poles, gain, warped))


class ScipyPipeline:
    """Rotation, sosfilt and NumPy over whole arrays: the batch that one would write without this package.

    It omits what is not a linear filter over a whole array: the limit on the tilt rate, the limits on the inputs, and
    the platform's own attitude in the Euler rates (taken as zero).  It also omits displacements.  Without those, and
    with a first sample of zero, it gives the kernels' numbers.
    """

    def __init__(self, cueing: Classical, rate_hz: float, world: Any, car: Any) -> None:
        dt = 1.0 / rate_hz
        self.rate_hz = rate_hz
        self.world, self.car = (
            scipy.spatial.transform.Rotation.from_matrix(world),
            scipy.spatial.transform.Rotation.from_matrix(car),
        )
        self.gains = np.array([getattr(cueing, name).gain for name in TRANSLATION])
        self.translation = [sections(getattr(cueing, name), dt) for name in TRANSLATION]
        self.rotation = [sections(getattr(cueing, name), dt) for name in ROTATION]
        # The angle is the trapezoidal sum of the filtered rate, with the section's own warped half-tick.
        omegas = [math.tau * getattr(cueing, name).cutoff_hz for name in ROTATION]
        self.half_ticks = [math.tan(0.5 * omega * dt) / omega for omega in omegas]
        tilt = cueing.tilt
        self.tilt = []
        for hz in (tilt.surge_cutoff_hz, tilt.sway_cutoff_hz):
            omega = math.tau * hz
            poles = np.roots([1.0, 2.0 * tilt.damping * omega, omega**2])
            self.tilt.append(bilinear([], poles, omega**2, omega, dt))

    def body(self, telemetry: Any, motion: Any) -> None:
        """Fill `motion` (surge to speed) from `telemetry`."""
        turn = scipy.spatial.transform.Rotation.from_quat(telemetry["orientation"], scalar_first=True)
        to_body = self.car * turn.inv()
        yaw, pitch, roll = (self.world * to_body.inv()).as_euler("ZYX").T
        a = to_body.apply(telemetry["acceleration"])
        rates = to_body.apply(telemetry["angular_velocity"])
        motion["surge"], motion["sway"], motion["heave"] = a[:, 0], a[:, 1], -a[:, 2]
        motion["roll"], motion["pitch"], motion["yaw"] = roll, pitch, yaw
        motion["roll_rate"], motion["pitch_rate"], motion["yaw_rate"] = rates.T
        motion["speed"] = np.linalg.norm(telemetry["velocity"], axis=1)

    def washout(self, motion: Any, cue: Any) -> None:
        """Fill `cue` (without displacements) from `motion`."""
        g = GRAVITY
        sr, cr = np.sin(motion["roll"]), np.cos(motion["roll"])
        sp, cp = np.sin(motion["pitch"]), np.cos(motion["pitch"])
        k_surge, k_sway, _ = self.gains
        nose, left = (
            np.arcsin(np.clip(scipy.signal.sosfilt(low, felt), -1.0, 1.0))
            for low, felt in (
                (self.tilt[0], k_surge * (motion["surge"] / g + sp)),
                (self.tilt[1], k_sway * (motion["sway"] / g - sr * cp)),
            )
        )
        # The gain of an axis is in its sections; level axes mix the axes, so each input carries its own gain here.
        x, y, z = motion["surge"] * self.gains[0], motion["sway"] * self.gains[1], -motion["heave"] * self.gains[2]
        c = y * sr + z * cr
        level = (x * cp + c * sp, y * cr - z * sr, c * cp - x * sp)
        a = np.column_stack(
            [scipy.signal.sosfilt(sos, u / k) for sos, u, k in zip(self.translation, level, self.gains, strict=True)]
        )
        rates = [
            scipy.signal.sosfilt(sos, motion[f"{name}_rate"]) for sos, name in zip(self.rotation, ROTATION, strict=True)
        ]
        roll, pitch, yaw = (k * (2.0 * np.cumsum(rate) - rate) for k, rate in zip(self.half_ticks, rates, strict=True))
        roll, pitch = roll - left, pitch + nose
        p = rates[0] - np.diff(left, prepend=0.0) * self.rate_hz
        q = rates[1] + np.diff(nose, prepend=0.0) * self.rate_hz
        r = rates[2]
        a[:, 2] -= g
        force = scipy.spatial.transform.Rotation.from_euler("ZYX", np.column_stack([yaw, pitch, roll])).apply(
            a, inverse=True
        )
        sr, cr, sp, cp = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)
        cue["surge"], cue["sway"], cue["heave"] = force[:, 0], force[:, 1], -(force[:, 2] + g)
        cue["roll"], cue["pitch"], cue["yaw"] = roll, pitch, yaw
        cue["roll_rate"] = p - r * sp
        cue["pitch_rate"] = q * cr + r * sr * cp
        cue["yaw_rate"] = r * cr * cp - q * sr
        cue["speed"] = motion["speed"]

    def pack(self, cue: Any, packets: Any) -> None:
        """Fill `packets`, of the dtype of DK's motion packet, from `cue`."""
        for name in (*TRANSLATION, *ROTATION, "roll_rate", "pitch_rate", "yaw_rate"):
            packets[name] = cue[name]
        sr, cr, sp = np.sin(cue["roll"]), np.cos(cue["roll"]), np.sin(cue["pitch"])
        sy, cy = np.sin(cue["yaw"]), np.cos(cue["yaw"])
        packets["up_x"] = sr * cy - cr * sp * sy
        packets["up_y"] = -(cr * sp * cy + sr * sy)
        packets["up_z"] = cr * np.cos(cue["pitch"])

    def run(self, telemetry: Any, packets: Any) -> None:
        """Take telemetry to packets."""
        motion, cue = np.empty(len(telemetry), MOTION_DTYPE), np.empty(len(telemetry), CUE_DTYPE)
        self.body(telemetry, motion)
        self.washout(motion, cue)
        self.pack(cue, packets)


def empty_packets(n: int) -> Any:
    """Return `n` motion packets with their constant bytes, ndarray of the packet's dtype."""
    return np.frombuffer(MOTION.encode() * n, MOTION.dtype).copy()
