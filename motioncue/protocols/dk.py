"""DK (SIGMA INTEGRALE): two UDP streams in the layouts of BeamNG's MotionSim and OutGauge.

Layout: "BeamNG Telemetry Scheme", DK's document, for the offsets DK reads (speed 12 and engine speed 16 of the gauges;
sway 28, surge 32, heave 36, roll 52, pitch 56 of the motion).  Whole packets of `protocols.beamng` are sent, so that
every other BeamNG tool can read the streams too.  Signs are BeamNG's, which equal those of `Motion`.
DK limits motion below 0.89408 m/s, so a source without speed sends 1.0 m/s.  DK is not stable above 400 Hz.

Angles: DK's document does not say how it treats a jump from 180 to -180 degrees, so under a profile's bounds no angle
jumps.  Roll beyond a right angle is sent as the lean with the same sine (180 degrees less roll; on the left -180 less
roll): it passes through 0 where roll jumps, and tilts the seat to the side to which gravity pulls.  Pitch is within 90
degrees by definition; yaw takes the short way at its largest rate.  With ``limits = "none"`` roll and yaw are sent
unchanged, and jump.
"""

from collections.abc import Iterator

from motioncue.errors import PacketError
from motioncue.protocols.beamng import GAUGES, MOTION
from motioncue.protocols.layout import Packet, Send, Stream

__all__ = ["GAUGES", "MAX_RATE_HZ", "MOTION", "STREAMS", "framed", "identify"]

MAX_RATE_HZ = 400.0
"""The highest rate DK's document calls stable [Hz]."""

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
"""The packets sent, by the name of their endpoint in the profile's output table."""

_SIZES = {88: MOTION, 60: MOTION, 96: GAUGES, 92: GAUGES, 20: GAUGES}
_MAGIC = {"motion": (0, b"BNG1"), "gauges": (4, b"beam")}


def identify(data: bytes) -> Packet:
    """Return the layout of one datagram.

    DK itself needs 60 bytes of motion and 20 of gauges, and its own sample leaves the magic zero: the short forms, and
    zeros in place of the magic, are accepted.

    Raises
    ------
    PacketError
        If it belongs to neither stream.
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


def framed(data: bytes) -> Iterator[bytes]:
    """Yield the datagram itself, which is one packet."""
    yield data
