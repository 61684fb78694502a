/* notif_half.c - one substream on its way: opened or come, negotiated by the node, then the handshakes.
 *
 * Everything runs in turns of the peer's actor; operations complete on the substream's worker and ring.  A half tells the
 * machine what becomes of it until the machine lets go of it (dead); it is freed when nothing of it is under way. */
#include <config.h>

#include "node/notif_session.h"

#include "lib/check.h"
#include "lib/varint.h"

#define HOLD_MAX (256u << 10) /* bytes that may wait behind a handshake before they are not read */

static void
half_rang(reeve_op_t *op, uint32_t bits)
{
	struct rvn_nhalf *h = op->arg;

	rva_ring(&h->peer->actor, &h->bell.bell, bits);
}

static void
on_read(reeve_op_t *op)
{
	half_rang(op, RVN_H_READ);
}

static void
on_wrote(reeve_op_t *op)
{
	half_rang(op, RVN_H_WROTE);
}

static void
on_opened(struct rvn_open *o)
{
	struct rvn_nhalf *h = rva_container(o, struct rvn_nhalf, open);

	rva_ring(&h->peer->actor, &h->bell.bell, RVN_H_OPENED);
}

struct rvn_nhalf *
rvn_nhalf_new(struct rvn_npeer *r, reeve_stream_t *s, unsigned name, int *rc)
{
	struct reeve_notif *p = r->p;
	struct rvn_nhalf *h = rv_zalloc(p->arena, sizeof(*h));

	*rc = REEVE_ENOMEM;
	if (h == NULL)
		return NULL;
	if (s != NULL) {
		h->ask = rvn_nev_new(p->arena);
		h->result = rvn_nev_new(p->arena);
	}
	if ((s != NULL && (h->ask == NULL || h->result == NULL)) ||
	    (!rvn_nlive(p) && (*rc = REEVE_ECLOSED))) {
		rvn_nev_free(h->ask);
		rvn_nev_free(h->result);
		rv_free(p->arena, h, sizeof(*h));
		return NULL;
	}
	*rc = 0;
	rvq_bell_init(&h->bell.bell);
	h->bell.kind = RVN_NB_HALF;
	h->peer = r;
	h->outbound = s == NULL;
	h->s = s;
	h->name = name;
	h->end_rc = 1;
	h->step = s == NULL ? REEVE_STEP_OPEN : REEVE_STEP_READ;
	rv_chain_init(&h->got);
	reeve_op_init(&h->rd, on_read, h);
	reeve_op_init(&h->wr, on_wrote, h);
	rvn_nlock(p);
	rvn_npeer_hold(r);
	rvn_nunlock(p);
	return h;
}

void
rvn_nhalf_free(struct rvn_nhalf *h)
{
	struct rvn_npeer *r = h->peer;
	struct reeve_notif *p = r->p;

	rvn_nev_free(h->ask);
	rvn_nev_free(h->result);
	rv_chain_clear(&h->got);
	rv_buf_unref(h->hs);
	rv_free(p->arena, h, sizeof(*h));
	rvn_npeer_drop(r);
	rvn_nover(p);
}

void
rvn_nhalf_discard(struct rvn_nhalf *h)
{
	if (h == NULL)
		return;
	reeve_close(h->s);
	h->s = NULL;
	rvn_nhalf_free(h);
}

static bool
quiet(const struct rvn_nhalf *h)
{
	return !h->opening && !h->reading && !h->writing;
}

/* --- what becomes of it --- */

/* The machine hears of a half only as long as it has it: another thread may have ended or joined it meanwhile. */
static void
tell(struct rvn_nhalf *h, enum rvn_ne_event ev, struct rvn_narg *arg)
{
	struct rvn_npeer *r = h->peer;

	rvn_nlock(r->p);
	if (h == (h->outbound ? r->out : r->in))
		(void)rvn_npeer_step(r, ev, arg);
	rvn_nunlock(r->p);
	rvn_npeer_kick(r);
}

