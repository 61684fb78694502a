/* mplex_rig.c - see mplex_rig.h. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

void
rvt_mp_cfg(reeve_cfg_t *cfg)
{
	reeve_cfg_init(cfg);
	cfg->proto = REEVE_MPLEX;
}

void
rvt_mp_init(struct rvt_rig *r, const reeve_cfg_t *cfg, struct rv_budget *budget)
{
	reeve_cfg_t own;

	rvt_mp_cfg(&own);
	rvt_rig_init(r, REEVE_LISTENER, cfg == NULL ? &own : cfg, budget);
}

void
rvt_mp_feed(struct rvt_rig *r)
{
	ck_assert_int_eq(rvt_feed(r, 0), 0);
}

struct rv_stream *
rvt_mp_inbound(struct rvt_rig *r, uint64_t id)
{
	struct rv_stream *st;

	rvt_mp_put(&r->in, RVT_MP_OPEN, id, 0);
	rvt_mp_feed(r);
	st = rvt_event(r, RV_EV_OPEN, rvt_mp_key(id, false)).st;
	r->e->ops->accept(r->e, st);
	return st;
}

struct rv_stream *
rvt_mp_outbound(struct rvt_rig *r)
{
	struct rv_stream *st = rvt_open(r);

	rvt_drain(r, 0);
	rvt_mp_want(r, RVT_MP_OPEN, rv_mp_id(st->id), 0);
	return st;
}

void
rvt_mp_feed_data(struct rvt_rig *r, uint64_t id, uint32_t n, uint64_t from)
{
	for (uint32_t at = 0, k; at < n; at += k) {
		k = n - at < 65536 ? n - at : 65536;
		rvt_mp_data(&r->in, RVT_MP_DATA_I, id, k, from + at);
	}
	rvt_mp_feed(r);
}

uint64_t
rvt_mp_got(struct rvt_rig *r, uint64_t id)
{
	struct rvt_seen *s = rvt_seen(r, rvt_mp_key(id, false));

	ck_assert_ptr_nonnull(s);
	return s->got;
}

uint64_t
rvt_mp_unread(const struct rvt_rig *r)
{
	return rvq_counter_get(&r->e->stats.unread);
}

void
rvt_mp_tick(struct rvt_rig *r, uint64_t ms)
{
	r->now += ms * 1000;
	ck_assert_int_eq(r->e->ops->tick(r->e, r->now), 0);
}

void
rvt_mp_go_on(struct rvt_rig *r)
{
	rvt_notify(r);
	rvt_mp_feed(r);
}

void
rvt_mp_want(struct rvt_rig *r, unsigned flag, uint64_t id, uint32_t len)
{
	struct rvt_mp_frame f;
	struct rvt_seen *s;
	uint64_t key;

	ck_assert_msg(rvt_mp_next(&r->out, &f), "no frame, wanted flag %u id %llu len %u", flag,
	    (unsigned long long)id, len);
	ck_assert_msg(f.flag == flag && f.id == id && f.len == len,
	    "frame flag %u id %llu len %u, wanted flag %u id %llu len %u", f.flag,
	    (unsigned long long)f.id, f.len, flag, (unsigned long long)id, len);
	if (len == 0)
		return;
	key = rvt_mp_key(id, flag % 2 == 0);
	s = rvt_seen(r, key);
	ck_assert_ptr_nonnull(s);
	for (uint32_t i = 0; i < len; i++)
		RVT_CHECK(f.body[i] == rvt_byte((uint32_t)key, s->out + i));
	s->out += len;
}

void
rvt_mp_want_none(struct rvt_rig *r)
{
	struct rvt_mp_frame f;

	ck_assert_msg(!rvt_mp_next(&r->out, &f), "unwanted frame flag %u id %llu len %u", f.flag,
	    (unsigned long long)f.id, f.len);
	ck_assert_uint_eq(r->out.at, r->out.n);
}

static size_t
from_hex(const char *hex, uint8_t *out, size_t max)
{
	unsigned byte;
	size_t n = 0;

	for (; *hex != '\0'; hex += hex[2] == ' ' ? 3 : 2) {
		RVT_CHECK(n < max && sscanf(hex, "%2x", &byte) == 1);
		out[n++] = (uint8_t)byte;
	}
	return n;
}

void
rvt_mp_want_raw(struct rvt_rig *r, const char *hex)
{
	uint8_t want[256];
	size_t n = from_hex(hex, want, sizeof(want));

	ck_assert_uint_eq(r->out.n - r->out.at, n);
	ck_assert_mem_eq(r->out.p + r->out.at, want, n);
	r->out.at = r->out.n;
}

void
rvt_mp_put_raw(struct rvt_rig *r, const char *hex)
{
	uint8_t bytes[256];
	size_t n = from_hex(hex, bytes, sizeof(bytes));

	memcpy(rvt_bytes_more(&r->in, n), bytes, n);
}

void
rvt_mp_want_reason(struct rvt_rig *r, int rc, const char *id)
{
	ck_assert_int_eq(r->e->reason.rc, rc);
	ck_assert_str_eq(r->e->reason.id, id);
}

void
rvt_mp_say(struct rvt_rig *r, unsigned flag, uint64_t id)
{
	rvt_mp_put(&r->in, flag, id, 0);
	rvt_mp_feed(r);
}

void
rvt_mp_flush(struct rvt_rig *r)
{
	rvt_drain(r, 0);
	rvt_notify(r);
}

void
rvt_mp_unblock(struct rvt_rig *r, int by, struct rv_stream *st)
{
	const struct rv_engine_ops *o = r->e->ops;

	switch (by) {
	case RVT_BY_CLOSE:
		o->close(r->e, st, false, r->now);
		break;
	case RVT_BY_CLOSE_UNREAD:
		o->close(r->e, st, true, r->now);
		break;
	case RVT_BY_DROP:
		o->drop(r->e, st);
		break;
	case RVT_BY_STOP:
		o->stop(r->e, st);
		break;
	case RVT_BY_RESET:
		o->reset(r->e, st, 0);
		break;
	case RVT_BY_CONSUMED:
		o->consumed(r->e, st, 256u << 10, r->now);
		break;
	default:
		rvt_mp_tick(r, 5000);
		break;
	}
}
