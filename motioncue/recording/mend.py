"""A file that its writer did not end, or that is damaged, written anew: whole, with an index."""

from pathlib import Path
from typing import NamedTuple

from mcap.writer import CompressionType, Writer

from motioncue.errors import ConfigError, PacketError
from motioncue.recording.atomic_file import write_whole
from motioncue.recording.mcap_reader import McapFile
from motioncue.recording.packages import quoted

__all__ = ["Mended", "mend"]


class Mended(NamedTuple):
    """What has been mended."""

    path: Path
    messages: int
    ended: bool
    """Whether the file had its end."""
    damage: tuple[str, ...]
    """What could not be read."""


def mend(path: str | Path, to: str | Path, *, force: bool = False) -> Mended:
    """Write what can be read of an MCAP file, of any software, to a file that is whole."""
    file, to = McapFile(path), Path(to)
    if file.empty:
        raise PacketError(f"recording {quoted(path)}: found no message that can be read")
    count = 0

    def write(part: Path) -> None:
        nonlocal count
        with part.open("wb") as out:
            writer = Writer(out, compression=CompressionType.ZSTD)
            writer.start(profile=file.profile, library="motioncue mend")
            schemas = {number: writer.register_schema(*schema) for number, schema in file.schemas.items()}
            channels = {
                number: writer.register_channel(topic, encoding, schemas.get(schema, 0))
                for number, (topic, encoding, schema) in file.topics.items()
            }
            for channel, sequence, logged, published, payload in file.messages():
                if channel in channels:  # else nothing says what it is
                    writer.add_message(channels[channel], logged, payload, published, sequence)
                    count += 1
            for name, values in file.metadata.items():
                writer.add_metadata(name, values)
            writer.finish()

    try:
        written = write_whole(to, write, force=force)
    except OSError as error:
        raise ConfigError(f"{quoted(to)}: cannot be written: {error.strerror or error}") from error
    return Mended(written, count, file.ended, file.damage.texts())
