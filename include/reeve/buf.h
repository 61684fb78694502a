/* buf.h - refcounted buffers.  A buffer is a run of bytes in memory that other buffers may share; the bytes do
 * not change once a second reference or a slice exists.  Buffers outlive streams, connections and the runtime. */
#ifndef REEVE_BUF_H
#define REEVE_BUF_H

#include <reeve/rt.h>

REEVE_BEGIN

/* A new buffer of size bytes (1 to 1 GiB), contents undefined, for reeve_buf_mut and then reeve_write_buf.
 * NULL: out of memory or bad size.
 * T: any B: no W: ok returns ref */
REEVE_API reeve_buf_t *reeve_buf_alloc(reeve_rt_t *rt, size_t size);

/* A buffer over the caller's own bytes, which must stay unchanged until done(ctx) is called; done runs on
 * whichever thread drops the last reference, must not block and may be NULL.  NULL: out of memory or bad
 * argument, and done is not called.
 * T: any B: no W: ok returns ref */
REEVE_API reeve_buf_t *reeve_buf_wrap(
    reeve_rt_t *rt, const void *p, size_t n, void (*done)(void *ctx), void *ctx);

/* A new buffer that shares n bytes of b beginning at off.  NULL: out of range or out of memory.  b may be let go.
 * T: any B: no W: ok borrows b returns ref */
REEVE_API reeve_buf_t *reeve_buf_slice(reeve_buf_t *b, size_t off, size_t n);

/* One more reference to b.  Returns b.
 * T: any B: no W: ok returns ref */
REEVE_API reeve_buf_t *reeve_buf_ref(reeve_buf_t *b);

/* Let go of a reference.  NULL is ignored.
 * T: any B: no W: ok consumes b */
REEVE_API void reeve_buf_unref(reeve_buf_t *b);

/* The bytes.
 * T: any B: no W: ok borrows b */
REEVE_API const uint8_t *reeve_buf_data(const reeve_buf_t *b);

/* The bytes for writing, or NULL when anybody else can see them (another reference or slice) or when they are
 * the application's own (reeve_buf_wrap).
 * T: owner B: no W: ok borrows b */
REEVE_API uint8_t *reeve_buf_mut(reeve_buf_t *b);

/* How many bytes.
 * T: any B: no W: ok borrows b */
REEVE_API size_t reeve_buf_len(const reeve_buf_t *b);

REEVE_END

#endif
