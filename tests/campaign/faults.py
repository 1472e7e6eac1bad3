"""The faults as a table: each row changes the packets of a whole drive."""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from campaign.wires import attitude_of
from motioncue.core.channels import GRAVITY

__all__ = ["FAULTS", "Fault"]

VECTORS = ("position", "velocity", "acceleration", "angular_velocity")
ANGLES = ("roll", "pitch", "yaw")


@dataclasses.dataclass(frozen=True)
class Fault:
    """One deviation from the source's document."""

    name: str
    touches: frozenset  # the quantities that are changed
    change: Callable  # (wire, said, states) to the changed packets; None if they cannot express it
    arrivals: bool = True  # whether arrival times are known
    small: bool = False  # so small that a simulator may be so


FAULTS = {}


def _add(name, touches, change, **more):
    FAULTS[name] = Fault(name, frozenset(touches.split()), change, **more)


def _vector(quantity, change):
    """Return a fault that changes a quantity's components, given in the axes of the packets."""

    def apply(wire, said, states):
        if quantity not in wire.vectors:
            return None
        out = said.copy()
        wire.write(out.rows, quantity, change(wire.read(said.rows, quantity)))
        return out

    return apply


def _diagonal(*factors):
    return lambda v: v * np.array(factors, float)


def _order(*order):
    return lambda v: v[:, list(order)]


_add("nothing", "", lambda wire, said, states: said.copy())

for _quantity in VECTORS:
    _add(f"{_quantity} negated", _quantity, _vector(_quantity, _diagonal(-1, -1, -1)))
    for _axis in range(3):
        _sign = [1, 1, 1]
        _sign[_axis] = -1
        _add(f"{_quantity} {'xyz'[_axis]} negated", _quantity, _vector(_quantity, _diagonal(*_sign)))
    for _swap in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0)):
        _add(f"{_quantity} axes {''.join('xyz'[n] for n in _swap)}", _quantity, _vector(_quantity, _order(*_swap)))
    _add(f"{_quantity} always zero", _quantity, _vector(_quantity, _diagonal(0, 0, 0)))

_UNITS = {
    "position": {"km": 1e-3, "cm": 100.0, "feet": 3.28084},
    "velocity": {"km/h": 3.6, "km/h taken twice": 1 / 3.6, "mph": 2.23694},
    "acceleration": {"g": 1 / GRAVITY, "g taken twice": GRAVITY},
    "angular_velocity": {"degrees": 180 / np.pi, "degrees taken twice": np.pi / 180, "turns": 0.5 / np.pi},
}
for _quantity, _units in _UNITS.items():
    for _unit, _factor in _units.items():
        _add(f"{_quantity} in {_unit}", _quantity, _vector(_quantity, _diagonal(*[_factor] * 3)))


def _turned_frame(quantity):
    """Give a quantity along the car's axes where the document says the world's, or the reverse."""

    def apply(wire, said, states):
        if quantity not in wire.vectors:
            return None
        aligned = states.copy()  # a car whose axes are the world's has the same components along both
        heading = Rotation.from_euler("z", wire.heading)
        aligned["orientation"] = np.roll(heading.as_quat(), 1)
        if quantity not in wire.in_car:
            aligned[quantity] = heading.apply(attitude_of(states).apply(states[quantity], inverse=True))
        out = said.copy()
        wire.write(out.rows, quantity, wire.read(wire.encode(aligned), quantity))
        return out

    return apply


for _quantity in VECTORS[1:]:
    _add(f"{_quantity} in the other frame", _quantity, _turned_frame(_quantity))


def _gravity(up, car=False):
    """Add gravity to the acceleration, `up` times an accelerometer's reading, or along the car's up axis alone."""

    def apply(wire, said, states):
        felt = states.copy()
        more = np.zeros((len(states), 3))
        more[:, 2] = -up * GRAVITY
        felt["acceleration"] += attitude_of(states).apply(more) if car else more
        out = said.copy()
        change = wire.read(wire.encode(felt), "acceleration") - wire.read(wire.encode(states), "acceleration")
        wire.write(out.rows, "acceleration", wire.read(said.rows, "acceleration") + change[said.about])
        return out

    return apply


_add("gravity in the acceleration", "acceleration", _gravity(1.0))
_add("gravity in it, downwards", "acceleration", _gravity(-1.0))
_add("gravity in the car's up axis alone", "acceleration", _gravity(1.0, car=True))


