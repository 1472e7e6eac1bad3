/* Flush denormals to zero on the calling thread, since filters that decay into denormals would slow down. */
#ifndef MOTIONCUE_FPU_H
#define MOTIONCUE_FPU_H
#include <stdint.h>
#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
static inline uint64_t mc_flush_denormals(void) {
    uint64_t before = _mm_getcsr();
    _mm_setcsr((unsigned)before | 0x8040u); /* flush to zero, denormals are zero */
    return before;
}
static inline void mc_restore_fpu(uint64_t before) { _mm_setcsr((unsigned)before); }
#elif defined(__aarch64__)
static inline uint64_t mc_flush_denormals(void) {
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" ::"r"(before | (1ull << 24)));
    return before;
}
static inline void mc_restore_fpu(uint64_t before) { __asm__ volatile("msr fpcr, %0" ::"r"(before)); }
#else
static inline uint64_t mc_flush_denormals(void) { return 0; }
static inline void mc_restore_fpu(uint64_t before) { (void)before; }
#endif
#endif
