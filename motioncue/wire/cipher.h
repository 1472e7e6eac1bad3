/* Salsa20 with 20 rounds and a key of 32 bytes, for packets that carry their own nonce.

   D. J. Bernstein, "Salsa20 specification", 2005: quarterround (section 3), rows and columns (4, 5), expansion (9). */
#ifndef MOTIONCUE_CIPHER_H
#define MOTIONCUE_CIPHER_H

#include <stdint.h>
#include <string.h>

enum { MC_CIPHER_BYTES = 2048 }; /* largest packet that is deciphered */

typedef struct {
    uint32_t key[8];
    uint32_t mask[2]; /* combined with the nonce by exclusive or */
    int nonce[2];     /* offsets of the nonce's halves, which are not enciphered themselves */
    int used;
} mc_cipher;

static inline uint32_t mc_cipher_word(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint32_t mc_cipher_turned(uint32_t word, int bits) { return word << bits | word >> (32 - bits); }

static inline void mc_cipher_quarter(uint32_t *x, int a, int b, int c, int d) {
    x[b] ^= mc_cipher_turned(x[a] + x[d], 7);
    x[c] ^= mc_cipher_turned(x[b] + x[a], 9);
    x[d] ^= mc_cipher_turned(x[c] + x[b], 13);
    x[a] ^= mc_cipher_turned(x[d] + x[c], 18);
}

static inline void mc_cipher_salsa20(const uint32_t *key, const uint32_t *nonce, uint32_t block, uint32_t *out) {
    const uint32_t in[16] = {0x61707865, key[0],     key[1],   key[2], key[3], 0x3320646e, nonce[0], nonce[1],
                             block,      0,          0x79622d32, key[4], key[5], key[6],     key[7],   0x6b206574};
    int i;
    memcpy(out, in, sizeof in);
    for (i = 0; i < 10; i++) {
        mc_cipher_quarter(out, 0, 4, 8, 12);
        mc_cipher_quarter(out, 5, 9, 13, 1);
        mc_cipher_quarter(out, 10, 14, 2, 6);
        mc_cipher_quarter(out, 15, 3, 7, 11);
        mc_cipher_quarter(out, 0, 1, 2, 3);
        mc_cipher_quarter(out, 5, 6, 7, 4);
        mc_cipher_quarter(out, 10, 11, 8, 9);
        mc_cipher_quarter(out, 15, 12, 13, 14);
    }
    for (i = 0; i < 16; i++) out[i] += in[i];
}

/* Write the packet enciphered, or deciphered, to `out`, which may not be the packet; return 0 if its size allows
   neither.  The nonce stays as it is. */
static inline int mc_cipher_apply(const mc_cipher *c, const uint8_t *packet, int size, uint8_t *out) {
    uint32_t nonce[2], key[16];
    int i;
    if (size > MC_CIPHER_BYTES || size < c->nonce[0] + 4 || size < c->nonce[1] + 4) return 0;
    for (i = 0; i < 2; i++) nonce[i] = mc_cipher_word(packet + c->nonce[i]) ^ c->mask[i];
    for (i = 0; i < size; i++) {
        if (i % 64 == 0) mc_cipher_salsa20(c->key, nonce, (uint32_t)i / 64, key);
        out[i] = packet[i] ^ (uint8_t)(key[i % 64 / 4] >> i % 4 * 8);
    }
    for (i = 0; i < 2; i++) memcpy(out + c->nonce[i], packet + c->nonce[i], 4);
    return 1;
}

#endif
