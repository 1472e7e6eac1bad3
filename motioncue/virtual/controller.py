"""A controller in software, in front of drives in software: it homes, engages, stops, and answers as its packet says.

It stands for firmware that nobody here has: what its packet's table describes it keeps to the byte, and how it behaves
is that of `Firmware`, which is this project's own idea of such devices.
"""

import contextlib
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from motioncue.errors import ConfigError
from motioncue.output.packet import checked_text, checksum_of, pieces_of
from motioncue.platforms.build import build, channels_of
from motioncue.platforms.servo import Servos
from motioncue.platforms.settings import ActuatorBounds
from motioncue.profile.profile import Profile
from motioncue.virtual.platform_twin import (
    Array,
    Decoder,
    Drive,
    PlatformListener,
    actuators_not_sent,
    drive_of,
    grid_hz,
    place_of,
)
from motioncue.wire.checksum import Seal
from motioncue.wire.description import Actuated, PacketTable, ReplyTable, ReplyValue, Value


class Firmware(NamedTuple):
    """How a controller in front of the drives behaves."""

    homing_s: float = 1.0
    """Least time from power on, with the way to its lowest ends, until it follows [s]."""
    enable_s: float = 0.2
    """From the release of its emergency stop, the end of homing, or being asked to engage, until it follows [s]."""
    homes_again: bool = False
    """Whether it homes after an emergency stop as after power on, instead of following from where it is."""
    brake: float = 10.0
    """Deceleration at an emergency stop [m/s^2 or rad/s^2]."""
    sag: float = 0.0
    """Speed at which drives without power go down [m/s or rad/s]."""
    noise: float = 0.0
    """Half width of the noise of replied positions, as a share of the range."""
    reply_s: float = 0.02
    """From one reply to the next over a line, if it is not asked for them [s]."""


HOMING = 0.8  # speed of homing, as a share of what an actuator is made for
TRAVEL = {"m": (-0.3, 0.3), "rad": (-0.4, 0.4)}  # of a pose's channels for which the packet has no bounds
QUICK_S = 0.5  # to go from end to end of such a channel, and to reach that speed
POSES = {
    **dict.fromkeys(("surge_displacement", "sway_displacement", "heave_displacement"), "m"),
    **dict.fromkeys(("roll", "pitch", "yaw"), "rad"),
}
REST = ("offline", "fault")  # states of a packet in which it is asked to be at rest


