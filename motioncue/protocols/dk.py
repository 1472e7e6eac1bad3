"""DK (SIGMA INTEGRALE): two UDP streams in the layouts of BeamNG's MotionSim and OutGauge.

Layout: "BeamNG Telemetry Scheme", DK's document, for the offsets DK reads (speed 12 and engine speed 16 of the gauges;
sway 28, surge 32, heave 36, roll 52, pitch 56 of the motion); BeamNG's ``lua/vehicle/protocols/motionSim.lua`` and
``outgauge.lua`` (0.32) for the rest, so that every other BeamNG tool can read the streams too.  The document's table
and its C# sample disagree about 28 and 32; captured packets show that the table is right: in a braking car offset 32
holds the deceleration.  Checked against two captured 88-byte packets (tests/data/packets/dk).

Signs are those of `Motion`: surge forward, sway right (turning right), heave up, roll right side down (turning left),
pitch nose up, yaw nose right from north; acceleration without gravity.  World axes: X east, Y north, Z up.
DK limits motion below 0.89408 m/s, so a source without speed sends 1.0 m/s.  DK is not stable above 400 Hz.
"""

from motioncue.errors import PacketError
from motioncue.protocols.layout import Field, Packet, Send, Stream

__all__ = ["GAUGES", "MAX_RATE_HZ", "MOTION", "STREAMS", "framed", "identify"]

MAX_RATE_HZ = 400.0
"""The highest rate DK's document calls stable [Hz]."""

MOTION = Packet(
    "motion",
    88,
    [
        Field("magic", 0, "S4"),
        Field("position_x", 4, "<f4", "m"),
        Field("position_y", 8, "<f4", "m"),
        Field("position_z", 12, "<f4", "m"),
        Field("velocity_x", 16, "<f4", "m/s"),
        Field("velocity_y", 20, "<f4", "m/s"),
        Field("velocity_z", 24, "<f4", "m/s"),
        Field("sway", 28, "<f4", "m/s^2"),
        Field("surge", 32, "<f4", "m/s^2"),
        Field("heave", 36, "<f4", "m/s^2"),
        Field("up_x", 40, "<f4"),
        Field("up_y", 44, "<f4"),
        Field("up_z", 48, "<f4"),
        Field("roll", 52, "<f4", "rad"),
        Field("pitch", 56, "<f4", "rad"),
        Field("yaw", 60, "<f4", "rad"),
        Field("roll_rate", 64, "<f4", "rad/s"),
        Field("pitch_rate", 68, "<f4", "rad/s"),
        Field("yaw_rate", 72, "<f4", "rad/s"),
        Field("roll_acceleration", 76, "<f4", "rad/s^2"),
        Field("pitch_acceleration", 80, "<f4", "rad/s^2"),
        Field("yaw_acceleration", 84, "<f4", "rad/s^2"),
    ],
    {"magic": b"BNG1"},
)

GAUGES = Packet(
    "gauges",
    96,
    [
        Field("time", 0, "<u4", "ms"),
        Field("car", 4, "S4"),
        Field("flags", 8, "<u2"),
        Field("gear", 10, "|u1"),  # 0 reverse, 1 neutral, 2 first
        Field("player", 11, "|u1"),
        Field("speed", 12, "<f4", "m/s"),
        Field("engine_speed", 16, "<f4", "rpm"),
        Field("turbo", 20, "<f4", "bar"),
        Field("engine_temperature", 24, "<f4", "degC"),
        Field("fuel", 28, "<f4"),
        Field("oil_pressure", 32, "<f4", "bar"),
        Field("oil_temperature", 36, "<f4", "degC"),
        Field("dash_lights", 40, "<u4"),
        Field("show_lights", 44, "<u4"),
        Field("throttle", 48, "<f4"),
        Field("brake", 52, "<f4"),
        Field("clutch", 56, "<f4"),
        Field("display_1", 60, "S16"),
        Field("display_2", 76, "S16"),
        Field("id", 92, "<i4"),
    ],
    {"car": b"beam"},
)

_SAME = ("sway", "surge", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate")

STREAMS = {
    "motion": Stream(
        MOTION,
        (
            *map(Send, _SAME, _SAME),
            Send("up_x", "up_east"),
            Send("up_y", "up_north"),
            Send("up_z", "up_up"),
        ),
    ),
    "gauges": Stream(
        GAUGES,
        (Send("speed", "speed", absent=1.0), Send("engine_speed", "engine_speed", absent=0.0)),
        {"gear": 1},
    ),
}
"""What is sent, by the name of the endpoint in the profile's output table."""

_SIZES = {88: MOTION, 60: MOTION, 96: GAUGES, 92: GAUGES, 20: GAUGES}
_MAGIC = {"motion": (0, b"BNG1"), "gauges": (4, b"beam")}


def identify(data: bytes) -> Packet:
    """Return the layout of one datagram.

    DK itself needs 60 bytes of motion and 20 of gauges, and its own sample leaves the magic zero: the short forms, and
    zeros in place of the magic, are accepted.

    Raises
    ------
    PacketError
        If it is neither stream's.
    """
    packet = _SIZES.get(len(data))
    if packet is not None:
        start, magic = _MAGIC[packet.name]
        found = data[start : start + 4]
        if found in (magic, bytes(4)):
            return packet if found == magic and len(data) == packet.size else packet.cut(len(data))
    raise PacketError(
        f"dk: found {len(data)} bytes beginning {data[:8].hex(' ') or 'nowhere'}, allowed are motion (88 or 60 bytes, "
        f"'BNG1' or zeros at offset 0) and gauges (96, 92 or 20 bytes, 'beam' or zeros at offset 4)"
    )


def framed(data: bytes) -> list[bytes]:
    """Return the one packet that a datagram is."""
    return [data]
