r"""MORAI: every message of its UDP interface, as packets.

Layout: "UDP Network Settings", MORAI's document, corrected where it contradicts itself by MORAI's own Python structures
(24.R2 and 26.R1) and by packets captured from 24.R2 (tests/data/packets/morai): the ego vehicle status of the document
is 2 bytes longer than its total says, and has grown since; object info has 68 or 106 bytes an object; the camera index
of a multi ego setting has 4 bytes.

Every packet is packed and little-endian: a header "#Name$", the length of the data, 12 bytes of zeros, the data,
``\r\n``.  The header identifies the message, the length of the data its version.  Offsets below count from the
beginning of the data.
"""

import itertools
from collections.abc import Iterable

from motioncue.wire.packet import Field, Packet

TAIL = b"\r\n"

GEARS = dict(enumerate(("M", "P", "R", "N", "D", "L")))  # manual, parking, reverse, neutral, drive, lower
MODES = {1: "keyboard", 2: "auto"}


def envelope(name: str, header: str, length: int, fields: Iterable[Field]) -> Packet:
    """Return a message whose `length` bytes of data consist of `fields`."""
    start = len(header) + 16
    return Packet(
        name,
        start + length + len(TAIL),
        [
            Field("header", 0, f"S{len(header)}"),
            Field("data_length", len(header), "<i4", "bytes"),
            Field("aux", len(header) + 4, "3<i4", low=0, high=0),
            *shifted(start, fields),
            Field("tail", start + length, f"S{len(TAIL)}"),
        ],
        {"header": header.encode(), "data_length": length, "tail": TAIL},
    )


def shifted(offset: int, fields: Iterable[Field]) -> list[Field]:
    """Return fields moved by `offset` bytes."""
    return [field._replace(offset=field.offset + offset) for field in fields]


# Wall-clock time at which the packet was assembled, not the time of the physics step.
_STAMP = (Field("sec", 0, "<i4", "s"), Field("nsec", 4, "<i4", "ns"))

# --- what the simulator publishes ------------------------------------------------------------------------------------

# Limits: no road vehicle is faster and no crash is harder; a packet beyond them is broken.
_STATUS = (
    Field("ctrl_mode", 0, "|i1", words=MODES),
    Field("gear", 1, "|i1", words=GEARS),
    Field("signed_velocity", 2, "<f4", "km/h"),
    Field("map_data_id", 6, "<i4"),
    Field("accel", 10, "<f4"),  # pedals, 0 to 1
    Field("brake", 14, "<f4"),
    Field("size", 18, "3<f4", "m"),
    Field("overhang", 30, "<f4", "m"),
    Field("wheelbase", 34, "<f4", "m"),
    Field("rear_overhang", 38, "<f4", "m"),
    Field("position", 42, "3<f4", "m", 1e7),
    Field("roll", 54, "<f4", "deg", 720.0),
    Field("pitch", 58, "<f4", "deg", 720.0),
    Field("heading", 62, "<f4", "deg", 720.0),
    Field("velocity", 66, "3<f4", "km/h", 1800.0),
)
_ANGULAR_VELOCITY = Field("angular_velocity", 86, "3<f4", "deg/s", 6000.0)
_V1 = (*_STATUS, Field("acceleration", 78, "3<f4", "m/s^2", 2000.0), Field("steer", 90, "<f4", "deg"))
_V3 = (
    *_STAMP,
    *shifted(8, _STATUS),
    _ANGULAR_VELOCITY,
    Field("acceleration", 98, "3<f4", "m/s^2", 2000.0),
    Field("steer", 110, "<f4", "deg"),
    Field("link_id", 114, "S38"),
)