class Controller:
    """A controller in software.

    One packet is one tick.  A packet without actuators carries a pose: then each of its channels is a drive.  Where the
    packet says the state that is asked for and replies say whether it is engaged, it engages when it is asked to, and
    goes to rest when it is asked to; else it follows whenever it can.
    """

    def __init__(
        self,
        profile: Profile,
        firmware: Firmware | None = None,
        drive: Drive | None = None,
        seed: int = 0,
        servos: Servos | None = None,
    ) -> None:
        firmware = firmware or Firmware()
        table = profile.outputs[0].packet
        if table is None:
            raise ConfigError(f"{profile.name}: found no [output.packet]")
        self._actuators, bounds = _drives_of(profile, table)
        self._decoder, self._replies = Decoder(table, self._actuators), table.reply
        self._table = table
        asks = any(each.channel == "engaged" for reply in table.reply for each in _numbers(reply))
        self._waits = table.state is not None and asks
        self.asked = not self._waits
        """Whether it is asked to engage."""
        self._dt = 1.0 / grid_hz(profile)
        if drive is None:
            drive = Drive() if profile.platform is None else drive_of(profile.platform)
        self._servos = Servos(bounds, self._dt, *drive) if servos is None else servos
        self._bounds = ActuatorBounds.columns(bounds)
        self._firmware, self._random = firmware, np.random.default_rng(seed)
        self._rest = np.zeros(len(bounds))
        for axis, each in enumerate(self._actuators.values(), 1):
            self._rest[place_of(each, axis)] = each.neutral
        self.places: Array = self._rest.copy()
        """Where the drives are [m or rad]; they begin anywhere."""
        self._moves = np.zeros(len(self.places))
        self.fault = False
        self.pressed = False
        self.follows = False
        self._homes, self._left_s = True, firmware.homing_s

    def tick(self, packet: bytes | None) -> None:
        """Move the drives by a tick; `packet` is what has come, None if nothing has."""
        before, dt = self.places, self._dt
        if packet is not None and self._waits:
            self._look_at_state(packet)
        if self.pressed or self.fault:
            self.disable()
            self._moves -= np.clip(self._moves, -self._firmware.brake * dt**2, self._firmware.brake * dt**2)
            rest = self._moves == 0.0
            self.places = np.maximum(before + self._moves - self._firmware.sag * dt * rest, self._bounds.low)
        elif not self.follows:
            self._recover(before)
        elif packet is not None:
            self.places = self._servos.process(self._decoder.positions(packet))[0]
        self._moves = self.places - before

    def _look_at_state(self, packet: bytes) -> None:
        """Find out what the packet asks for; one that is asked to rest does not follow any more."""
        assert self._table.state is not None
        number = self._decoder.described.identify(packet).decode(packet)["state"]
        self.asked = number not in [getattr(self._table.state, name) for name in REST]
        if self.follows and not self.asked:
            self.disable()

    def _recover(self, before: Array) -> None:
        """Home, or wait for its drives; then follow, if it is asked to."""
        dt = self._dt
        self._left_s -= dt * (self.asked or self._homes)
        if self._homes or not self.asked:
            goal = self._rest if self._waits else self._bounds.low
            most = HOMING * self._bounds.speed * dt
            self.places = before + np.clip(goal - before, -most, most)
            if (self.places != before).any():  # it is enabled when it rests there
                self._left_s = max(self._left_s, self._firmware.enable_s)
        if self._left_s <= 0.0 and not self.asked:
            self._homes, self._left_s = False, self._firmware.enable_s
        elif self._left_s <= 0.0:
            self.follows, self._homes = True, False
            self._servos.reset()
            self._servos.process(self.places[None])  # the drives begin here

    def disable(self) -> None:
        """Let the drives stop following; they are enabled again as the firmware does."""
        self.follows = False
        self._homes = self._homes or self._firmware.homes_again
        self._left_s = self._firmware.homing_s if self._homes else self._firmware.enable_s

    @property
    def bounds(self) -> Any:
        """What the drives can do, an `ActuatorBounds` of arrays."""
        return self._bounds

    @property
    def firmware(self) -> Firmware:
        """How it behaves."""
        return self._firmware

    def replies(self) -> list[bytes]:
        """Return what it answers now, a packet for each reply that is described."""
        return [self._reply(table) for table in self._replies]

    def _says(self) -> dict[str, bool]:
        stopped = self.fault or self.pressed
        return {
            "ready": (not self._homes and not stopped) if self._waits else self.follows,
            "engaged": self.follows,
            "fault": self.fault,
            "emergency_stop": self.pressed,
            "moving": bool(self._moves.any()),
        }

    def _reply(self, table: ReplyTable) -> bytes:
        return self._text(table, table.text) if table.text is not None else self._binary(table)

    def _binary(self, table: ReplyTable) -> bytes:
        says = self._says()
        packet = bytearray(table.size or 0)
        for constant in table.constants:
            data = bytes.fromhex(constant.bytes)
            packet[constant.offset : constant.offset + len(data)] = data
        for field in table.fields:
            order = {"little": "<", "big": ">"}[field.byte_order or table.byte_order]
            dtype = np.dtype(order + field.type)
            same = [other for other in table.fields if (other.offset, other.type) == (field.offset, field.type)]
            number = _number_for(same, says) if field.channel in says else self._measured(field)
            if dtype.kind != "f":
                number = min(max(round(number), np.iinfo(dtype).min), np.iinfo(dtype).max)
            packet[field.offset : field.offset + dtype.itemsize] = np.array(number, dtype).tobytes()
        checksum = checksum_of(table)
        if table.length is not None and checksum is not None:  # zeros at the payload's end are left out
            end = max(len(packet[: checksum.offset].rstrip(b"\0")), table.length.first + 1)
            packet[table.length.offset] = end - table.length.first
            packet = packet[:end] + packet[checksum.offset :]
            checksum = checksum._replace(offset=end, end=end)
        return bytes(packet) if checksum is None else Seal(None, checksum).sealed(bytes(packet))

    def _text(self, table: ReplyTable, text: str) -> bytes:
        says, (literal, inserted) = self._says(), pieces_of(text)
        checked = checked_text(table, literal, inserted)[1]
        data, at = b"", 0
        for each in inserted:
            value = table.values.get(each.name) or ReplyValue(channel=each.name)
            if each.hexadecimal:
                number = "0" * int(each.hexadecimal[0])
            elif value.channel in says:
                number = f"{_number_for([value], says):.0f}"
            else:
                number = f"{self._measured(value):.6f}"
            data += literal[at : each.at] + number.encode()
            at = each.at
        data += literal[at:]
        return data if checked is None else Seal(None, checked).sealed(data)

    def _measured(self, value: ReplyValue) -> float:
        """Return the number for a position, or for a temperature of 40 degrees."""
        if value.channel == "temperature":
            return 40.0 * value.scale + value.bias
        names = list(self._actuators)
        name = {f"actuator_{axis}": name for axis, name in enumerate(names, 1)}.get(value.channel, value.channel)
        if name not in names:
            return 0.0
        actuator = self._actuators[name]
        span = actuator.high - actuator.low
        position = self.places[place_of(actuator, names.index(name) + 1)]
        position += self._firmware.noise * span * self._random.uniform(-1.0, 1.0)
        position = actuator.sign * position + actuator.shift  # as the controller's own axis has it
        measure = {
            "position": position,
            "stroke": position - actuator.neutral,
            "share": (position - actuator.low) / span,
        }[value.measure]
        return float(measure) * value.scale * self._table.scale + value.bias


