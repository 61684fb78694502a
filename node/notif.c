/* notif.c - reeve/notif.h: the protocol, its table of peers, and the calls that ask for something. */
#include <config.h>

#include "node/notif_session.h"

#include "lib/check.h"
#include "lib/varint.h"

#define DEFAULT_HANDSHAKE_MS 10000
#define DEFAULT_SIZE         (1u << 20)
#define DEFAULT_TOTAL        (64u << 20)
#define WRITE_MS             10000 /* a close without a time of its own */

static const struct rvn_proto_ops notif_ops;

static unsigned
bucket_of(const char *peer)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *peer != '\0'; peer++)
		h = (h ^ (uint8_t)*peer) * 16777619u;
	return h % RVN_NBUCKETS;
}

struct rvn_npeer *
rvn_npeer_find(struct reeve_notif *p, const char *peer)
{
	struct rvn_npeer *r;

	for (r = p->peers[bucket_of(peer)]; r != NULL; r = r->next)
		if (strcmp(r->name, peer) == 0)
			return r;
	return NULL;
}

/* Under the lock: the record of peer with a reference for the caller, made if there is none.  near: its connection's
 * worker, or NULL. */
static struct rvn_npeer *
find_or_make(struct reeve_notif *p, const char *peer, struct rva_worker *near)
{
	struct rvn_npeer *r = rvn_npeer_find(p, peer), **at;

	if (r == NULL) {
		r = strlen(peer) < REEVE_PEER_TEXT ? rv_zalloc(p->arena, sizeof(*r)) : NULL;
		if (r == NULL)
			return NULL;
		rva_actor_init(
		    &r->actor, near != NULL ? near : rva_rt_place(p->rt), &rvn_npeer_ops);
		rvq_bell_init(&r->bell.bell);
		r->bell.kind = RVN_NB_PEER;
		r->p = p;
		rvq_ref_get(&p->refs);
		r->arena = p->arena;
		memcpy(r->name, peer, strlen(peer) + 1);
		r->todo_tail = &r->todo;
		rvq_mailbox_init(&r->evq);
		at = &p->peers[bucket_of(peer)];
		r->next = *at;
		*at = r;
	}
	r->refs++;
	return r;
}

void
rvn_npeer_drop(struct rvn_npeer *r)
{
	struct reeve_notif *p = r->p;
	struct rvn_npeer **at;
	bool last;

	rvn_nlock(p);
	last = --r->refs == 0;
	if (last) {
		at = &p->peers[bucket_of(r->name)];
		while (*at != r)
			at = &(*at)->next;
		*at = r->next;
		REEVE_ASSERT(r->mach.state == RVN_NS_CLOSED && r->todo == NULL);
	}
	rvn_nunlock(p);
	if (last)
		rva_ring(&r->actor, &r->bell.bell, RVN_P_FREE);
}

bool
rvn_nlive(struct reeve_notif *p)
{
	if (!rvn_hold(p->node))
		return false;
	rvn_nlock(p);
	p->live++;
	rvn_nunlock(p);
	return true;
}

void
rvn_nover(struct reeve_notif *p)
{
	bool done;

	rvn_nlock(p);
	done = --p->live == 0 && p->closing;
	rvn_nunlock(p);
	if (done)
		rvn_events_done(&p->events);
	rvn_drop(p->node);
}

/* --- settings --- */

void
reeve_notif_cfg_init_sized(reeve_notif_cfg_t *cfg, size_t size)
{
	if (cfg == NULL || size < sizeof(cfg->size) || size > 4096)
		return;
	memset(cfg, 0, size);
	cfg->size = (uint32_t)size;
}

static int
copy_cfg(reeve_notif_cfg_t *to, const reeve_notif_cfg_t *from)
{
	const uint32_t known = REEVE_NOTIF_AUTO_ACCEPT | REEVE_NOTIF_NO_DIAL |
	    REEVE_NOTIF_ACCEPT_ALL;
	const uint8_t *bytes = (const uint8_t *)from;

	memset(to, 0, sizeof(*to));
	REEVE_REQUIRE(from->size >= sizeof(from->size) && from->size <= 4096, REEVE_EINVAL);
	for (uint32_t i = sizeof(*to); i < from->size; i++)
		REEVE_REQUIRE(bytes[i] == 0, REEVE_EINVAL);
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	if (to->handshake_ms == 0)
		to->handshake_ms = DEFAULT_HANDSHAKE_MS;
	if (to->max_size == 0)
		to->max_size = DEFAULT_SIZE;
	if (to->send_queue == 0)
		to->send_queue = DEFAULT_SIZE;
	if (to->recv_queue == 0)
		to->recv_queue = DEFAULT_SIZE;
	if (to->recv_total == 0)
		to->recv_total = DEFAULT_TOTAL;
	REEVE_REQUIRE((to->flags & ~known) == 0 && to->max_size <= RV_BUF_MAX, REEVE_EINVAL);
	REEVE_REQUIRE(to->send_queue < RVN_K_CLOSED / 2, REEVE_EINVAL);
	REEVE_REQUIRE(to->handshake != NULL || to->handshake_len == 0, REEVE_EINVAL);
	REEVE_REQUIRE(to->handshake_len <= to->max_size, REEVE_EINVAL);
	return 0;
}