/* Would ev join both halves?  *out: the substream that is ours. */
static bool
joins(struct rvn_nhalf *h, enum rvn_ne_event ev, reeve_stream_t **out)
{
	struct rvn_npeer *r = h->peer;
	bool yes;

	rvn_nlock(r->p);
	yes = h == (h->outbound ? r->out : r->in) &&
	    (rvn_nstate_table[r->mach.state][ev].act & RVN_NA_JOIN) != 0;
	*out = yes ? r->out->s : NULL;
	rvn_nunlock(r->p);
	return yes;
}

static void
tell_fail(struct rvn_nhalf *h, const reeve_reason_t *why)
{
	struct rvn_narg arg = {.reason = why, .step = h->step};

	tell(h, h->outbound ? RVN_NE_OUT_FAIL : RVN_NE_IN_FAIL, &arg);
	h->told = true;
}

/* The reading direction ended with rc (0: FIN), before or behind the handshake. */
static void
tell_ended(struct rvn_nhalf *h, int rc)
{
	reeve_reason_t why = {.size = sizeof(why)};

	(void)reeve_stream_reason(h->s, &why);
	if (rc < 0)
		rc = rvn_error(h->s, rc);
	/* A peer that refuses or has changed its mind ends a substream, one way or the other. */
	if (rc == 0 || rc == REEVE_ERESET)
		rc = REEVE_EREFUSED;
	why.rc = rc;
	if (why.by == REEVE_BY_NONE)
		why.by = rvn_by(rc);
	tell_fail(h, &why);
}

static void
tell_wrong(struct rvn_nhalf *h, int rc)
{
	reeve_reason_t why = rvn_reason(
	    rc, rc == REEVE_ENOMEM || rc == REEVE_ECLOSED ? REEVE_BY_US : REEVE_BY_PEER);

	h->end_rc = rc;
	tell_fail(h, &why);
}

/* --- operations --- */

static void
read_more(struct rvn_nhalf *h)
{
	uint64_t now;

	if (h->reading || h->end_rc != 1 || h->dead || h->yield || h->told ||
	    h->got.bytes >= HOLD_MAX + h->peer->p->cfg.max_size)
		return;
	h->rd.timeout_ms = -1;
	if (h->deadline != UINT64_MAX) {
		now = rv_clock_us();
		h->rd.timeout_ms = now < h->deadline ? (int64_t)((h->deadline - now + 999) / 1000)
						     : 0;
	}
	h->reading = true;
	reeve_read_async(h->s, &h->rd);
}

static void
send_greeting(struct rvn_nhalf *h)
{
	struct reeve_notif *p = h->peer->p;
	reeve_buf_t *b;

	rvn_nlock(p);
	b = reeve_buf_ref(p->greeting);
	rvn_nunlock(p);
	h->writing = true;
	h->wr.timeout_ms = (int64_t)p->cfg.handshake_ms;
	reeve_write_async(h->s, b, &h->wr);
}

static uint64_t
handshake_deadline(const struct rvn_nhalf *h)
{
	return rv_deadline_us(rv_clock_us(), (int64_t)h->peer->p->cfg.handshake_ms);
}

void
rvn_nhalf_start(struct rvn_nhalf *h)
{
	struct reeve_notif *p = h->peer->p;

	if (!h->outbound) {
		h->deadline = handshake_deadline(h);
		read_more(h);
		return;
	}
	h->open.fn = on_opened;
	h->open.names = p->proto.names;
	h->open.nnames = p->proto.nnames;
	h->open.flags = p->cfg.flags & REEVE_NOTIF_NO_DIAL ? RVN_NO_DIAL : 0;
	h->open.deadline = UINT64_MAX;
	h->opening = true;
	rvn_open(p->node, h->peer->name, &h->open);
}

void
rvn_nhalf_reply(struct rvn_nhalf *h)
{
	if (!h->told)
		send_greeting(h);
}

static void
maybe_free(struct rvn_nhalf *h)
{
	if (!quiet(h))
		return;
	reeve_close(h->s);
	h->s = NULL;
	rvn_nhalf_free(h);
}

