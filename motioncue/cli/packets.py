"""``motioncue decode`` and ``send``: what is in a packet, and commands, which no other part of motioncue sends."""

import math
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from motioncue import sources
from motioncue.cli.common import (
    described,
    duration_option,
    echo,
    json_option,
    naming_systems,
    packet_option,
    pick_options,
    positive,
    print_json,
)
from motioncue.cli.operator_input import Interrupts
from motioncue.cli.terminal import print_summary
from motioncue.errors import PacketError
from motioncue.recording.packages import LARGEST, SAID, Pick, Raw, contents, parse_recording, quoted
from motioncue.transports.endpoint import open_sender, parse_endpoint
from motioncue.wire.commands import assigned
from motioncue.wire.packet import Packet


@click.command("decode")
@click.argument("system", metavar="SYSTEM")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--hex", "digits", metavar="HEX", help="The bytes; spaces, colons and 0x are ignored.")
@packet_option
@pick_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a packet, one a line.")
def decode(
    system: str,
    file: str | None,
    digits: str | None,
    packet: str | None,
    ports: tuple[int, ...],
    sender: str | None,
    as_json: bool,
) -> None:
    """Say what is in a packet: every field with its unit.

    SYSTEM is <systems>, or custom with --packet.
    FILE holds packets one after the other, or is a network capture; - is standard input.

    \b
    Example:  motioncue decode city-car-driving --hex "04 00 01 00"
    """
    module = described(system, packet)
    if (file is None) == (digits is None):
        raise click.UsageError("give either FILE or --hex HEX")
    data = _read(file) if file is not None else Raw(_bytes(digits or ""))
    name = system if file is None else f"{system}: {quoted(file)}"
    recording = parse_recording(data, name, system, module, Pick(ports, sender))
    packages = recording.packages
    if digits is not None and recording.unreadable:
        raise PacketError(f"{system}: {recording.unreadable[0]}")
    for line in recording.unreadable[:SAID]:
        click.echo(f"{quoted(file or '')}: {line}", err=True)
    for index, package in enumerate(packages):
        try:
            layout = module.identify(package)
            fields = layout.decode(package)
        except PacketError as error:
            where = f"packet {index}: " if len(packages) > 1 else ""
            where = where if file in (None, "-") else f"{quoted(file)}: {where}"
            raise PacketError(f"{where}{error}") from error
        if as_json:
            print_json({"system": system, "message": layout.name, "fields": fields})
        else:
            _print(system, layout, fields)


naming_systems(decode, "identify")


def _read(file: str) -> Raw | Path:
    if file != "-":
        return contents(file, file)
    data = sys.stdin.buffer.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise PacketError(f"-: found more than {LARGEST >> 20} MiB, allowed is up to that")
    return Raw(data)


def _bytes(digits: str) -> bytes:
    bare = re.sub(r"[\s:]|\b0[xX]", "", digits)
    try:
        return bytes.fromhex(bare)
    except ValueError as error:
        raise PacketError(f"--hex: found {digits!r}, allowed are pairs of hexadecimal digits") from error


def _print(system: str, packet: Any, fields: dict[str, Any]) -> None:
    echo(f"{system} {packet.name}, {packet.size} bytes")
    _print_fields(packet, fields, "  ")


def _print_fields(packet: Any, fields: dict[str, Any], indent: str) -> None:
    width = max(map(len, fields))
    for name, value in fields.items():
        slot = packet.fields[name].slot
        items = value if isinstance(value, list) else [value]
        if slot is None:
            unit, words = packet.fields[name].unit, packet.fields[name].words
            shown = "  ".join(f"{_plain(item)}{f' {words[item]}' if item in words else ''}" for item in items)
            echo(f"{indent}{name:<{width}}  {shown}{f' {unit}' if unit else ''}")
            continue
        for place, item in enumerate(items):
            which = f"{name}[{place}]" if isinstance(value, list) else name
            if any(slot.encode(item)):
                echo(f"{indent}{which}")
                _print_fields(slot, item, indent + "  ")
            else:
                echo(f"{indent}{which}  empty")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    return repr(value) if isinstance(value, str) else str(value)


