/* bytes.h - big-endian integers in byte runs: bare loads and stores, and cursors that check bounds.
 *
 * A cursor never leaves its run: a read or write that does not fit moves nothing, sets bad,
 * answers 0, and so does everything after it; one test at the end is enough. */
#ifndef REEVE_LIB_BYTES_H
#define REEVE_LIB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The caller knows that the bytes are there; any alignment. */
static inline uint16_t
rv_load_be16(const uint8_t *p)
{
	return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t
rv_load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t
rv_load_be64(const uint8_t *p)
{
	return (uint64_t)rv_load_be32(p) << 32 | rv_load_be32(p + 4);
}

static inline void
rv_store_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void
rv_store_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static inline void
rv_store_be64(uint8_t *p, uint64_t v)
{
	rv_store_be32(p, (uint32_t)(v >> 32));
	rv_store_be32(p + 4, (uint32_t)v);
}

struct rv_reader {
	const uint8_t *p;
	size_t left;
	bool bad;
};

struct rv_writer {
	uint8_t *p;
	size_t left;
	bool bad;
};

/* The next n bytes, or NULL. */
static inline const uint8_t *
rv_read_bytes(struct rv_reader *r, size_t n)
{
	const uint8_t *at = r->p;

	if (r->bad || n > r->left) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	r->left -= n;
	return at;
}

/* Room for the next n bytes, or NULL. */
static inline uint8_t *
rv_write_bytes(struct rv_writer *w, size_t n)
{
	uint8_t *at = w->p;

	if (w->bad || n > w->left) {
		w->bad = true;
		return NULL;
	}
	w->p += n;
	w->left -= n;
	return at;
}

static inline uint8_t
rv_read_u8(struct rv_reader *r)
{
	const uint8_t *at = rv_read_bytes(r, 1);

	return at == NULL ? 0 : *at;
}

static inline uint16_t
rv_read_be16(struct rv_reader *r)
{
	const uint8_t *at = rv_read_bytes(r, 2);

	return at == NULL ? 0 : rv_load_be16(at);
}

static inline uint32_t
rv_read_be32(struct rv_reader *r)
{
	const uint8_t *at = rv_read_bytes(r, 4);

	return at == NULL ? 0 : rv_load_be32(at);
}

static inline uint64_t
rv_read_be64(struct rv_reader *r)
{
	const uint8_t *at = rv_read_bytes(r, 8);

	return at == NULL ? 0 : rv_load_be64(at);
}

static inline void
rv_write_u8(struct rv_writer *w, uint8_t v)
{
	uint8_t *at = rv_write_bytes(w, 1);

	if (at != NULL)
		*at = v;
}

static inline void
rv_write_be16(struct rv_writer *w, uint16_t v)
{
	uint8_t *at = rv_write_bytes(w, 2);

	if (at != NULL)
		rv_store_be16(at, v);
}

static inline void
rv_write_be32(struct rv_writer *w, uint32_t v)
{
	uint8_t *at = rv_write_bytes(w, 4);

	if (at != NULL)
		rv_store_be32(at, v);
}

static inline void
rv_write_be64(struct rv_writer *w, uint64_t v)
{
	uint8_t *at = rv_write_bytes(w, 8);

	if (at != NULL)
		rv_store_be64(at, v);
}

#endif