def _acceleration_offset(*offset):
    def apply(wire, said, states):
        unit = wire.units.get("acceleration", 1.0)
        return _vector("acceleration", lambda v: v + unit * np.array(offset))(wire, said, states)

    return apply


_add("acceleration x 3 m/s^2 too much", "acceleration", _acceleration_offset(3.0, 0, 0))
_add("acceleration y 3 m/s^2 too much", "acceleration", _acceleration_offset(0, 3.0, 0))
_add("acceleration z 3 m/s^2 too much", "acceleration", _acceleration_offset(0, 0, 3.0))


# The attitude: packets of a car in another attitude, with all other quantities unchanged.


def _attitude_fields(wire):
    return (wire.quaternion,) if wire.quaternion else wire.angles


def _attitude(change):
    """Return a fault of the attitude: `change` maps true roll, pitch, yaw to the reported ones."""

    def apply(wire, said, states):
        yaw, pitch, roll = attitude_of(states).as_euler("ZYX").T
        roll, pitch, yaw = change(roll, pitch, yaw)
        stands = states.copy()
        quaternion = Rotation.from_euler("ZYX", np.stack([yaw, pitch, roll], -1)).as_quat()
        stands["orientation"] = np.roll(quaternion, 1, axis=-1)
        rows, out = wire.encode(stands), said.copy()
        for field in _attitude_fields(wire):
            out.rows[field] = rows[field]
        return out

    return apply


_add("roll negated", "attitude", _attitude(lambda r, p, y: (-r, p, y)))
_add("pitch negated", "attitude", _attitude(lambda r, p, y: (r, -p, y)))
_add("yaw negated", "attitude", _attitude(lambda r, p, y: (r, p, -y)))
_add("roll and pitch negated", "attitude", _attitude(lambda r, p, y: (-r, -p, y)))
_add("roll and pitch swapped", "attitude", _attitude(lambda r, p, y: (p, r, y)))
_add("yaw a quarter off", "attitude", _attitude(lambda r, p, y: (r, p, y + np.pi / 2)))
_add("yaw half a turn off", "attitude", _attitude(lambda r, p, y: (r, p, y + np.pi)))
_add("attitude upside down", "attitude", _attitude(lambda r, p, y: (r + np.pi, p, y)))
_add("attitude that never changes", "attitude", _attitude(lambda r, p, y: (0 * r, 0 * p, 0 * y)))


def _nose_up(wire, said, states):
    if "velocity" in wire.in_car:  # along the axes of such a body, the velocity would be another
        return None
    return _attitude(lambda r, p, y: (r, p + np.radians(2.0), y))(wire, said, states)


_add("a body 2 degrees nose up", "", _nose_up)


def _angle_unit(wire, said, states):
    if wire.quaternion:
        return None
    out = said.copy()
    for field in wire.angles:
        out.rows[field] = np.radians(said.rows[field]) if wire.degrees else np.degrees(said.rows[field])
    return out


_add("angles in the other unit", "attitude", _angle_unit)


def _quaternion(change):
    def apply(wire, said, states):
        if not wire.quaternion:
            return None
        out = said.copy()
        out.rows[wire.quaternion] = change(said.rows[wire.quaternion].astype(float))
        return out

    return apply


_add("quaternion w, x, y, z", "attitude", _quaternion(lambda q: np.roll(q, 1, axis=-1)))
_add("quaternion of the other sense", "attitude", _quaternion(lambda q: q * [-1, -1, -1, 1]))
_add("quaternion wxyz of the other sense", "attitude", _quaternion(lambda q: np.roll(q * [-1, -1, -1, 1], 1, axis=-1)))
_add("quaternion whose sign alternates", "", _quaternion(lambda q: q * np.where(np.arange(len(q)) % 2, -1, 1)[:, None]))


# Time: of single quantities, and of whole packets.


def _late(fields_of, seconds):
    def apply(wire, said, states):
        fields, frames, out = fields_of(wire), round(seconds / states["time"][1]), said.copy()
        if not fields:
            return None
        for field in fields:
            out.rows[field][frames:] = said.rows[field][:-frames]
            out.rows[field][:frames] = said.rows[field][0]
        return out

    return apply