@click.command("send")
@click.argument("system", metavar="SYSTEM")
@click.argument("message", metavar="[MESSAGE]", required=False)
@click.argument("assignments", metavar="[FIELD=VALUE]...", nargs=-1)
@click.option(
    "--to",
    "endpoints",
    metavar="ENDPOINT",
    multiple=True,
    help="Where the simulator listens; repeatable.",
)
@click.option(
    "--set",
    "conventions",
    metavar="KEY=VALUE",
    multiple=True,
    help="A convention of the simulator that is in doubt: for morai steering=left or auto=2; repeatable.",
)
@click.option("--id", "number", type=int, metavar="N", help="Number of the first command, if commands are numbered.")
@click.option("--rate", type=float, callback=positive, metavar="HZ", help="Commands per second; once if not given.")
@duration_option("How long, with --rate; until a signal if not given.")
@json_option
def send(
    system: str,
    message: str | None,
    assignments: tuple[str, ...],
    endpoints: tuple[str, ...],
    conventions: tuple[str, ...],
    number: int | None,
    rate: float | None,
    duration: float | None,
    as_json: bool,
) -> None:
    """Send a command to a simulator: it may move the car, so nothing else here does.

    SYSTEM is <systems>; without a MESSAGE the messages are listed, without --to its fields.
    FIELD may be slots[2].field; VALUE is JSON, or a text.  A field that is not given is zero, or stays unchanged.

    \b
    Example:  motioncue send morai turn_signal_lamp --to udp://:9097 turn_signal=1
    """
    if duration is not None and rate is None:
        raise click.UsageError("--duration is for --rate")
    if message is None:
        for name, layout in sources.commands(system).items():
            echo(f"{name}, {layout.size} bytes")
        return
    packet, counter = sources.command(system, message)
    if not endpoints:
        _explain(packet)
        raise click.UsageError("--to: missing, where the simulator listens")
    values = assigned(packet, assignments)
    sending = dict(each.partition("=")[::2] for each in conventions)
    if number is not None:
        if counter is None or counter in values:
            why = "commands are not numbered" if counter is None else f"{counter} is given already"
            raise click.UsageError(f"--id: {system}'s {why}" if counter is None else f"--id: {why}")
        values[counter] = number

    def composed(sent: int) -> bytes:
        """Return the bytes of the command after `sent` commands."""
        count = {counter: values[counter] + sent} if counter in values and sent else {}
        return sources.compose(system, message, {**values, **count}, sending)

    composed(0)  # refuse a bad command before anything is opened
    for url in endpoints:
        parse_endpoint(url, ("udp",), "--to")
    with Interrupts() as interrupts, ExitStack() as opened:
        senders = [open_sender(url) for url in endpoints]
        for sender, _ in senders:
            opened.callback(sender.close)
        start = time.monotonic()
        sent, lost = _send(senders, composed, rate, duration, interrupts)
        elapsed_s = time.monotonic() - start
    stats = {
        "system": system,
        "message": message,
        "size": packet.size,
        "packets_sent": sent,
        "lost": lost,
        "duration_s": elapsed_s,
    }
    rows = [
        ("to", ", ".join(endpoints)),
        ("packets out", f"{sent} of {packet.size} bytes in {elapsed_s:.1f} s"),
        ("lost", str(lost)),
    ]
    print_summary(f"motioncue send · {system}, {message}", rows)
    if as_json:
        print_json(stats)


naming_systems(send, "COMMANDS")


def _explain(packet: Packet) -> None:
    """Print a command's fields with units and ranges, including those of slots."""
    for name, field in packet.fields.items():
        if name in packet.constants:
            continue
        bounds = "" if field.low == -math.inf and field.high == math.inf else f"  {field.low:g} to {field.high:g}"
        if field.words:
            bounds = "  " + ", ".join(f"{number} {word}" for number, word in field.words.items())
        bounds += "  needed" if field.needed else ""
        bounds += f"  active with {field.when[0]} {field.when[1]} alone" if field.when is not None else ""
        echo(f"  {name}{f' [{field.unit}]' if field.unit else ''}{bounds}")
        if field.slot is not None:
            echo(f"    of slots with {', '.join(field.slot.fields)}")


def _send(
    senders: list[Any],
    composed: Callable[[int], bytes],
    rate_hz: float | None,
    duration_s: float | None,
    interrupts: Interrupts,
) -> tuple[int, int]:
    """Send on a time grid, or once without a rate; return how many were sent, and how many failed."""
    start, ticks, sent, lost = time.monotonic(), 0, 0, 0
    while True:
        data = composed(ticks)
        for sender, (host, port, scope) in senders:
            try:
                sender.sendto(data, (host, port, 0, scope) if ":" in host else (host, port))
            except OSError:
                lost += 1
            else:
                sent += 1
        ticks += 1
        # Half a command of tolerance, so that rounding does not change the number.
        if rate_hz is None or (duration_s is not None and ticks + 0.5 > duration_s * rate_hz):
            return sent, lost
        while (left := start + ticks / rate_hz - time.monotonic()) > 0.0:
            time.sleep(min(left, 0.05))
            if interrupts.count:
                return sent, lost
        if interrupts.count:
            return sent, lost
