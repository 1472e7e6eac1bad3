from collections.abc import Sequence

from typing_extensions import disjoint_base

__all__ = ["CIPHER_BYTES", "Cipher"]

CIPHER_BYTES: int

@disjoint_base
class Cipher:
    def __init__(self, key: bytes, nonce: Sequence[int], mask: bytes = ...) -> None: ...
    def applied(self, packet: bytes) -> bytes: ...
