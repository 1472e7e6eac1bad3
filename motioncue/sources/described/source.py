"""A simulator without built-in support: its packet is described by the profile's ``[source.packet]``.

A description becomes the tables that a built-in module gives to the intake: messages with takes, stages, body stage.
Its axes and signs are converted here and nowhere else:

* The telemetry's world axes are the direction of yaw 0, right of it, down.  Its car axes are forward, right, down; or,
  if the attitude is a quaternion, the source's own axes named as in the world, so that its elements only change sign.
* A turn about z takes x to y, in left-handed axes too; so if the source's axes are left-handed, turns change sign.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from motioncue.errors import ConfigError, PacketError
from motioncue.frames.convert import BodyStage, TelemetryStages
from motioncue.frames.intake import Intake
from motioncue.sources.described.channels import CHANNELS, KEY, checked
from motioncue.sources.described.forms import (
    axes_of,
    cipher_of,
    forms_of,
    gather_of,
    heartbeat_of,
    refuse_always_paused,
    reply_of,
)
from motioncue.wire.description import SourceField, SourcePacket
from motioncue.wire.packet import NATIVE, UNFRAGMENTED, Derivation, Packet

AS_DESCRIBED = "as_described"

SIGNED = ("angles", "velocity", "acceleration", "angular_velocity")
"""Vectors whose elements may be tried with the opposite sign."""

MESSAGES = 128
"""Most packets that an intake distinguishes."""


class DescribedSource:
    """A source that a profile describes; used as the module of a built-in one."""

    VELOCITY_IN_CAR = True  # unless the option `velocity` says otherwise

    def __init__(
        self,
        table: SourcePacket,
        name: str = "custom",
        options: Mapping[str, Any] | None = None,
        derivation: Derivation = NATIVE,
    ) -> None:
        self.table, self.name = table, name
        self.options, self.derivation = dict(options or {}), derivation
        self.channels = checked(table)
        self.axes = axes_of(table, self.channels)
        self.forms = tuple(forms_of(table, self.axes))
        refuse_always_paused(table)
        self._reply = reply_of(table)
        self._heartbeat = heartbeat_of(table)
        self.gather = gather_of(table, self.is_plausible)
        self.SCHEMES = ("udp",) if self.gather is None else ("memory",)
        self._cipher = cipher_of(table, [form.packet.size for form in self.forms])
        if len(self.forms) > MESSAGES:
            raise ConfigError(f"{KEY}: found {len(self.forms)} forms, blocks and sizes, allowed are {MESSAGES}")

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    @cached_property
    def Options(self) -> type[msgspec.Struct]:
        """Readings to try instead of the described ones, the defaults: axes, gravity, signs of channels."""
        fields = [(name, Literal[values], values[0]) for name, values in self._readings().items()]
        return msgspec.defstruct("Options", fields, forbid_unknown_fields=True, frozen=True)

    def _readings(self) -> dict[str, tuple[str, ...]]:
        """Return the values of each option that make a description, the described one first."""
        table, vectors = self.table, self._vectors
        tried: dict[str, tuple[str, ...]] = {
            "velocity": ("world", "car") if "velocity" in vectors else (),
            "acceleration": ("world", "car") if "acceleration_x" in self.channels else (),
            "rates": ("car", "world", "angles", "derived") if "angular_velocity" in vectors else (),
            "gravity": ("excluded", "included") if "acceleration" in vectors else (),
        }
        out = {}
        for name, values in tried.items():
            now = getattr(table, name)
            possible = (now, *(value for value in values if value != now and self._possible({name: value})))
            if possible[1:]:
                out[name] = possible
        signed = (
            name
            for name, channel in ((name, CHANNELS[name]) for name in self.channels)
            if channel.along or channel.vector in SIGNED or name == "quaternion_w"  # the opposite is the inverse turn
        )
        return out | dict.fromkeys(signed, (AS_DESCRIBED, "opposite"))

    def _possible(self, options: Mapping[str, str]) -> bool:
        try:
            DescribedSource(self._read(options))
        except ConfigError:
            return False
        return True

    def _read(self, options: Mapping[str, str]) -> SourcePacket:
        """Return the description with other readings."""
        table = self.table
        axes = {name: value for name, value in options.items() if hasattr(table, name) and value != "derived"}
        turned = {name for name, value in options.items() if value == "opposite"}
        derived = options.get("rates") == "derived"

        def read(fields: Iterable[SourceField]) -> tuple[SourceField, ...]:
            return tuple(
                msgspec.structs.replace(field, scale=-field.scale, bias=-field.bias)
                if field.channel in turned
                else field
                for field in fields
                if not (derived and field.channel and CHANNELS[field.channel].vector.startswith("angular_"))
            )

        forms = tuple(msgspec.structs.replace(form, fields=read(form.fields)) for form in table.forms)
        return msgspec.structs.replace(table, fields=read(table.fields), forms=forms, **axes)

    @cached_property
    def VECTORS(self) -> list[set[str]]:
        """The options that turn the elements of one vector."""
        return [{name for name in self.channels if CHANNELS[name].vector == vector} for vector in SIGNED]

    @property
    def RATES_DERIVED(self) -> bool:
        """Whether the rates are derived from the attitude."""
        return "angular_velocity" not in self._vectors

    @cached_property
    def _vectors(self) -> set[str]:
        return {CHANNELS[name].vector for name in self.channels}

    def intake(
        self, options: Any = None, head_m: Sequence[float] = (0.0, 0.0, 0.0), derivation: Derivation = NATIVE
    ) -> Intake:
        """Return an intake for the described packets."""
        said = {} if options is None else msgspec.structs.asdict(options)
        now = {
            name: value for name, value in said.items() if value not in (AS_DESCRIBED, getattr(self.table, name, None))
        }
        if now:
            return DescribedSource(self._read(now), self.name).intake(None, head_m, derivation)
        table, axes = self.table, self.axes
        car = axes.car_directions
        rates_in_car = self.RATES_DERIVED or table.rates != "world"
        stage = BodyStage(
            world_north=axes.north,
            world_up=(0, 0, -1),
            car_forward=car[:, 0].tolist(),
            car_up=(-car[:, 2]).tolist(),
            head_m=head_m,
            rates="car" if rates_in_car else "world",
            gravity=table.gravity,
        )
        native = "acceleration" in self._vectors and derivation.acceleration == "native"
        stages = TelemetryStages(
            attitude=_attitude(self.channels),
            order=table.order,
            velocity=table.velocity,
            acceleration_axes="car" if _acceleration_in_car(table, self.channels) else "world",
            rates="angles" if table.rates == "angles" and not self.RATES_DERIVED else "said",
            acceleration="native" if native else "from_velocity",
            delay_s=derivation.delay_s,
            same=("orientation", "up" if "forward" in self._vectors else "angular_acceleration"),
        )
        return Intake(
            [form.compiled(*self._reply) for form in self.forms],
            stage,
            stages,
            reply_port=0 if table.reply is None else table.reply.port,
            cipher=self._cipher,
            heartbeat=self._heartbeat,
            gather=self.gather,
        )

    def is_plausible(self, data: bytes) -> bool:
        """Say whether a packet is one of the motion and every number in it, used or not, is within its limit.

        What wheels and cab do may be no number: a car may lack it.
        """
        form = next((form for form in self.forms if form.fits(data)), None)
        if form is None or form.role != "motion":
            return False
        values = form.packet.decode(data)
        optional = {take.field for take in form.takes if take.telemetry == "chassis"}
        return all(
            abs(values[name]) <= field.limit or (name in optional and values[name] != values[name])
            for name, field in form.packet.fields.items()
            if not isinstance(values[name], (bytes, str))
        )

    def plain(self, data: bytes) -> bytes:
        """Return a packet deciphered, or a deciphered one enciphered; unchanged if the source has no cipher."""
        return data if self._cipher is None else self._cipher.applied(data)

    def is_motion(self, data: bytes) -> bool:
        """Say whether a packet carries the motion."""
        plain = self.plain(data)
        return any(form.role == "motion" and form.fits(plain) for form in self.forms)

    def framed(self, data: bytes) -> Iterator[bytes]:
        """Split concatenated datagrams by the sizes of the packets that fit."""
        start = 0
        sizes = sorted({size for form in self.forms for size in (form.packet.size,)}, reverse=True)
        even = [size for size in sizes if len(data) % size == 0 and self._all_fit(data, size)]
        if not even and len(data) <= UNFRAGMENTED and self._is_beside(data):
            yield data  # a form that may be longer has no end of its own
            return
        while start < len(data):
            here = [size for size in even[:1] or sizes if self._fits(data[start : start + size], size)]
            ends = (start + size for size in here)
            end = next((end for end in ends if end == len(data) or self._starts(data, end, sizes)), None)
            if end is None and not here:
                found = data[start : start + 16].hex(" ")
                raise PacketError(
                    f"{self.name}: found {found} at offset {start}, {len(data) - start} bytes before the end; "
                    f"allowed are {self._allowed()}"
                )
            end = start + here[0] if end is None else end
            yield data[start:end]
            start = end

    def _is_beside(self, data: bytes) -> bool:
        form = next((form for form in self.forms if form.fits(self.plain(data))), None)
        return form is not None and (form.role == "other" or (form.role == "part" and form.largest > form.packet.size))

    def _all_fit(self, data: bytes, size: int) -> bool:
        return all(self._fits(data[start : start + size], size) for start in range(0, len(data), size))

    def _starts(self, data: bytes, start: int, sizes: Iterable[int]) -> bool:
        return any(self._fits(data[start : start + size], size) for size in sizes)

    def _fits(self, package: bytes, size: int) -> bool:
        if len(package) != size:
            return False
        plain = self.plain(package)
        # Of a form that may be longer, its least size: what is behind that has no end of its own.
        return any(form.packet.size == size and form.fits(plain) for form in self.forms)

    def _allowed(self) -> str:
        shown = {
            f"{form.packet.name} ({form.packet.size}{'' if form.largest == form.packet.size else ' or more'} bytes"
            + "".join(f", {data.hex(' ')} at {at}" for at, data in form.packet.fixed()[:2])
            + "".join(f", bits {mask.hex(' ')} {data.hex(' ')} at {at}" for at, data, mask in form.masked[:2])
            + ")": None
            for form in self.forms
        }
        names = list(shown)
        return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")

    def identify(self, data: bytes) -> Packet:
        """Return the layout of one datagram."""
        plain = self.plain(data)
        for form in self.forms:
            if form.fits(plain):
                packet = form.packet
                if packet.size == len(data) and self._cipher is None:
                    return packet
                return _Read(self, packet.name, len(data), packet.fields.values(), packet.constants)
        raise PacketError(
            f"{self.name}: found {len(data)} bytes beginning {data[:8].hex(' ') or 'nowhere'}, allowed are "
            f"{self._allowed()}"
        )


class _Read(Packet):
    """A packet as it came: longer than described, or enciphered."""

    def __init__(self, source: DescribedSource, *of: Any) -> None:
        self._source = source
        super().__init__(*of)

    def decode(self, data: bytes) -> dict[str, Any]:
        return super().decode(self._source.plain(data))


def _attitude(channels: Mapping[str, SourceField]) -> str:
    """Return the attitude's name in `TelemetryStages`."""
    if "quaternion_w" in channels:
        return "quaternion"
    if "forward_x" in channels:
        return "forward_right" if "right_x" in channels else "forward_up"
    return "angles"


def _acceleration_in_car(table: SourcePacket, channels: Mapping[str, SourceField]) -> bool:
    return "acceleration_x" not in channels or table.acceleration == "car"
