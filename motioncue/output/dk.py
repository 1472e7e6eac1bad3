"""DK (SIGMA INTEGRALE): two UDP streams in the layouts of BeamNG's MotionSim and OutGauge.

Layout: "BeamNG Telemetry Scheme", DK's document, for the offsets DK reads (speed 12 and engine speed 16 of the gauges;
sway 28, surge 32, heave 36, roll 52, pitch 56 of the motion).  Whole packets of `motionsim` are sent, so that
every other BeamNG tool can read the streams too.  Signs are BeamNG's, which equal those of `Motion`.
DK limits motion below 0.89408 m/s, so a source without speed sends 1.0 m/s.  DK is not stable above 400 Hz.

Angles: DK's document does not say how it treats a jump from 180 to -180 degrees, so under a profile's bounds no angle
jumps.  Roll beyond a right angle is sent as the lean with the same sine (180 degrees less roll; on the left -180 less
roll): it passes through 0 where roll jumps, and tilts the seat to the side to which gravity pulls.  Pitch is within 90
degrees by definition; yaw takes the short way at its largest rate.  With ``limits = "none"`` roll and yaw are sent
unchanged, and jump.
"""

from collections.abc import Iterator

from motioncue.wire import motionsim
from motioncue.wire.motionsim import GAUGES, MOTION
from motioncue.wire.packet import Packet, Send, Stream

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
        # A prediction leads below zero when the car stops.
        (Send("speed", "speed", absent=1.0, low=0.0), Send("engine_speed", "engine_speed", absent=0.0, low=0.0)),
        {"gear": 1},
    ),
}
"""The packets sent, by the name of their endpoint in the profile's output table."""


def identify(data: bytes) -> Packet:
    """Return the layout of one datagram.

    DK reads by offset: 60 bytes of motion and 20 of gauges are enough, more are accepted, and so are zeros in place of
    the magic, which DK's own sample leaves zero.
    """
    packet = motionsim.identify(data, "dk")
    return packet if packet.name in STREAMS else Packet(MOTION.name, packet.size, packet.fields.values())


def framed(data: bytes) -> Iterator[bytes]:
    """Yield the datagram itself, which is one packet."""
    yield data
