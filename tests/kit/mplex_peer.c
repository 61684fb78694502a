/* mplex_peer.c - see mplex_peer.h. */
#include <config.h>

#include "tests/kit/mplex_peer.h"

#include <check.h>

void
rvt_mpp_cfg(reeve_cfg_t *cfg)
{
	reeve_cfg_init(cfg);
	cfg->proto = REEVE_MPLEX;
}

void
rvt_mpp_open(struct rvt_raw *r, const reeve_cfg_t *cfg)
{
	reeve_cfg_t own;

	rvt_mpp_cfg(&own);
	rvt_raw_open(r, REEVE_LISTENER, cfg == NULL ? &own : cfg);
}

void
rvt_mpp_put(struct rvt_raw *r, unsigned flag, uint64_t id, uint32_t len)
{
	rvt_mp_put(&r->p.out, flag, id, len);
	rvt_peer_send(&r->p);
}

void
rvt_mpp_queue(struct rvt_raw *r, unsigned flag, uint64_t id, uint32_t n, uint64_t from)
{
	struct rvt_mp_run run = {(uint32_t)id, 0, from};

	for (; n > 0; n -= run.n, run.from += run.n) {
		run.n = n < 65536 ? n : 65536;
		rvt_mp_data_of(&r->p.out, flag, id, run);
	}
}

void
rvt_mpp_data(struct rvt_raw *r, unsigned flag, uint64_t id, uint32_t n, uint64_t from)
{
	rvt_mpp_queue(r, flag, id, n, from);
	rvt_peer_send(&r->p);
}

reeve_stream_t *
rvt_mpp_inbound(struct rvt_raw *r, uint64_t id)
{
	reeve_stream_t *s = NULL;

	rvt_mpp_put(r, RVT_MP_OPEN, id, 0);
	ck_assert_int_eq(reeve_accept(r->k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_uint_eq(reeve_stream_id(s), id);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD | REEVE_WR, rvt_slow(2 * RVT_WAIT_MS)), 0);
	return s;
}

reeve_stream_t *
rvt_mpp_outbound(struct rvt_raw *r)
{
	reeve_stream_t *s = NULL;

	ck_assert_int_eq(reeve_open(r->k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD | REEVE_WR, rvt_slow(2 * RVT_WAIT_MS)), 0);
	rvt_mpp_want(r, RVT_MP_OPEN, reeve_stream_id(s));
	return s;
}

bool
rvt_mpp_next(struct rvt_raw *r, struct rvt_mp_frame *f)
{
	while (!rvt_mp_next(&r->p.in, f)) {
		if (!rvt_peer_more(&r->p)) {
			ck_assert_msg(r->p.in.at == r->p.in.n, "the end came inside a frame");
			return false;
		}
	}
	return true;
}

void
rvt_mpp_want(struct rvt_raw *r, unsigned flag, uint64_t id)
{
	struct rvt_mp_frame f;

	ck_assert_msg(rvt_mpp_next(r, &f), "the end instead of flag %u", flag);
	ck_assert_msg(f.flag == flag && f.id == id && f.len == 0,
	    "flag %u, id %llu, length %u instead of flag %u, id %llu", f.flag,
	    (unsigned long long)f.id, f.len, flag, (unsigned long long)id);
}

void
rvt_mpp_want_bytes(struct rvt_raw *r, unsigned flag, uint64_t id, uint64_t n, uint64_t from)
{
	struct rvt_mp_frame f;

	while (n > 0) {
		ck_assert_msg(
		    rvt_mpp_next(r, &f), "the end, %llu bytes short", (unsigned long long)n);
		ck_assert_msg(f.flag == flag && f.id == id && f.len <= n,
		    "flag %u, id %llu, length %u instead of data", f.flag, (unsigned long long)f.id,
		    f.len);
		for (uint32_t i = 0; i < f.len; i++)
			if (f.body[i] != rvt_byte((uint32_t)id, from + i))
				ck_abort_msg("byte %llu is wrong", (unsigned long long)(from + i));
		n -= f.len;
		from += f.len;
	}
}

void
rvt_mpp_want_end(struct rvt_raw *r)
{
	struct rvt_mp_frame f;

	if (rvt_mpp_next(r, &f))
		ck_abort_msg("flag %u, id %llu, length %u instead of the end", f.flag,
		    (unsigned long long)f.id, f.len);
}