def _fields_of(quantity):
    def fields(wire):
        names = wire.vectors.get(quantity, ())
        return (names,) if isinstance(names, str) else names

    return fields


for _seconds in (0.05, 0.1, 0.2, 0.3, 0.5):
    _small = _seconds < 0.15
    for _quantity in ("velocity", "acceleration", "angular_velocity"):
        _add(f"{_quantity} {_seconds:g} s late", _quantity, _late(_fields_of(_quantity), _seconds), small=_small)
    _add(f"attitude {_seconds:g} s late", "attitude", _late(_attitude_fields, _seconds), small=_small)


def _clock(change, only=""):
    def apply(wire, said, states):
        if not wire.clock or (only and wire.system != only):
            return None
        out = said.copy()
        out.rows[wire.clock] = change(said.rows[wire.clock], states["time"])
        return out

    return apply


for _known in (True, False):
    _when = "" if _known else ", arrivals unknown"
    _add(f"time in ms{_when}", "time", _clock(lambda own, t: own * 1e3), arrivals=_known)
    _add(f"time absolute{_when}", "time", _clock(lambda own, t: t, "city-car-driving"), arrivals=_known)
    _add(f"time absolute, in ms{_when}", "time", _clock(lambda own, t: t * 1e3, "city-car-driving"), arrivals=_known)
    _add(f"time since long ago{_when}", "time", _clock(lambda own, t: t + 4e4, "city-car-driving"), arrivals=_known)
    _add(f"time three times too fast{_when}", "time", _clock(lambda own, t: own * 3.0), arrivals=_known)


def _every(choose):
    """Return a fault of whole packets: `choose` returns the packets that arrive, in order."""

    def apply(wire, said, states):
        return said.taking(choose(len(said.rows), np.random.default_rng(7)))

    return apply


_add("each frame twice", "repeated", _every(lambda n, rng: np.repeat(np.arange(n), 2)))
_add("one frame in five missing", "missing", _every(lambda n, rng: np.flatnonzero(rng.random(n) > 0.2)))
_add("every second frame missing", "missing", _every(lambda n, rng: np.arange(0, n, 2)))
_add("half a second missing now and then", "missing", _every(lambda n, rng: np.flatnonzero(np.arange(n) % 600 > 30)))


def _held(frames):
    """Return a fault that repeats every state for some frames, while the clock goes on."""

    def apply(wire, said, states):
        out = said.taking(np.arange(len(said.rows)) // frames * frames)
        if wire.clock:
            out.rows[wire.clock] = said.rows[wire.clock]
        out.times = said.times.copy()
        return out

    return apply


_add("every state said three times", "", _held(3))


def _jittered(wire, said, states):
    out = said.copy()
    out.times = np.maximum.accumulate(said.times + np.random.default_rng(3).uniform(0.0, 0.02, len(said.times)))
    return out


_add("arrivals up to 20 ms late", "", _jittered)


# Not faults: another world, another body, real sensors.


def _world(turn, offset):
    def apply(wire, said, states):
        placed = states.copy()
        for name in ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration"):
            placed[name] = turn.apply(states[name])
        placed["position"] += offset
        placed["orientation"] = np.roll((turn * attitude_of(states)).as_quat(), 1, axis=-1)
        out = said.copy()
        rows = wire.encode(placed)
        for fields in (*wire.vectors.values(), *_attitude_fields(wire)):
            for field in (fields,) if isinstance(fields, str) else fields:
                out.rows[field] = rows[field]
        return out

    return apply


for _degrees in (40, 90, 180, 250):
    _add(
        f"a world turned by {_degrees} degrees, elsewhere",
        "",
        _world(Rotation.from_euler("z", _degrees, degrees=True), [800.0, -3000.0, -250.0]),
    )


def _noisy(size):
    def apply(wire, said, states):
        out, rng = said.copy(), np.random.default_rng(11)
        for quantity, share in (("velocity", 0.05), ("acceleration", 0.5), ("angular_velocity", 0.01)):
            if quantity in wire.vectors:
                unit = wire.units.get(quantity, 1.0)
                values = wire.read(said.rows, quantity)
                wire.write(out.rows, quantity, values + size * share * unit * rng.standard_normal(values.shape))
        return out

    return apply


_add("noise", "", _noisy(1.0))
_add("much noise", "", _noisy(3.0))
