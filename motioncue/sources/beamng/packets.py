"""BeamNG.drive: MotionSim and OutGauge by UDP, to one port or two, and the short forms that DK reads.

The layouts are in `motionsim`.  Signs are `Motion`'s:

* World: X east, Y north, Z up; position and velocity.  Acceleration: car axes right, forward, up, gravity excluded.
* Roll right side down, pitch nose up, yaw as a compass: turns about the car's forward, right and down axes.
* Rates and angular accelerations: of those angles, unless set otherwise.
* The short forms and those without a mark carry acceleration, roll and pitch only: rates are derived from the attitude,
  and the speed is OutGauge's, or unknown.  In the other forms it is the velocity's, because OutGauge's is the wheels'.
* Packets carry no time: frames are timed as they arrive.  Nothing is sent while the game is paused.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from motioncue.frames.intake import Intake, datagram_intake
from motioncue.wire.motionsim import FORMS
from motioncue.wire.motionsim import GAUGES as GAUGES
from motioncue.wire.motionsim import MOTION as MOTION
from motioncue.wire.motionsim import MOTION_2 as MOTION_2
from motioncue.wire.motionsim import framed as framed
from motioncue.wire.motionsim import identify as identify
from motioncue.wire.motionsim import is_certain as is_certain
from motioncue.wire.packet import NATIVE, Derivation, Message, Take

SCHEMES = ("udp",)
"""Transports that the simulator uses."""

# The telemetry's world axes are north, east, down, its car axes forward, right, down.
_SHORT = [
    Take("acceleration", 0, "surge"),
    Take("acceleration", 1, "sway"),
    Take("acceleration", 2, "heave", scale=-1.0),
    Take("angles", 0, "roll"),
    Take("angles", 1, "pitch"),
]
_WHOLE = [
    *_SHORT,
    Take("angles", 2, "yaw"),
    Take("position", 0, "position_y"),
    Take("position", 1, "position_x"),
    Take("position", 2, "position_z", scale=-1.0),
    Take("velocity", 0, "velocity_y"),
    Take("velocity", 1, "velocity_x"),
    Take("velocity", 2, "velocity_z", scale=-1.0),
]
_RATES = [
    Take("angular_velocity", 0, "roll_rate"),
    Take("angular_velocity", 1, "pitch_rate"),
    Take("angular_velocity", 2, "yaw_rate"),
    Take("angular_acceleration", 0, "roll_acceleration"),
    Take("angular_acceleration", 1, "pitch_acceleration"),
    Take("angular_acceleration", 2, "yaw_acceleration"),
]
_GAUGES = [
    Take("speed", 0, "speed", optional=True),
    Take("engine_speed", 0, "engine_speed", optional=True),
]


class Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Readings that the documents leave open."""

    rates: Literal["angles", "car", "derived"] = "angles"
    """Meaning of the angular velocity: rates of roll, pitch and yaw, rates about the car's axes, or ignored in favor
    of rates derived from the attitude."""
    acceleration_order: Literal["sway_surge", "surge_sway"] = "sway_surge"
    """What offsets 28 and 32 hold: sway and surge, as in BeamNG's packets, or as DK's sample in C# reads and sends."""


def intake(options: Options, head_m: Sequence[float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE) -> Intake:
    """Return an intake for BeamNG's datagrams."""
    takes: dict[str, Sequence[Take]] = {
        "whole": _WHOLE if options.rates == "derived" else _WHOLE + _RATES,
        "short": _SHORT,
        "gauges": _GAUGES,
    }
    if options.acceleration_order == "surge_sway":
        swapped = {"surge": "sway", "sway": "surge"}
        takes = {
            kind: [take._replace(field=swapped.get(take.field, take.field)) for take in taken]
            for kind, taken in takes.items()
        }
    messages = [
        Message(form.packet, "part" if form.kind == "gauges" else "motion", takes[form.kind], largest=form.largest)
        for form in FORMS
    ]
    compiled = (message.compiled() for message in messages)
    rates = "said" if options.rates == "car" else options.rates
    return datagram_intake(compiled, head_m, derivation, attitude="angles", rates=rates)