def _drives_of(profile: Profile, table: PacketTable) -> tuple[dict[str, Actuated], list[ActuatorBounds]]:
    """Return the drives by the name of their channel, and what each can do: actuators, or channels of the pose."""
    if profile.platform is not None:
        actuators = channels_of(profile.platform)
        if not actuators_not_sent(table, actuators):
            return actuators, list(build(profile.platform).bounds)
    drives, bounds = {}, []
    for value in (*table.fields, *table.values.values()):
        name = value.channel or ""
        if name not in POSES or not value.scale:
            continue
        low, high = (_end(value, table, which) for which in range(2))
        low, high = min(low, high), max(low, high)
        drives[name] = Actuated(name, min(max(0.0, low), high), low, high)
        speed = (high - low) / QUICK_S
        bounds.append(ActuatorBounds(low, high, speed, speed / QUICK_S))
    if not drives:
        raise ConfigError(
            "output.packet: found neither every actuator nor channels of the pose, for a virtual platform"
        )
    return drives, bounds


def _end(value: Value, table: PacketTable, which: int) -> float:
    """Return where a channel of the pose ends [m or rad]."""
    number = (value.min, value.max)[which]
    if number is None:
        return TRAVEL[POSES[str(value.channel)]][which]
    return (number - value.bias) / (value.scale * table.scale)


def _numbers(table: ReplyTable) -> Sequence[ReplyValue]:
    """Return what the numbers of a reply say."""
    return (*table.fields, *table.values.values())


def _number_for(values: Sequence[ReplyValue], says: Mapping[str, bool]) -> float:
    """Return the smallest number from which all of these are taken as what is said."""
    for number in range(1 << 16):
        for value in values:
            bits = number & (0xFFFFFFFF if value.mask is None else value.mask)
            if (bits in value.among if value.among else bits != 0) != says[value.channel]:
                break
        else:
            return number
    raise ConfigError(f"output.packet.reply: found no number that says {dict(says)}")


class ControllerListener(PlatformListener):
    """A virtual platform behind a controller that answers each packet of its motion, to where it came from."""

    def __init__(self, profile: Profile, urls: Iterable[str], drive: Drive | None = None) -> None:
        super().__init__(profile, urls, drive)
        self.controller = Controller(profile, servos=self.platform.servos)
        self.answers_to: tuple[str, int] | None = None
        """Where it answers to before anything has come, as firmware does that is told so."""

    def _follow(self, sent: Array, data: bytes) -> Array:
        """Return where the drives are a tick later, if the controller follows."""
        self.controller.tick(data)
        return self.controller.places[None]

    def take(self, data: bytes, now_ns: int, sender: str = "") -> None:
        """Take one datagram that arrived at `now_ns`, and answer it."""
        super().take(data, now_ns, sender)
        host, _, port = sender.rpartition(":")
        if port:
            self._answer((host, int(port)))

    def _receive(self, timeout_s: float) -> bool:
        """Take what has come, and answer also if nothing has."""
        came = super()._receive(min(timeout_s, self.controller.firmware.reply_s))
        if not came and self.answers_to is not None:
            self.controller.tick(None)
            self._answer(self.answers_to)
        return came

    def _answer(self, to: tuple[str, int]) -> None:
        for reply in self.controller.replies():
            with contextlib.suppress(OSError):
                listening = self._sockets[0]
                assert isinstance(listening, socket.socket)
                listening.sendto(reply, to)
