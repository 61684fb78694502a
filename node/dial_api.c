/* dial_api.c - the calls of reeve/node.h about addresses and dialing: any thread. */
#include <config.h>

#include <string.h>

#include "lib/addr.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "node/inner.h"
#include "node/dial.h"
#include "node/link.h"

/* What a dial was asked for. */
struct wish {
	struct rv_peer_id id;
	bool known;               /* id is set */
	char addr[RVN_ADDR_TEXT]; /* "": the remembered ones */
	uint64_t want;
};

static int
read_peer(reeve_node_t *n, const char *peer, struct rv_peer_id *id)
{
	REEVE_REQUIRE(peer != NULL, REEVE_EINVAL);
	REEVE_REQUIRE(rv_peer_id_parse(id, peer) == 0, REEVE_EINVAL);
	return rv_peer_id_same(id, &n->id) ? REEVE_EINVAL : 0;
}

/* One spelling for each address. */
static int
read_address(const char *text, char out[RVN_ADDR_TEXT])
{
	struct rv_addr a;
	int rc = rv_addr_parse(&a, text);

	REEVE_REQUIRE(rc == 0, rc);
	REEVE_REQUIRE(a.kind != RV_ADDR_TCP || a.numeric, REEVE_EINVAL);
	rc = rv_addr_format(&a, out, RVN_ADDR_TEXT);
	return rc < 0 ? rc : 0;
}

static int
read_wish(reeve_node_t *n, struct wish *w, const char *peer, const char *addr)
{
	int rc = 0;

	REEVE_REQUIRE(peer != NULL || addr != NULL, REEVE_EINVAL);
	w->known = peer != NULL;
	w->addr[0] = '\0';
	if (peer != NULL)
		rc = read_peer(n, peer, &w->id);
	if (rc == 0 && addr != NULL)
		rc = read_address(addr, w->addr);
	return rc;
}

static uint64_t
wanted(const reeve_node_t *n, int64_t timeout_ms)
{
	if (timeout_ms < 0)
		timeout_ms = n->dial_ms == REEVE_OFF ? -1 : (int64_t)n->dial_ms;
	return rv_deadline_us(rv_clock_us(), timeout_ms);
}

/* Join or begin a dial; one reference.  1: there is a connection already. */
static int
join(reeve_node_t *n, struct wish *w, struct rvn_dial **d)
{
	const char *addr = w->addr[0] != '\0' ? w->addr : NULL;
	struct rvn_peer *p = NULL;
	int rc = 0;

	rvn_lock(n);
	if (rvn_closing(n))
		rc = REEVE_ECLOSED;
	else if (w->known && (p = rvn_peer_get(n, &w->id)) == NULL)
		rc = REEVE_ENOMEM;
	else if (p != NULL && p->use[0] != NULL)
		rc = 1;
	else
		rc = rvn_dial_join(d, n, p, addr, w->want);
	if (rc == 0)
		rvn_dial_expect(*d);
	if (p != NULL)
		rvn_peer_settle(n, p);
	rvn_unlock(n);
	return rc;
}

static int
begin(reeve_node_t *n, struct wish *w, reeve_op_t *op, struct rvn_dial **d)
{
	int rc;

	w->want = wanted(n, op->timeout_ms);
	op->conn = NULL;
	op->stream = NULL;
	rc = join(n, w, d);
	if (rc == 0)
		rvn_dial_wait(*d, op);
	return rc;
}

void
reeve_node_dial_async(reeve_node_t *n, const char *peer, const char *addr, reeve_op_t *op)
{
	struct rvn_dial *d;
	struct wish w;
	int rc;

	if (op == NULL)
		return;
	rc = n == NULL ? REEVE_EINVAL : op->cq != NULL ? REEVE_ENOTSUP : rva_rt_alive(n->rt);
	if (rc == 0)
		rc = read_wish(n, &w, peer, addr);
	if (rc == 0)
		rc = begin(n, &w, op, &d);
	if (rc == 0)
		rvn_dial_unref(d);
	else
		rva_op_refuse(n != NULL ? n->rt : NULL, op, rc < 0 ? rc : 0);
}

static void
give_text(const char *who, char *out)
{
	if (out != NULL)
		memcpy(out, who, strlen(who) + 1);
}

static int
dial_one(reeve_node_t *n, struct wish *w, char *out, int64_t timeout_ms)
{
	char text[REEVE_PEER_TEXT];
	struct rvn_dial *d;
	struct rva_ask *a = rva_ask_new(n->arena, timeout_ms);
	reeve_op_t res;
	int rc;

	REEVE_REQUIRE(a != NULL, REEVE_ENOMEM);
	w->want = wanted(n, timeout_ms);
	rc = join(n, w, &d);
	if (rc != 0) {
		rva_ask_drop(a);
		if (rc > 0) {
			(void)rv_peer_id_text(&w->id, text);
			give_text(text, out);
		}
		return rc > 0 ? 0 : rc;
	}
	rvn_dial_wait(d, &a->op);
	rc = (int)rva_ask_wait(a, &res);
	if (rc == 0)
		give_text(rvn_dial_who(d), out);
	rvn_dial_unref(d);
	return rc;
}

int
reeve_node_dial(reeve_node_t *n, const char *peer, const char *addr, char *out, int64_t timeout_ms)
{
	struct rv_addr a, found[RVN_ADDRS];
	struct wish w;
	uint64_t deadline, now;
	int rc, nfound = 1;

	REEVE_REQUIRE(n != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(n->rt);
	REEVE_REQUIRE(rc == 0, rc);
	if (addr == NULL || rv_addr_parse(&a, addr) < 0 || a.kind != RV_ADDR_TCP || a.numeric) {
		rc = read_wish(n, &w, peer, addr);
		return rc < 0 ? rc : dial_one(n, &w, out, timeout_ms);
	}
	/* A host name: its addresses one after the other. */
	deadline = wanted(n, timeout_ms);
	rc = nfound = rv_addr_resolve(&a, found, RVN_ADDRS);
	for (int i = 0; i < nfound; i++) {
		char text[RVN_ADDR_TEXT];

		now = rv_clock_us();
		timeout_ms = deadline == UINT64_MAX ? -1
		    : now >= deadline               ? 0
						    : (int64_t)((deadline - now + 999) / 1000);
		rc = rv_addr_format(&found[i], text, sizeof(text));
		rc = rc < 0 ? rc : read_wish(n, &w, peer, text);
		rc = rc < 0 ? rc : dial_one(n, &w, out, timeout_ms);
		if (rc != REEVE_EDIAL)
			break;
	}
	return rc < 0 && rc <= REEVE_ESYS_BASE ? REEVE_EDIAL : rc;
}

int
reeve_node_add_address(reeve_node_t *n, const char *peer, const char *addr)
{
	char text[RVN_ADDR_TEXT];
	struct rv_peer_id id;
	struct rvn_peer *p;
	int rc;

	REEVE_REQUIRE(n != NULL && addr != NULL, REEVE_EINVAL);
	rc = read_peer(n, peer, &id);
	if (rc == 0)
		rc = read_address(addr, text);
	REEVE_REQUIRE(rc == 0, rc);
	rvn_lock(n);
	p = rvn_peer_get(n, &id);
	rc = p == NULL ? REEVE_ENOMEM : rvn_peer_address(n, p, text, false);
	if (p != NULL)
		rvn_peer_settle(n, p);
	rvn_unlock(n);
	return rc;
}
