"""The cipher of packets: what the receiving thread calls, and the object that owns its settings."""

from libc.stdint cimport uint8_t, uint32_t


cdef extern from "motioncue/wire/cipher.h" nogil:
    enum:
        MC_CIPHER_BYTES
    ctypedef struct mc_cipher:
        uint32_t key[8]
        uint32_t mask[2]
        int nonce[2]
        bint used
    uint32_t mc_cipher_word(const uint8_t* bytes)
    bint mc_cipher_apply(const mc_cipher* cipher, const uint8_t* packet, int size, uint8_t* out)


cdef class Cipher:
    cdef mc_cipher cipher
