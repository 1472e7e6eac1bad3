from typing_extensions import disjoint_base

__all__ = ["CHECKSUMS", "Seal"]

CHECKSUMS: dict[str, int]

@disjoint_base
class Seal:
    def __init__(
        self,
        counter: tuple[int, int] | None = None,
        checksum: tuple[str, int, int, int] | None = None,
        big: bool = False,
    ) -> None: ...
    def sealed(self, packet: bytes | bytearray | memoryview) -> bytes: ...
