/* What processors and compilers have each in their own way: the few atomic operations that threads share, and how to
 * flush denormals to zero.
 */
#ifndef MOTIONCUE_PROCESSOR_H
#define MOTIONCUE_PROCESSOR_H
#include <stdint.h>
#if defined(_MSC_VER) && !defined(__clang__)
#ifndef _M_X64
#error "this compiler's volatile accesses are ordered on x86-64 only"
#endif
#include <intrin.h>
static __inline int64_t mc_load(const int64_t *p) { return *(const volatile int64_t *)p; }
static __inline void mc_store(int64_t *p, int64_t v) { *(volatile int64_t *)p = v; }
static __inline int64_t mc_load_acquire(const int64_t *p) { int64_t v = *(const volatile int64_t *)p; _ReadWriteBarrier(); return v; }
static __inline void mc_fence(void) { _ReadWriteBarrier(); }
static __inline void mc_store_release(int64_t *p, int64_t v) { _ReadWriteBarrier(); *(volatile int64_t *)p = v; }
static __inline int64_t mc_exchange(int64_t *p, int64_t v) { return _InterlockedExchange64((volatile int64_t *)p, v); }
static __inline void mc_add(int64_t *p, int64_t n) { _InterlockedExchangeAdd64((volatile int64_t *)p, n); }
#else
static inline int64_t mc_load(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static inline void mc_store(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
static inline int64_t mc_load_acquire(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void mc_fence(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); } /* what was read before it, was */
static inline void mc_store_release(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline int64_t mc_exchange(int64_t *p, int64_t v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
static inline void mc_add(int64_t *p, int64_t n) { __atomic_fetch_add(p, n, __ATOMIC_RELAXED); }
#endif
/* Add to a counter that only this thread writes; mc_add is for a counter that several write. */
static inline void mc_count(int64_t *p, int64_t n) { mc_store(p, mc_load(p) + n); }

/* Denormals are flushed on the calling thread, since filters that decay into them would slow down. */
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
