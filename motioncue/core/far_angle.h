/* Reduction of angles beyond a million radians to less than a quarter of pi, after Payne and Hanek, in integer
   arithmetic. */
#ifndef MOTIONCUE_FAR_ANGLE_H
#define MOTIONCUE_FAR_ANGLE_H
#include <stdint.h>
#include <string.h>

/* Bits of 2 / pi, behind 64 zeros. */
static const uint64_t mc_two_by_pi[20] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

/* Return the multiple of half pi nearest to x, modulo 4, and fill the remainder as a sum: r + tail [rad].
 *
 * With x = m 2^e, only 192 bits of 2 / pi matter: higher ones make the product with m a multiple of 4, lower ones are
 * too small.  The double nearest to a multiple of half pi has 61 leading zeros, so more than 70 bits of the remainder
 * are right.
 */
static inline int64_t mc_reduce_far(double x, double *r, double *tail) {
    uint64_t bits, top, middle, carry = 0;
    uint32_t window[6], product[6] = {0, 0, 0, 0, 0, 0};
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) { /* infinite */
        *r = *tail = x - x;
        return 0;
    }
    const int first = exponent - 1075 + 62; /* bit of the table where the window begins */
    const uint32_t m[2] = {(uint32_t)bits, (uint32_t)(bits >> 32 & 0xfffff) | 0x100000};
    for (int i = 0; i < 3; i++) {
        const uint64_t *w = &mc_two_by_pi[first / 64 + i];
        const uint64_t part = first % 64 ? w[0] << first % 64 | w[1] >> (64 - first % 64) : w[0];
        window[5 - 2 * i] = (uint32_t)(part >> 32);
        window[4 - 2 * i] = (uint32_t)part;
    }
    for (int j = 0; j < 2; j++, carry = 0) {
        for (int i = 0; i + j < 6; i++) {
            carry += (uint64_t)m[j] * window[i] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
    }

    /* Two bits count quarter turns; the next one rounds their fraction to nearest, so the remainder may be negative. */
    int64_t quarters = product[5] >> 30;
    const uint64_t flip = product[5] >> 29 & 1 ? ~(uint64_t)0 : 0; /* all ones if negative: as good as minus */
    top = ((uint64_t)product[5] << 34 | (uint64_t)product[4] << 2 | product[3] >> 30) ^ flip;
    middle = ((uint64_t)product[3] << 34 | (uint64_t)product[2] << 2 | product[1] >> 30) ^ flip;
    quarters += (int64_t)(flip & 1);
    double unit = 0x1p-53;
    for (; !(top >> 63); top = top << 1 | middle >> 63, middle <<= 1) unit *= 0.5;
    const double high = (double)(int64_t)(top >> 11) * unit;
    const double low = (double)(int64_t)((top << 53 | middle >> 11) >> 1) * (unit * 0x1p-63);

    /* Multiply by half pi; the rounding error of the product comes from an exact product (Dekker). */
    const double a = 0x1.921fb5p+0, b = 0x1.110b46p-26, c = 0x1.1a62633145c07p-54; /* half pi: 25, 24 bits, the rest */
    double head = high * 0x1p27 + high;
    head -= head - high;
    const double base = high * (a + b);
    const double rest = (((head * a - base) + head * b) + (high - head) * a) + (high - head) * b + high * c + low * a;
    const double sum = base + rest;
    const int minus = (flip != 0) != (x < 0.0);
    *r = minus ? -sum : sum;
    *tail = minus ? -(rest - (sum - base)) : rest - (sum - base);
    return x < 0.0 ? -quarters : quarters;
}
#endif