EGO_VEHICLE_STATUS = (
    envelope("ego_vehicle_status_v1", "#MoraiInfo$", 94, _V1),  # 2021, from the document
    envelope("ego_vehicle_status_v2", "#MoraiInfo$", 132, (*_V1, Field("link_id", 94, "S38"))),  # 22.R1
    envelope("ego_vehicle_status_v3", "#MoraiInfo$", 152, _V3),  # 23.R1, also the competitions' status
    envelope(  # 24.R2
        "ego_vehicle_status_v4",
        "#MoraiInfo$",
        200,
        (
            *_V3,
            Field("tire_lateral_force", 152, "4<f4"),  # front left, front right, rear left, rear right
            Field("side_slip_angle", 168, "4<f4"),
            Field("tire_cornering_stiffness", 184, "4<f4"),
        ),
    ),
    envelope(  # 26.R1
        "ego_vehicle_status_v5",
        "#MoraiInfo$",
        216,
        (
            *_STAMP,
            *shifted(8, _STATUS),
            _ANGULAR_VELOCITY,
            Field("acceleration", 98, "3<f4", "m/s^2", 2000.0),
            Field("front_steer", 110, "<f4", "deg"),
            Field("rear_steer", 114, "<f4", "deg"),
            Field("link_id", 118, "S38"),
            Field("tire_lateral_force", 156, "4<f4"),
            Field("side_slip_angle", 172, "4<f4"),
            Field("tire_cornering_stiffness", 188, "4<f4"),
            Field("distance_left_lane_boundary", 204, "<f4", "m"),
            Field("distance_right_lane_boundary", 208, "<f4", "m"),
            Field("cross_track_error", 212, "<f4", "m"),
        ),
    ),
)
"""Versions 1 to 5."""

UNTAILED_STATUS = Packet(
    "ego_vehicle_status_untailed",
    121,
    [field for field in EGO_VEHICLE_STATUS[0].fields.values() if field.name != "tail"],
    {name: value for name, value in EGO_VEHICLE_STATUS[0].constants.items() if name != "tail"},
)
"""Version 1 in the size that its document states, which is that of the sum of its parts less the tail."""

HEADERLESS_STATUS = Packet(
    "vehicle_status_headerless",
    108,
    [
        Field("sec", 0, "<i8", "s"),
        Field("nsec", 8, "<i4", "ns"),
        Field("vehicle_id", 12, "S24"),
        Field("position", 36, "3<f4", "m", 1e7),
        Field("roll", 48, "<f4", "deg", 720.0),
        Field("pitch", 52, "<f4", "deg", 720.0),
        Field("heading", 56, "<f4", "deg", 720.0),
        Field("velocity", 60, "3<f4", "km/h", 1800.0),
        Field("acceleration", 72, "3<f4", "m/s^2", 2000.0),
        Field("angular_velocity", 84, "3<f4", "deg/s", 6000.0),
        Field("accel", 96, "<f4"),
        Field("brake", 100, "<f4"),
        Field("steer", 104, "<f4", "deg"),
    ],
)
"""A status of 2026 without header and tail: as one public program receives it (MORAI_CPP_Networks, by Onlyti)."""

TYPES = {-1: "ego", 0: "pedestrian", 1: "vehicle", 2: "static"}
_SHORT_OBJECT = (
    Field("obj_id", 0, "<i2"),  # 0: empty slot
    Field("obj_type", 2, "<i2", words=TYPES),
    Field("position", 4, "3<f4", "m"),
    Field("heading", 16, "<f4", "deg"),
    Field("size", 20, "3<f4", "m"),
    Field("overhang", 32, "<f4", "m"),
    Field("wheelbase", 36, "<f4", "m"),
    Field("rear_overhang", 40, "<f4", "m"),
    Field("velocity", 44, "3<f4", "km/h"),
    Field("acceleration", 56, "3<f4", "m/s^2"),
)
SHORT_OBJECT = Packet("object", 68, _SHORT_OBJECT)
OBJECT = Packet("object", 106, (*_SHORT_OBJECT, Field("link_id", 68, "S38")))

OBJECTS = 20
"""The largest number of objects in one message."""