/* Our handshake as it goes out.  NULL: out of memory. */
static reeve_buf_t *
greeting(reeve_rt_t *rt, const void *bytes, size_t n)
{
	uint8_t head[RV_VARINT_MAX];
	unsigned h = rv_varint_put(head, n);
	reeve_buf_t *b = reeve_buf_alloc(rt, h + n);
	uint8_t *to;

	if (b == NULL)
		return NULL;
	to = reeve_buf_mut(b);
	memcpy(to, head, h);
	if (n > 0)
		memcpy(to + h, bytes, n);
	return b;
}

void
rvn_notif_unref(struct reeve_notif *p)
{
	if (!rvq_ref_put(&p->refs))
		return;
	rv_buf_unref(p->greeting);
	pthread_mutex_destroy(&p->lock);
	rv_free(p->arena, p, sizeof(*p));
}

int
reeve_notif_install(reeve_notif_t **out, reeve_node_t *n, const reeve_notif_cfg_t *cfg)
{
	struct reeve_notif *p;
	reeve_rt_t *rt;
	int rc;

	REEVE_REQUIRE(out != NULL && n != NULL && cfg != NULL, REEVE_EINVAL);
	rt = rvn_rt(n);
	p = rv_zalloc(rt->arena, sizeof(*p));
	REEVE_REQUIRE(p != NULL, REEVE_ENOMEM);
	p->proto.ops = &notif_ops;
	p->arena = rt->arena;
	p->rt = rt;
	p->node = n;
	rvq_ref_init(&p->refs, 1);
	p->gauges = rvn_gauges(n);
	rc = copy_cfg(&p->cfg, cfg);
	if (rc == 0 && pthread_mutex_init(&p->lock, NULL) != 0)
		rc = REEVE_ENOMEM;
	if (rc < 0) {
		rv_free(p->arena, p, sizeof(*p));
		return rc;
	}
	p->greeting = greeting(rt, p->cfg.handshake, p->cfg.handshake_len);
	rc = p->greeting == NULL ? REEVE_ENOMEM : rvn_events_init(&p->events);
	if (rc < 0) {
		rvn_notif_unref(p);
		return rc;
	}
	rc = rvn_proto_install(n, &p->proto, p->cfg.names, p->cfg.nnames);
	if (rc < 0) {
		rvn_events_fini(p);
		rvn_notif_unref(p);
		return rc;
	}
	*out = p;
	return 0;
}

int
reeve_notif_set_handshake(reeve_notif_t *p, const void *bytes, size_t n)
{
	reeve_buf_t *b;

	REEVE_REQUIRE(p != NULL && (bytes != NULL || n == 0), REEVE_EINVAL);
	REEVE_REQUIRE(n <= p->cfg.max_size, REEVE_ETOOBIG);
	b = greeting(p->rt, bytes, n);
	REEVE_REQUIRE(b != NULL, REEVE_ENOMEM);
	rvn_nlock(p);
	{
		reeve_buf_t *old = p->greeting;

		p->greeting = b;
		b = old;
	}
	rvn_nunlock(p);
	rv_buf_unref(b);
	return 0;
}

/* --- calls --- */

/* The worker of the peer's connection, or NULL. */
static struct rva_worker *
worker_of(struct reeve_notif *p, const char *peer)
{
	reeve_ctl_t *k = reeve_node_ctl(p->node, peer);
	struct rva_worker *w = k != NULL ? k->conn->w : NULL;

	reeve_ctl_unref(k);
	return w;
}

int
reeve_notif_open(reeve_notif_t *p, const char *peer)
{
	struct rvn_narg arg = {.step = 0};
	struct rva_worker *w;
	struct rvn_npeer *r;
	int rc;

	REEVE_REQUIRE(p != NULL && peer != NULL && strlen(peer) < REEVE_PEER_TEXT, REEVE_EINVAL);
	w = worker_of(p, peer);
	rvn_nlock(p);
	r = p->closing ? NULL : find_or_make(p, peer, w);
	rc = p->closing ? REEVE_ECLOSED : REEVE_ENOMEM;
	rvn_nunlock(p);
	REEVE_REQUIRE(r != NULL, rc);
	arg.half = rvn_nhalf_new(r, NULL, 0, &rc);
	arg.ev = rvn_nev_new(p->arena);
	if (arg.half != NULL && arg.ev != NULL)
		rc = rvn_npeer_feed(r, RVN_NE_OPEN, &arg);
	else if (arg.half != NULL)
		rc = REEVE_ENOMEM;
	rvn_nhalf_discard(arg.half);
	rvn_nev_free(arg.ev);
	rvn_npeer_drop(r);
	return rc;
}