void
rvn_nhalf_end(struct rvn_nhalf *h)
{
	h->dead = true;
	if (h->opening)
		rvn_open_cancel(&h->open);
	if (h->s != NULL && !quiet(h)) {
		reeve_close(reeve_stream_ref(h->s)); /* ends what is under way */
		return;
	}
	maybe_free(h);
}

bool
rvn_nhalf_yield(struct rvn_nhalf *h)
{
	if (!h->yield) {
		h->yield = true;
		if (h->reading)
			reeve_op_cancel(&h->rd);
	}
	return quiet(h);
}

/* --- handshakes --- */

/* n bytes of the chain at off, to out. */
static void
copy_out(const struct rv_chain *c, size_t off, uint8_t *out, size_t n)
{
	const reeve_buf_t *b = c->head;
	size_t m;

	for (; n > 0; b = b->next) {
		if (off >= b->len) {
			off -= b->len;
			continue;
		}
		m = b->len - off < n ? b->len - off : n;
		memcpy(out, b->slab->data + b->off + off, m);
		out += m;
		n -= m;
		off = 0;
	}
}

/* The peer's handshake out of what came.  1: it is complete, 0: more has to come, or an error. */
static int
parse_greeting(struct rvn_nhalf *h)
{
	uint8_t head[RV_VARINT_MAX];
	size_t n = h->got.bytes < sizeof(head) ? h->got.bytes : sizeof(head);
	uint64_t len;
	int used;

	copy_out(&h->got, 0, head, n);
	used = rv_varint_get(&len, head, n, RV_VARINT_MAX);
	if (used == REEVE_EAGAIN)
		return 0;
	if (used < 0)
		return used;
	if (len > h->peer->p->cfg.max_size)
		return REEVE_ETOOBIG;
	if (h->got.bytes - (size_t)used < len)
		return 0;
	if (len > 0) {
		h->hs = reeve_buf_alloc(h->peer->p->rt, (size_t)len);
		if (h->hs == NULL)
			return REEVE_ENOMEM;
		copy_out(&h->got, (size_t)used, reeve_buf_mut(h->hs), (size_t)len);
	}
	rv_chain_skip(&h->got, (size_t)used + (size_t)len);
	return 1;
}

/* Tell of a half that is open; a session is made if that was what was missing. */
static void
half_ok(struct rvn_nhalf *h, enum rvn_ne_event ev)
{
	struct rvn_narg arg = {.step = REEVE_STEP_VALIDATE};
	reeve_stream_t *out;
	int rc = 0;

	h->step = REEVE_STEP_VALIDATE;
	if (joins(h, ev, &out) && (arg.session = rvn_session_new(h->peer, out, &rc)) == NULL)
		tell_wrong(h, rc);
	else
		tell(h, ev, &arg);
	rvn_session_discard(arg.session);
}

static void
in_ok(struct rvn_nhalf *h)
{
	struct reeve_notif *p = h->peer->p;
	struct rvn_narg arg = {.step = REEVE_STEP_VALIDATE};
	bool held, may;
	int rc = 0;

	rvn_nlock(p);
	held = h->peer->mach.state == RVN_NS_OPEN_HELD ||
	    h->peer->mach.state == RVN_NS_CLOSING_HELD;
	may = (p->cfg.flags & REEVE_NOTIF_ACCEPT_ALL) ||
	    ((p->cfg.flags & REEVE_NOTIF_AUTO_ACCEPT) && rvn_nstate_asked(h->peer->mach.state));
	rvn_nunlock(p);
	if (!held)
		h->deadline = UINT64_MAX;
	if (may && !held && (arg.half = rvn_nhalf_new(h->peer, NULL, 0, &rc)) == NULL)
		tell_wrong(h, rc);
	else
		tell(h, may ? RVN_NE_IN_AUTO : RVN_NE_IN_HS, &arg);
	rvn_nhalf_discard(arg.half);
}

/* The old session has ended: what was held is looked at as if it came now. */
void
rvn_nhalf_again(struct rvn_nhalf *h)
{
	if (h->greeted)
		in_ok(h);
}

