"""Simulators that nobody built: their packets, described from docs/simulators.md alone, and encoded independently.

`encode` knows the car's true states and the text of each description, but nothing of how descriptions are read.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from motioncue.core.channels import GRAVITY
from motioncue.profile.profile import parse_profile
from motioncue.sources import DescribedSource

__all__ = ["ALPINE", "BOREAL", "COASTAL", "encode_alpine", "encode_boreal", "encode_coastal"]

REST = """
cueing = { algorithm = "direct" }
output = { system = "dk", motion = "udp://127.0.0.1:4445" }
source.system = "custom"
source.endpoint = "udp://127.0.0.1:20777"
[source.packet]
"""


def _source(name, text):
    return DescribedSource(parse_profile(REST + text).source.packet, name)


def _fields(kind, start, size, names, **more):
    extra = "".join(f", {key} = {value!r}".replace("'", '"') for key, value in more.items())
    return "\n".join(
        f'    {{ offset = {start + size * n}, type = "{kind}", channel = "{name}"{extra} }},'
        for n, name in enumerate(names)
    )


def _xyz(*names):
    return [f"{name}_{axis}" for name in names for axis in "xyz"]


def _attitude(states):
    return Rotation.from_quat(np.roll(states["orientation"], -1, axis=-1))


# Big endian; left-handed axes right, up, forward; a quaternion; no position; velocity in km/h and rates in deg/s along
# the car's axes; an accelerometer's reading in g; the time counts milliseconds; a mark tells two forms apart.
ALPINE = _source(
    "alpine",
    f"""
size = 88
byte_order = "big"
world = ["east", "up", "north"]
car = ["right", "up", "forward"]
velocity = "car"
gravity = "included"
constants = [{{ offset = 0, bytes = "41 4c 50 01" }}]
fields = [
    {{ offset = 4, type = "u4", channel = "time", unit = "ms" }},
{_fields("f4", 8, 4, [f"quaternion_{axis}" for axis in "xyzw"])}
{_fields("f4", 24, 4, _xyz("velocity"), unit="km/h")}
{_fields("f4", 36, 4, _xyz("angular_velocity"), unit="deg/s")}
{_fields("f4", 48, 4, _xyz("acceleration"), unit="g")}
    {{ offset = 60, type = "i2", channel = "engine_speed", scale = 2, bias = 100 }},
]
forms = [{{ name = "lap", size = 40, constants = [{{ offset = 0, bytes = "41 4c 50 02" }}] }}]
""",
)

ALPINE_DTYPE = np.dtype(
    {
        "names": ["mark", "time", "orientation", "velocity", "angular_velocity", "acceleration", "engine"],
        "formats": [">u4", ">u4", "4>f4", "3>f4", "3>f4", "3>f4", ">i2"],
        "offsets": [0, 4, 8, 24, 36, 48, 60],
        "itemsize": 88,
    }
)


def encode_alpine(states):
    """Return packets of `ALPINE`."""
    turn = _attitude(states)
    # Columns: east, up, north in north, east, down; right, up, forward in forward, right, down.
    world = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    car = world
    out = np.zeros(len(states), ALPINE_DTYPE)
    out["mark"] = 0x414C5001
    out["time"] = np.rint(states["time"] * 1e3)
    out["orientation"] = Rotation.from_matrix(world.T @ turn.as_matrix() @ car).as_quat()
    out["velocity"] = turn.apply(states["velocity"], inverse=True) @ car * 3.6
    # A turn about z takes x to y: in left-handed axes the vector of a turn has the other sign.
    out["angular_velocity"] = -np.degrees(turn.apply(states["angular_velocity"], inverse=True) @ car)
    felt = turn.apply(states["acceleration"] - [0.0, 0.0, GRAVITY], inverse=True)
    out["acceleration"] = felt @ car / GRAVITY
    out["engine"] = np.rint((states["engine_speed"] - 100.0) / 2.0)
    return out


# Little endian, 8-byte numbers; world axes south, east, up; degrees, turned in the order yaw, roll, pitch, counted
# from east; position in cm, velocity in mph; accelerations by name in g, two of them with the opposite sign; no rates;
# its own time counts down; eight cars, of which a field names the player's.
COASTAL = _source(
    "coastal",
    f"""
