"""The settings of a cipher; the header has the cipher itself."""

from libc.stdint cimport uint8_t

__all__ = ["CIPHER_BYTES", "Cipher"]

CIPHER_BYTES = MC_CIPHER_BYTES
"""Largest packet that is deciphered [bytes]."""


cdef class Cipher:
    """Salsa20 for packets that carry their nonce.

    Notes
    -----
    The nonce itself is not enciphered.  Real time: `mc_cipher_apply` allocates nothing and cannot fail; about 5 ns a byte.

    References
    ----------
    D. J. Bernstein, "Salsa20 specification", 2005.

    Units: `nonce` [bytes].
    """

    def __init__(self, bytes key not None, nonce, bytes mask not None=bytes(8)):
        cdef int i
        if len(key) != 32 or len(mask) != 8:
            raise ValueError(f"found a key of {len(key)} bytes and a mask of {len(mask)}, allowed are 32 and 8")
        for i in range(8):
            self.cipher.key[i] = mc_cipher_word(<const uint8_t*>key + 4 * i)
        for i in range(2):
            self.cipher.mask[i] = mc_cipher_word(<const uint8_t*>mask + 4 * i)
            self.cipher.nonce[i] = nonce[i]
            if not 0 <= self.cipher.nonce[i] <= MC_CIPHER_BYTES - 4:
                raise ValueError(f"found the nonce at {nonce[i]}, allowed are 0 to {MC_CIPHER_BYTES - 4}")
        self.cipher.used = True

    def applied(self, bytes packet not None):
        """Return the packet deciphered, or a deciphered one enciphered.

        A packet whose size allows neither is returned unchanged.
        """
        cdef uint8_t out[MC_CIPHER_BYTES]
        if not mc_cipher_apply(&self.cipher, <const uint8_t*>packet, <int>min(len(packet), MC_CIPHER_BYTES + 1), out):
            return packet
        return out[:len(packet)]