/* Bytes came, behind or before the end of the handshake. */
static void
on_bytes(struct rvn_nhalf *h, reeve_buf_t *b)
{
	int rc;

	if (h->greeted &&
	    h->outbound) { /* the other end has nothing to say here: whatever it is, it is ignored */
		rv_buf_unref(b);
		return;
	}
	rc = rv_chain_push(&h->got, b);
	if (rc < 0) {
		tell_wrong(h, rc);
		return;
	}
	if (h->greeted)
		return;
	rc = parse_greeting(h);
	if (rc < 0) {
		tell_wrong(h, rc);
		return;
	}
	if (rc == 0)
		return;
	h->greeted = true;
	if (h->outbound) {
		rv_chain_clear(&h->got);
		h->deadline = handshake_deadline(h);
		half_ok(h, RVN_NE_OUT_OK);
	} else {
		in_ok(h);
	}
}

static void
on_opened_bit(struct rvn_nhalf *h)
{
	struct rvn_open *o = &h->open;
	reeve_reason_t why;

	h->opening = false;
	if (o->rc < 0) {
		h->step = o->step;
		why = rvn_reason(o->rc, rvn_by(o->rc));
		tell_fail(h, &why);
		return;
	}
	h->s = o->stream;
	h->name = o->name;
	if (h->dead)
		return;
	h->step = REEVE_STEP_WRITE;
	h->deadline = handshake_deadline(h);
	send_greeting(h);
	read_more(h);
}

static void
on_read_bit(struct rvn_nhalf *h)
{
	struct rvn_narg arg = {.step = REEVE_STEP_VALIDATE};
	reeve_reason_t why = rvn_reason(REEVE_ETIMEDOUT, REEVE_BY_US);
	reeve_ssize n = h->rd.res;

	h->reading = false;
	if (n > 0) {
		on_bytes(h, h->rd.buf);
	} else if (n == REEVE_ECANCELED && h->yield) {
		return;
	} else if (n == REEVE_ETIMEDOUT && h->deadline > rv_clock_us()) {
		; /* it was moved meanwhile */
	} else if (n == REEVE_ETIMEDOUT && h->outbound && h->greeted) {
		arg.reason = &why;
		h->deadline = UINT64_MAX;
		tell(h, RVN_NE_WAITED, &arg);
	} else if (n == REEVE_ETIMEDOUT) {
		tell_fail(h, &why);
	} else {
		h->end_rc = (int)n;
		tell_ended(h, (int)n);
	}
	read_more(h);
}

static void
on_wrote_bit(struct rvn_nhalf *h)
{
	h->writing = false;
	if (h->wr.res < 0)
		tell_ended(h, (int)h->wr.res);
	else if (!h->outbound)
		half_ok(h, RVN_NE_IN_SENT);
	else if (!h->greeted)
		h->step = REEVE_STEP_READ;
}

void
rvn_nhalf_came(struct rvn_nhalf *h)
{
	rva_ring(&h->peer->actor, &h->bell.bell, RVN_H_CAME);
}

static void
on_came_bit(struct rvn_nhalf *h)
{
	reeve_reason_t why = rvn_reason(REEVE_EPROTO, REEVE_BY_PEER); /* it asks twice at once */
	struct rvn_narg arg = {.half = h, .reason = &why, .step = REEVE_STEP_VALIDATE};

	(void)rvn_npeer_feed(h->peer, RVN_NE_INBOUND, &arg);
	rvn_nhalf_discard(arg.half);
}

void
rvn_nhalf_on(struct rvn_nhalf *h, uint32_t bits)
{
	if (bits & RVN_H_CAME) {
		on_came_bit(h);
		return;
	}
	if (bits & RVN_H_OPENED)
		on_opened_bit(h);
	if (bits & RVN_H_WROTE)
		on_wrote_bit(h);
	if (bits & RVN_H_READ)
		on_read_bit(h);
	if (h->dead)
		maybe_free(h);
	else if (h->yield && h->peer->joining != NULL)
		rvn_npeer_joined(h->peer);
}