int
reeve_notif_close(reeve_notif_t *p, const char *peer, int64_t timeout_ms)
{
	reeve_reason_t why = rvn_reason(REEVE_ECANCELED, REEVE_BY_US);
	struct rvn_narg arg = {.reason = &why};
	struct rvn_npeer *r;
	int rc = REEVE_ENOTCONN;

	REEVE_REQUIRE(p != NULL && peer != NULL, REEVE_EINVAL);
	arg.deadline = rv_deadline_us(rv_clock_us(), timeout_ms < 0 ? WRITE_MS : timeout_ms);
	rvn_nlock(p);
	r = rvn_npeer_find(p, peer);
	if (r != NULL) {
		rvn_npeer_hold(r);
		rc = rvn_npeer_step(r, RVN_NE_CLOSE, &arg);
	}
	rvn_nunlock(p);
	if (r != NULL) {
		rvn_npeer_kick(r);
		rvn_npeer_drop(r);
	}
	return rc;
}

int
reeve_notif_answer(reeve_notif_t *p, uint64_t ticket, int accept)
{
	reeve_reason_t why = rvn_reason(REEVE_EREFUSED, REEVE_BY_US);
	struct rvn_narg arg = {.ticket = ticket, .reason = &why, .step = REEVE_STEP_VALIDATE};
	struct rvn_npeer *r;
	int rc = REEVE_ESTALE, made = 0;

	REEVE_REQUIRE(p != NULL, REEVE_EINVAL);
	rvn_nlock(p);
	for (r = p->asking[ticket % RVN_NBUCKETS]; r != NULL && r->mach.ticket != ticket;)
		r = r->tnext;
	if (r != NULL)
		rvn_npeer_hold(r);
	rvn_nunlock(p);
	REEVE_REQUIRE(r != NULL, REEVE_ESTALE);
	if (accept)
		arg.half = rvn_nhalf_new(r, NULL, 0, &made);
	if (!accept || arg.half != NULL) {
		rc = rvn_npeer_feed(r, accept ? RVN_NE_ACCEPT : RVN_NE_REJECT, &arg);
	} else { /* without memory for our half there is no stream: it can be answered again */
		rc = made;
	}
	rvn_nhalf_discard(arg.half);
	rvn_npeer_drop(r);
	return rc;
}

reeve_sink_t *
reeve_notif_sink(reeve_notif_t *p, const char *peer)
{
	struct rvn_npeer *r;
	reeve_sink_t *k = NULL;

	REEVE_REQUIRE(p != NULL && peer != NULL, NULL);
	rvn_nlock(p);
	r = rvn_npeer_find(p, peer);
	if (r != NULL && (r->mach.state == RVN_NS_OPEN || r->mach.state == RVN_NS_OPEN_HELD))
		k = reeve_sink_ref(r->session);
	rvn_nunlock(p);
	return k;
}

void
reeve_notif_resume(reeve_notif_t *p, const char *peer)
{
	struct rvn_npeer *r;
	reeve_sink_t *k = NULL;

	if (p == NULL || peer == NULL)
		return;
	rvn_nlock(p);
	r = rvn_npeer_find(p, peer);
	if (r != NULL && r->session != NULL)
		k = reeve_sink_ref(r->session);
	rvn_nunlock(p);
	if (k != NULL)
		rvn_session_ring(k, RVN_K_RESUME);
	reeve_sink_unref(k);
}

/* --- the node's side --- */

static void
on_inbound(struct rvn_proto *proto, const char *peer, reeve_stream_t *s, unsigned name)
{
	struct reeve_notif *p = (struct reeve_notif *)proto;
	struct rvn_nhalf *h = NULL;
	struct rvn_npeer *r;
	int rc;

	rvn_nlock(p);
	r = p->closing ? NULL : find_or_make(p, peer, s->conn->w);
	rvn_nunlock(p);
	if (r != NULL)
		h = rvn_nhalf_new(r, s, name, &rc);
	if (h != NULL)
		rvn_nhalf_came(h);
	else
		reeve_close(s);
	if (r != NULL)
		rvn_npeer_drop(r);
}

static void
on_close(struct rvn_proto *proto)
{
	struct reeve_notif *p = (struct reeve_notif *)proto;
	reeve_reason_t why = rvn_reason(REEVE_ECLOSED, REEVE_BY_US);
	struct rvn_narg arg = {.reason = &why, .deadline = rv_clock_us()};
	struct rvn_npeer *r, *all = NULL;
	bool done;

	rvn_nlock(p);
	p->closing = true;
	for (unsigned b = 0; b < RVN_NBUCKETS; b++) {
		for (r = p->peers[b]; r != NULL; r = r->next) {
			(void)rvn_npeer_step(r, RVN_NE_STOP, &arg);
			rvn_npeer_hold(r);
			r->knext = all;
			all = r;
		}
	}
	done = p->live == 0;
	rvn_nunlock(p);
	for (; all != NULL; all = r) {
		r = all->knext;
		rvn_npeer_kick(all);
		rvn_npeer_drop(all);
	}
	if (done)
		rvn_events_done(&p->events);
}

static void
on_free(struct rvn_proto *proto)
{
	struct reeve_notif *p = (struct reeve_notif *)proto;

	rvn_events_fini(p);
	rvn_recv_forget(p);
	rvn_notif_unref(p);
}

static const struct rvn_proto_ops notif_ops = {
    .inbound = on_inbound, .close = on_close, .free = on_free};
