/* fuzz_noise_filter.c - the transport phase of Noise: arbitrary bytes, and true messages of which some bytes are changed.
 *
 * The first byte says how the input is cut.  If its lowest bit is set the rest are commands of two bytes: send so much,
 * change that byte.  Looked for: crashes, bytes shown that were not sent, an error that is not told or not for ever, a
 * result that depends on how the input was cut. */
#include <config.h>

#include "fuzz/fuzz.h"
#include "lib/engine/gather.h"
#include "lib/upgrade/noise.h"

#include <string.h>

#define WIRE (256u << 10)

static struct rv_arena *arena;
static struct rv_pool *pool;
static uint8_t plain[WIRE], wire[WIRE];
static size_t nplain, nwire;

static struct rv_filter *
end_of(int i)
{
	uint8_t k[2][RV_KEY_LEN];
	struct rv_filter *f;

	if (arena == NULL) {
		arena = rv_arena_create(NULL);
		pool = rv_pool_create(arena);
		rv_pool_enter(pool);
		for (size_t j = 0; j < WIRE; j++)
			plain[j] = (uint8_t)(j * 7 + (j >> 8));
	}
	memset(k[i], 1, RV_KEY_LEN);
	memset(k[1 - i], 2, RV_KEY_LEN);
	must(rv_noise_filter_create(&f, arena, k[0], k[1]) == 0);
	return f;
}

struct result {
	int rc;
	bool inside;
	size_t shown;
};

static struct result
receive(const uint8_t *p, size_t n, size_t piece)
{
	struct rv_filter *f = end_of(1);
	struct result r = {0};
	struct rv_part part;
	size_t k;

	for (; r.rc == 0 && n > 0; p += k, n -= k) {
		k = n < piece ? n : piece;
		k = k < RV_FILTER_BLOCK ? k : RV_FILTER_BLOCK;
		r.rc = f->ops->open(f, pool, p, k);
		while (rv_filter_pop(f, &part)) {
			must(r.shown + part.len <= nplain);
			must(memcmp(part.slab->data + part.off, plain + r.shown, part.len) == 0);
			r.shown += part.len;
			rv_slab_unref(part.slab);
		}
		must(f->nparts < RV_FILTER_PARTS);
		if (k % 3 == 0)
			f->ops->rest(f, pool);
	}
	must((r.rc == 0) == (f->id[0] == '\0'));
	if (r.rc != 0)
		must(f->ops->open(f, pool, plain, 100) == r.rc);
	r.inside = r.rc == 0 && f->ops->inside(f);
	f->ops->destroy(f);
	return r;
}

static void
send_some(struct rv_filter *f, struct rv_gather *g, uint32_t n)
{
	struct iovec v[RV_FILTER_IOV];

	rv_gather_reset(g);
	g->message = f->message;
	for (uint32_t k; n > 0; n -= k) {
		k = rv_gather_fit(g, 0, n);
		rv_gather_ref(g, plain + nplain, k);
		nplain += k;
	}
	must(f->ops->seal(f, pool, g) == 0);
	while (f->out_left > 0) {
		must(rv_filter_iov(f, v) > 0);
		memcpy(wire + nwire, v[0].iov_base, v[0].iov_len);
		nwire += v[0].iov_len;
		rv_filter_sent(f, v[0].iov_len);
	}
}

/* Commands: what was sent, and whether all of it is as it was. */
static bool
obey(const uint8_t *p, size_t n)
{
	static struct rv_gather g;
	struct rv_filter *f = end_of(0);
	bool true_to = true;
	uint32_t size;

	for (size_t i = 0; i + 1 < n; i += 2) {
		size = p[i] % 4 == 0 ? p[i + 1] * 400u : p[i + 1];
		if (p[i] % 8 == 7 && nwire > 0 && p[i + 1] != 0) {
			wire[(p[i] * 331u + i) % nwire] ^= p[i + 1];
			true_to = false;
		} else if (size > 0 && nplain + size < WIRE - 8192 && nwire + size < WIRE - 8192) {
			send_some(f, &g, size);
		}
	}
	f->ops->destroy(f);
	return true_to;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	bool honest = false;
	struct result a, b;
	size_t piece;

	if (n == 0)
		return 0;
	piece = 1 + (size_t)(p[0] / 2) * (p[0] / 2);
	nplain = nwire = 0;
	if (p[0] % 2) {
		honest = obey(p + 1, n - 1);
		a = receive(wire, nwire, SIZE_MAX);
		b = receive(wire, nwire, piece);
	} else {
		a = receive(p + 1, n - 1, SIZE_MAX);
		b = receive(p + 1, n - 1, piece);
	}
	must(a.rc == b.rc && a.inside == b.inside && a.shown == b.shown);
	if (honest)
		must(a.rc == 0 && !a.inside && a.shown == nplain);
	return 0;
}