size = 808
world = ["south", "east", "up"]
order = ["yaw", "roll", "pitch"]
heading_from = "east"
blocks = {{ count = 8, stride = 100, first = 8, index = 0, type = "u2" }}
fields = [
    {{ offset = 4, type = "f4", channel = "time", scale = -1, bias = 10000 }},
    {{ offset = 8, type = "f8", channel = "yaw", unit = "deg" }},
    {{ offset = 16, type = "f8", channel = "pitch", unit = "deg", scale = -1 }},
    {{ offset = 24, type = "f8", channel = "roll", unit = "deg", scale = -1 }},
{_fields("f8", 32, 8, _xyz("position"), unit="cm")}
{_fields("f8", 56, 8, _xyz("velocity"), unit="mph")}
    {{ offset = 80, type = "f4", channel = "surge", unit = "g" }},
    {{ offset = 84, type = "f4", channel = "sway", unit = "g", scale = -1 }},
    {{ offset = 88, type = "f4", channel = "heave", unit = "g", scale = -1 }},
]
""",
)

COASTAL_DTYPE = np.dtype(
    {
        "names": ["player", "left", "yaw", "pitch", "roll", "position", "velocity", "acceleration"],
        "formats": ["<u2", "<f4", "<f8", "<f8", "<f8", "3<f8", "3<f8", "3<f4"],
        "offsets": [0, 4, 308, 316, 324, 332, 356, 380],  # of the fourth car
        "itemsize": 808,
    }
)


def encode_coastal(states):
    """Return packets of `COASTAL`, in which the player has car 3."""
    turn = _attitude(states)
    out = np.zeros(len(states), COASTAL_DTYPE)
    out["player"] = 3
    out["left"] = 10_000.0 - states["time"]
    # Yaw from east about down, then roll about the nose, then pitch about the right axis that the roll has left.
    yaw, roll, pitch = (Rotation.from_euler("z", -np.pi / 2) * turn).as_euler("ZXY").T
    out["yaw"], out["pitch"], out["roll"] = np.degrees(yaw), -np.degrees(pitch), -np.degrees(roll)
    world = np.array([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    out["position"] = states["position"] @ world * 100.0
    out["velocity"] = states["velocity"] @ world / 0.44704
    out["acceleration"] = turn.apply(states["acceleration"], inverse=True) * [1.0, -1.0, 1.0] / GRAVITY
    return out


# A rotation matrix by columns, forward and right; velocity and an acceleration with gravity in world axes; angular
# velocity about the world's axes; longer than its least size; position in feet.
BOREAL = _source(
    "boreal",
    f"""
size = 96
longer = true
world = ["north", "west", "up"]
acceleration = "world"
rates = "world"
gravity = "included"
fields = [
    {{ offset = 0, type = "i8", channel = "time", unit = "us" }},
{_fields("f4", 8, 4, _xyz("forward", "right"))}
{_fields("f4", 32, 4, _xyz("position"), unit="ft")}
{_fields("f4", 44, 4, _xyz("velocity"), unit="kn")}
{_fields("f4", 56, 4, _xyz("acceleration"), unit="ft/s^2")}
{_fields("f4", 68, 4, _xyz("angular_velocity"))}
]
""",
)

BOREAL_DTYPE = np.dtype(
    {
        "names": ["time", "forward", "right", "position", "velocity", "acceleration", "angular_velocity"],
        "formats": ["<i8", "3<f4", "3<f4", "3<f4", "3<f4", "3<f4", "3<f4"],
        "offsets": [0, 8, 20, 32, 44, 56, 68],
        "itemsize": 100,
    }
)


def encode_boreal(states):
    """Return packets of `BOREAL`, longer than its least size."""
    world = np.diag([1.0, -1.0, -1.0])
    axes = _attitude(states).as_matrix()
    out = np.zeros(len(states), BOREAL_DTYPE)
    out["time"] = np.rint(states["time"] * 1e6)
    out["forward"], out["right"] = axes[:, :, 0] @ world, axes[:, :, 1] @ world
    out["position"] = states["position"] @ world / 0.3048
    out["velocity"] = states["velocity"] @ world * 3600.0 / 1852.0
    out["acceleration"] = (states["acceleration"] - [0.0, 0.0, GRAVITY]) @ world / 0.3048
    out["angular_velocity"] = states["angular_velocity"] @ world
    return out