def object_info(length: int) -> Packet | None:
    """Return the message with this length of data [bytes]: slots with or without a stamp; None if none fits.

    If both kinds of slot fit (212 bytes), it is the newer one.
    """
    for slot, name in ((OBJECT, ("object_info_unstamped", "object_info")),
                       (SHORT_OBJECT, ("object_info_short", "object_info_short_stamped"))):  # fmt: skip
        count, stamp = divmod(length, slot.size)
        if stamp in (0, 8) and 0 < count <= OBJECTS:
            fields = [*(_STAMP if stamp else ()), Field("objects", stamp, (slot, count))]
            return envelope(name[stamp // 8], "#MoraiObjInfo$", length, fields)
    return None


OBJECT_INFO = tuple(packet for length in (1360, 1368, 2120, 2128) if (packet := object_info(length)))
"""The messages with all slots, as the simulator sends them."""

FEWER_OBJECTS = tuple(
    packet
    for length in range(OBJECTS * OBJECT.size)
    if (packet := object_info(length)) and packet.size not in [whole.size for whole in OBJECT_INFO]
)

STATED_OBJECTS = Packet(
    "object_info_stated",
    1472,
    [
        Field("header", 0, "S14"),
        Field("data_length", 14, "<i4", "bytes"),
        Field("aux", 18, "3<i4", low=0, high=0),
        Field("objects", 30, (SHORT_OBJECT, OBJECTS)),
        Field("tail", 1470, "S2"),
    ],
    {"header": b"#MoraiObjInfo$", "tail": TAIL},
)
"""All slots in the size that the document states, which is 80 bytes more than its parts: whatever is behind the slots,
and whatever length of the data is said, 1420 as in the document or 1440 as the size has it."""

LIGHTS = (-1, *(sum(lamps) for lamps in itertools.product((0, 32), (0, 16), (0, 4), (0, 1))))
"""States of a traffic light: any sum of 1 red, 4 yellow, 16 green, 32 green left; or -1, the default."""

LAMPS = {1: "red", 4: "yellow", 16: "green", 32: "green_left"}
LIGHT_WORDS = {-1: "default", 0: "off"} | {
    light: "+".join(word for lamp, word in LAMPS.items() if light & lamp) for light in LIGHTS if light > 0
}
LIGHT_TYPES = {0: "red_yellow_green", 1: "red_yellow_left", 2: "red_yellow_left_green", 100: "yellow"}

TRAFFIC_LIGHT = envelope(
    "traffic_light",
    "#TrafficLight$",
    16,
    [
        Field("index", 0, "S12"),
        Field("type", 12, "<i2", words=LIGHT_TYPES),
        Field("status", 14, "<i2", words=LIGHT_WORDS),
    ],
)

COLLIDED = Packet(
    "collided",
    28,
    [
        Field("obj_type", 0, "<i2"),  # comes first, unlike in object info
        Field("obj_id", 2, "<i2"),
        Field("position", 4, "3<f4", "m"),  # relative to the ego vehicle
        Field("global_offset", 16, "3<f4", "m"),  # on the map
    ],
)
COLLISION_DATA = (
    envelope("collision_data_unstamped", "#CollisionData$", 140, [Field("objects", 0, (COLLIDED, 5))]),
    envelope("collision_data", "#CollisionData$", 148, [*_STAMP, Field("objects", 8, (COLLIDED, 5))]),
)

NPC = Packet(
    "npc",
    56,
    [
        Field("obj_type", 0, "<i2"),
        Field("obj_id", 2, "<i2"),
        Field("position", 4, "3<f4", "m"),
        Field("heading", 16, "<f4", "deg"),
        Field("size", 20, "3<f4", "m"),
        Field("velocity", 32, "3<f4", "km/h"),
        Field("acceleration", 44, "3<f4", "m/s^2"),
    ],
)
NPC_PAIR = Packet("npc_pair", 112, [Field("first", 0, NPC), Field("second", 56, NPC)])
NPC_VEHICLE_COLLISION = envelope(
    "npc_vehicle_collision", "#VehicleCollision$", 1120, [Field("collisions", 0, (NPC_PAIR, 10))]
)

_INTERSECTION = (
    Field("index", 0, "<i2", low=0),
    Field("status", 2, "<i2", low=0),
    Field("time", 4, "<f4", "s", low=0.0),  # how long the state has lasted
)
INTERSECTION = envelope("intersection", "#IntStatus$", 8, _INTERSECTION)

_IMU = (
    Field("orientation", 0, "4<f8"),  # w, x, y, z
    Field("angular_velocity", 32, "3<f8", "rad/s", 100.0),
    Field("acceleration", 56, "3<f8", "m/s^2", 2000.0),  # an accelerometer's reading: +9.8 upwards at rest
)
IMU = (
    envelope("imu_unstamped", "#IMUData$", 80, _IMU),
    envelope("imu", "#IMUData$", 88, [*_STAMP, *shifted(8, _IMU)]),
)

# --- commands to the simulator ---------------------------------------------------------------------------------------

_CTRL = (
    Field("ctrl_mode", 0, "|i1", low=0, high=2, words={0: "unchanged", **MODES}),
    Field("gear", 1, "|i1", low=0, high=5, words=GEARS, needed=True),
    Field("cmd_type", 2, "|i1", low=1, high=3, words={1: "pedals", 2: "velocity", 3: "acceleration"}),
    Field("velocity", 3, "<f4", "km/h", when=("cmd_type", 2)),
    Field("acceleration", 7, "<f4", "m/s^2", when=("cmd_type", 3)),
    Field("accelerator", 11, "<f4", low=0.0, high=1.0),
    Field("brake", 15, "<f4", low=0.0, high=1.0),
    Field("steering", 19, "<f4", low=-1.0, high=1.0),  # fraction of the largest angle
)
EGO_CTRL_CMD = (
    envelope("ego_ctrl_cmd", "#MoraiCtrlCmd$", 23, _CTRL),
    envelope(  # 26.R1
        "ego_ctrl_cmd_rear_steer",
        "#MoraiCtrlCmd$",
        27,
        (*_CTRL, Field("rear_steering", 23, "<f4", low=-1.0, high=1.0)),
    ),
)

EGO = Packet(
    "ego",
    32,
    [
        Field("ego_index", 0, "<i2", low=0),
        Field("position", 2, "3<f4", "m"),
        Field("roll", 14, "<f4", "deg"),
        Field("pitch", 18, "<f4", "deg"),
        Field("heading", 22, "<f4", "deg"),
        Field("velocity", 26, "<f4", "km/h"),
        Field("gear", 30, "|i1", low=1, high=4, words={number: GEARS[number] for number in range(1, 5)}),
        # auto is 16 in the document, 2 in MORAI's Python
        Field("ctrl_mode", 31, "|i1", low=1, high=16, among=(1, 2, 16), words={1: "keyboard", 16: "auto", 2: "auto"}),
    ],
)
MULTI_EGO_SETTING = envelope(
    "multi_ego_setting",
    "#MultiEgoSetting$",
    648,
    [
        Field("num_of_ego", 0, "<i4", low=0, high=20),
        Field("camera_index", 4, "<i4", low=0),
        Field("egos", 8, (EGO, 20)),
    ],
)
SHORT_CAMERA_SETTING = envelope(
    "multi_ego_setting_short",
    "#MultiEgoSetting$",
    646,
    [
        Field("num_of_ego", 0, "<i4", low=0, high=20),
        Field("camera_index", 4, "<i2", low=0),
        Field("egos", 6, (EGO, 20)),
    ],
)
"""With the camera's index in 2 bytes, as the document's row says: its sum says 4, and so does MORAI's Python."""

SET_TRAFFIC_LIGHT = envelope(
    "set_traffic_light",
    "#TrafficLight$",
    14,
    [Field("index", 0, "S12"), Field("status", 12, "<i2", low=-1, high=53, among=LIGHTS, words=LIGHT_WORDS)],
)
SET_INTERSECTION = envelope("set_intersection", "#SetIntStatus$", 8, _INTERSECTION)

SCENARIO_LOAD = envelope(
    "scenario_load",
    "#ScenarioLoad$",
    37,
    [
        Field("file_name", 0, "S30"),
        Field("delete_all", 30, "?"),
        Field("load_network_connection_data", 31, "?"),
        Field("load_ego_vehicle_data", 32, "?"),
        Field("load_npc_vehicle_data", 33, "?"),
        Field("load_pedestrian_data", 34, "?"),
        Field("load_object_data", 35, "?"),
        Field("set_pause", 36, "?"),
    ],
)
SAVE_SENSOR_DATA = envelope(
    "save_sensor_data",
    "#SaveSensorData$",
    91,
    [
        Field("is_custom_file_name", 0, "?"),
        Field("custom_file_name", 1, "S30"),
        Field("file_dir", 31, "S60"),
    ],
)
SENSOR_CONTROL = envelope(
    "sensor_control",
    "#SensorControl$",
    26,
    [
        Field("sensor_index", 0, "<i2", low=0),
        Field("position", 2, "3<f4", "m"),
        Field("roll", 14, "<f4", "deg"),
        Field("pitch", 18, "<f4", "deg"),
        Field("heading", 22, "<f4", "deg"),
    ],
)
TURN_SIGNAL_LAMP = envelope(
    "turn_signal_lamp",
    "#LampControl$",
    2,
    [
        Field("turn_signal", 0, "|i1", low=0, high=2, words={0: "none", 1: "left", 2: "right"}),
        Field("emergency_signal", 1, "|i1", low=0, high=1),
    ],
)
EGO_GHOST = envelope(
    "ego_ghost",
    "#EgoGhostCmd$",
    32,
    [
        Field("position", 0, "3<f4", "m"),
        Field("roll", 12, "<f4", "deg"),
        Field("pitch", 16, "<f4", "deg"),
        Field("heading", 20, "<f4", "deg"),
        Field("velocity", 24, "<f4", "km/h"),
        Field("steer", 28, "<f4", "deg"),
    ],
)
GHOST = Packet(
    "ghost",
    50,
    [
        Field("unique_id", 0, "|i1", low=0),
        Field("car_name", 1, "S25"),
        Field("position", 26, "3<f4", "m"),
        Field("roll", 38, "<f4", "deg"),
        Field("pitch", 42, "<f4", "deg"),
        Field("heading", 46, "<f4", "deg"),
    ],
)
NPC_GHOST = envelope("npc_ghost", "#NpcGhostCmd$", 1000, [Field("ghosts", 0, (GHOST, 20))])

PUBLISHED = (
    *EGO_VEHICLE_STATUS,
    *OBJECT_INFO,
    TRAFFIC_LIGHT,
    *COLLISION_DATA,
    NPC_VEHICLE_COLLISION,
    INTERSECTION,
    *IMU,
)
"""Messages that the simulator sends."""

COMMANDS = {
    packet.name: packet
    for packet in (
        *EGO_CTRL_CMD,
        MULTI_EGO_SETTING,
        SET_TRAFFIC_LIGHT,
        SET_INTERSECTION,
        SCENARIO_LOAD,
        SAVE_SENSOR_DATA,
        SENSOR_CONTROL,
        TURN_SIGNAL_LAMP,
        EGO_GHOST,
        NPC_GHOST,
    )
}
"""Commands to the simulator by name, with the document's ranges."""

MESSAGES = (*PUBLISHED, *COMMANDS.values())
"""All messages."""

AS_STATED = (UNTAILED_STATUS, STATED_OBJECTS, SHORT_CAMERA_SETTING)
"""What the document states where its sums contradict it: taken if it comes, and never sent."""
