"""The packets of each source, in a form in which single quantities can be changed."""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from campaign import described
from campaign.drives import states_of
from motioncue.core.channels import GRAVITY
from motioncue.sources.beamng import twin as beamng
from motioncue.sources.beamng_simulink import twin as beamng_simulink
from motioncue.sources.city_car_driving import twin as city_car_driving
from motioncue.sources.morai import twin as morai
from motioncue.sources.vehicle_physics_pro import twin as vehicle_physics_pro

__all__ = ["INVENTED", "WIRES", "Said", "Wire", "attitude_of", "options_of", "say"]

INVENTED = ("alpine", "coastal", "boreal")
"""Simulators that nobody has; of a few faults they show too little for a verdict, and alpine reports no position."""

AXES = "xyz"


@dataclasses.dataclass(frozen=True)
class Wire:
    """A source's packets and the places of its quantities."""

    system: str
    encode: Callable  # states to an array of packets
    vectors: dict  # quantity to a field, or to the fields of its three components
    angles: tuple = ()  # roll, pitch, yaw,
    degrees: bool = False
    quaternion: str = ""  # or a quaternion field x, y, z, w
    clock: str = ""  # the field with the simulator's own time
    first: tuple = ()  # packages before the first frame
    in_car: frozenset = frozenset()  # the quantities given along the car's axes
    options: tuple = ()  # options that the packets need, if not the defaults
    step: str = ""  # the option with the duration of a frame
    units: dict = dataclasses.field(default_factory=dict)  # of quantities that are not in SI units, how many make one
    heading: float = 0.0  # of a car whose axes are the world's [rad]

    def read(self, rows, quantity):
        """Return a vector quantity, shape (n, 3)."""
        fields = self.vectors[quantity]
        return rows[fields].astype(float) if isinstance(fields, str) else np.stack([rows[f] for f in fields], -1)

    def write(self, rows, quantity, values):
        """Replace a vector quantity."""
        fields = self.vectors[quantity]
        if isinstance(fields, str):
            rows[fields] = values
        else:
            for field, column in zip(fields, np.asarray(values).T, strict=True):
                rows[field] = column


@dataclasses.dataclass
class Said:
    """Received packets, their arrivals, and the index of each one's state in the drive."""

    rows: np.ndarray
    times: np.ndarray  # [s]
    about: np.ndarray  # indices into the states

    def copy(self):
        return Said(self.rows.copy(), self.times.copy(), self.about.copy())

    def taking(self, index):
        return Said(self.rows[index].copy(), self.times[index].copy(), self.about[index].copy())


def _fields(prefix):
    return tuple(f"{prefix}_{axis}" for axis in AXES)


def _ccd(states):
    return city_car_driving.encode_states(states)


def _beamng(states):
    return beamng.encode_states(states)[0]


def _vpp(states):
    packets = vehicle_physics_pro.encode_states(states)
    packets["time"] = states["time"]
    return packets


_MORAI = {name: name for name in ("position", "velocity", "acceleration", "angular_velocity")}

WIRES = {
    "city-car-driving": Wire(
        "city-car-driving",
        _ccd,
        {n: n for n in ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")},
        quaternion="orientation",
        clock="frame_time",
        first=(city_car_driving.INIT_PACKAGE,),
    ),
    "beamng": Wire(
        "beamng",
        _beamng,
        {
            "position": _fields("position"),
            "velocity": _fields("velocity"),
            "acceleration": ("sway", "surge", "heave"),
            "angular_velocity": ("roll_rate", "pitch_rate", "yaw_rate"),
            "angular_acceleration": ("roll_acceleration", "pitch_acceleration", "yaw_acceleration"),
        },
        angles=("roll", "pitch", "yaw"),
        in_car=frozenset(("acceleration", "angular_velocity", "angular_acceleration")),
    ),
    "beamng-simulink": Wire(
        "beamng-simulink",
        beamng_simulink.encode_states,
        {"position": _fields("pos"), "velocity": _fields("vel"), "acceleration": _fields("acc")},
        angles=("roll", "pitch", "yaw"),
        clock="id",
        in_car=frozenset(("acceleration",)),
        step="simulink_time_s",
    ),
    "morai": Wire(
        "morai",
        morai.encode_states,
        _MORAI,
        angles=("roll", "pitch", "heading"),
        degrees=True,
        in_car=frozenset(("velocity", "acceleration")),
        units={"velocity": 3.6, "angular_velocity": 180.0 / np.pi},
        heading=np.pi / 2,
    ),
    "morai, its own rates": Wire(
        "morai",
        morai.encode_states,
        _MORAI,
        angles=("roll", "pitch", "heading"),
        degrees=True,
        in_car=frozenset(("velocity", "acceleration")),
        units={"velocity": 3.6, "angular_velocity": 180.0 / np.pi},
        heading=np.pi / 2,
        options=(("rates", "native"),),
    ),
    "vehicle-physics-pro": Wire(
        "vehicle-physics-pro",
        _vpp,
        {n: n for n in ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")},
        quaternion="attitude",
        clock="time",
        in_car=frozenset(("velocity", "acceleration", "angular_velocity", "angular_acceleration")),
    ),
    "alpine": Wire(
        described.ALPINE,
        described.encode_alpine,
        {name: name for name in ("velocity", "acceleration", "angular_velocity")},
        degrees=True,
        quaternion="orientation",
        clock="time",
        in_car=frozenset(("velocity", "acceleration", "angular_velocity")),
        units={"velocity": 3.6, "acceleration": 1.0 / GRAVITY, "angular_velocity": 180.0 / np.pi},
    ),
    "coastal": Wire(
        described.COASTAL,
        described.encode_coastal,
        {name: name for name in ("position", "velocity", "acceleration")},
        angles=("roll", "pitch", "yaw"),
        degrees=True,
        in_car=frozenset(("acceleration",)),
        units={"velocity": 1.0 / 0.44704, "acceleration": 1.0 / GRAVITY},
    ),
    "boreal": Wire(
        described.BOREAL,
        described.encode_boreal,
        {name: name for name in ("position", "velocity", "acceleration", "angular_velocity")},
        angles=("forward", "right"),
        clock="time",
        units={"velocity": 3600.0 / 1852.0, "acceleration": 1.0 / 0.3048},
    ),
}
"""The sources by name, some with options of their own."""


def options_of(wire, drive):
    """Return the options that a source's packets of a drive need, if not the defaults."""
    return {**dict(wire.options), **({wire.step: float(states_of(drive)["time"][1])} if wire.step else {})}


def say(wire, drive):
    """Return the packets of a drive."""
    states = states_of(drive)
    return Said(wire.encode(states), states["time"].copy(), np.arange(len(states)))


def attitude_of(states):
    """Return the rotations from forward, right, down to north, east, down."""
    return Rotation.from_quat(np.roll(states["orientation"], -1, axis=-1))
