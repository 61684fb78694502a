/*
 * atomic.h - the only door to C11 atomics.
 *
 * Everything in this folder that is not a Concurrency Kit ring reaches atomics through these
 * macros, and nothing outside this folder uses them.  The names say the order: rlx, acq, rel, ar
 * (acquire and release) and sc.  A model checker that has its own atomic types names a file in
 * RVQ_ATOMIC_HEADER that defines the same macros, and then checks the real headers
 * (tests/models/relacy/atomic.h).
 *
 * RVQ_OWNED marks a field that is not atomic because only one thread at a time may touch it;
 * RVQ_VAR reads or writes it.  They are plain C here and race-checked variables in the checker.
 */
#ifndef REEVE_QUEUES_ATOMIC_H
#define REEVE_QUEUES_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* For functions that a macro puts into a .c file, where clang reports the unused ones. */
#define RVQ_UNUSED __attribute__((unused))

#define RVQ_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RVQ_UNLIKELY(x) __builtin_expect(!!(x), 0)

#ifdef RVQ_ATOMIC_HEADER
#include RVQ_ATOMIC_HEADER
#else

#include <stdatomic.h>

#define RVQ_ATOMIC(type) _Atomic(type)
#define RVQ_OWNED(type)  type
#define RVQ_VAR(field)   (field)

#define rvq_load_rlx(p) atomic_load_explicit((p), memory_order_relaxed)
#define rvq_load_acq(p) atomic_load_explicit((p), memory_order_acquire)

#define rvq_store_rlx(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define rvq_store_rel(p, v) atomic_store_explicit((p), (v), memory_order_release)

#define rvq_swap_ar(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)

/* (p, expected, v): expected is a pointer and gets the value found.  A failure is an acquire load.
 *  */
#define rvq_cas_ar(p, e, v)                      \
	atomic_compare_exchange_strong_explicit( \
	    (p), (e), (v), memory_order_acq_rel, memory_order_acquire)
#define rvq_cas_weak_ar(p, e, v)               \
	atomic_compare_exchange_weak_explicit( \
	    (p), (e), (v), memory_order_acq_rel, memory_order_acquire)

#define rvq_fetch_add_rlx(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define rvq_fetch_sub_rlx(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define rvq_fetch_add_ar(p, v)  atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define rvq_fetch_sub_ar(p, v)  atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define rvq_fetch_or_ar(p, v)   atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
#define rvq_fetch_and_ar(p, v)  atomic_fetch_and_explicit((p), (v), memory_order_acq_rel)

/* gcc says that ThreadSanitizer does not see fences; nothing here needs it to (queues/README.md).
 *  */
#ifdef __SANITIZE_THREAD__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
static inline void
rvq_fence_sc(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}
#ifdef __SANITIZE_THREAD__
#pragma GCC diagnostic pop
#endif

#endif
#endif
