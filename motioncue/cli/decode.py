"""``motioncue decode``: shows what is in a packet."""

import re
import sys
from pathlib import Path
from typing import Any

import click

from motioncue.cli.common import described, echo, naming_systems, packet_option, pick_options, print_json
from motioncue.errors import PacketError
from motioncue.recording.packages import LARGEST, SAID, Pick, Raw, contents, parse_recording, quoted


@click.command()
@click.argument("system", metavar="SYSTEM")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--hex", "digits", metavar="HEX", help="The bytes; spaces, colons and 0x are ignored.")
@packet_option
@pick_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a packet, one a line.")
def command(
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


naming_systems(command, "identify")


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
