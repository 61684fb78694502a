/* peers.c - the table of peers, their addresses, and what is told of them.  See inner.h. */
#include <config.h>

#include "node/inner.h"
#include "node/link.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/check.h"

#define BUCKETS 64

/* --- the table: under the lock --- */

/* Where things are in memory is random, and when it began nobody knows to the microsecond. */
uint64_t
rvn_seed(const void *at)
{
	struct timespec now;
	uint64_t x;

	if (getentropy(&x, sizeof(x)) == 0)
		return x;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)(uintptr_t)at ^ (uint64_t)now.tv_nsec << 20 ^ (uint64_t)now.tv_sec << 40;
}

/* Peers choose their ids, so the seed is secret. */
static size_t
bucket_of(const reeve_node_t *n, const struct rv_peer_id *id)
{
	uint64_t h = n->seed ^ id->len;

	for (uint32_t i = 0; i < id->len; i++) {
		h = (h ^ id->v[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return (size_t)(h % n->nbuckets);
}

struct rvn_peer *
rvn_peer_find(reeve_node_t *n, const struct rv_peer_id *id)
{
	struct rvn_peer *p;

	if (n->nbuckets == 0)
		return NULL;
	for (p = n->bucket[bucket_of(n, id)]; p != NULL; p = p->chain)
		if (rv_peer_id_same(&p->id, id))
			break;
	return p;
}

/* Without memory the chains become longer, that is all; but for the first time. */
static bool
make_room(reeve_node_t *n)
{
	size_t old = n->nbuckets, i;
	struct rvn_peer **bucket, **from = n->bucket, *p, *next;

	if (n->npeers < 2 * old)
		return true;
	bucket = rv_zalloc(n->arena, (old == 0 ? BUCKETS : 2 * old) * sizeof(struct rvn_peer *));
	if (bucket == NULL)
		return old > 0;
	n->bucket = bucket;
	n->nbuckets = old == 0 ? BUCKETS : 2 * old;
	for (i = 0; i < old; i++)
		for (p = from[i]; p != NULL; p = next) {
			size_t at = bucket_of(n, &p->id);

			next = p->chain;
			p->chain = bucket[at];
			bucket[at] = p;
		}
	rv_free(n->arena, from, old * sizeof(struct rvn_peer *));
	return true;
}

struct rvn_peer *
rvn_peer_get(reeve_node_t *n, const struct rv_peer_id *id)
{
	struct rvn_peer *p = rvn_peer_find(n, id);
	size_t at;

	if (p != NULL)
		return p;
	if (!make_room(n))
		return NULL;
	p = rv_zalloc(n->arena, sizeof(*p));
	if (p == NULL)
		return NULL;
	p->id = *id;
	(void)rv_peer_id_text(id, p->text);
	p->opens_end = &p->opens;
	p->events_end = &p->events;
	at = bucket_of(n, id);
	p->chain = n->bucket[at];
	n->bucket[at] = p;
	n->npeers++;
	return p;
}

static void
free_peer(reeve_node_t *n, struct rvn_peer *p)
{
	struct rvn_peer **at = &n->bucket[bucket_of(n, &p->id)];

	while (*at != p)
		at = &(*at)->chain;
	*at = p->chain;
	n->npeers--;
	if (p->booked)
		n->nbooked--;
	for (unsigned i = 0; i < p->naddrs; i++)
		rv_free(n->arena, p->addr[i], strlen(p->addr[i]) + 1);
	rv_free(n->arena, p, sizeof(*p));
}

/* --- the order of use of those that only addresses hold --- */

static void
unlist(reeve_node_t *n, struct rvn_peer *p)
{
	if (!p->listed)
		return;
	*(p->old != NULL ? &p->old->young : &n->oldest) = p->young;
	*(p->young != NULL ? &p->young->old : &n->youngest) = p->old;
	p->listed = false;
}

static void
list_youngest(reeve_node_t *n, struct rvn_peer *p)
{
	unlist(n, p);
	p->old = n->youngest;
	p->young = NULL;
	*(p->old != NULL ? &p->old->young : &n->oldest) = p;
	n->youngest = p;
	p->listed = true;
}

void
rvn_peer_settle(reeve_node_t *n, struct rvn_peer *p)
{
	bool busy = p->nlinks > 0 || p->dial != NULL || p->opens != NULL || p->events != NULL ||
	    p->delivering;

	if (busy)
		unlist(n, p);
	else if (p->naddrs > 0)
		list_youngest(n, p);
	else {
		unlist(n, p);
		free_peer(n, p);
	}
	while (n->nbooked > n->max_peers && n->oldest != NULL) {
		p = n->oldest;
		unlist(n, p);
		free_peer(n, p);
	}
}

int
rvn_peer_address(reeve_node_t *n, struct rvn_peer *p, const char *addr, bool first)
{
	size_t size = strlen(addr) + 1;
	unsigned at = 0;
	char *text;

	while (at < p->naddrs && strcmp(p->addr[at], addr) != 0)
		at++;
	if (at < p->naddrs && !first)
		return 0;
	if (at < p->naddrs) {
		text = p->addr[at];
	} else {
		text = rv_alloc(n->arena, size, 1);
		REEVE_REQUIRE(text != NULL, REEVE_ENOMEM);
		memcpy(text, addr, size);
		if (p->naddrs == RVN_ADDRS) {
			at = RVN_ADDRS - 1;
			rv_free(n->arena, p->addr[at], strlen(p->addr[at]) + 1);
		} else {
			at = p->naddrs++;
		}
		if (!p->booked)
			n->nbooked++;
		p->booked = true;
	}
	if (first) {
		memmove(&p->addr[1], &p->addr[0], at * sizeof(p->addr[0]));
		at = 0;
	}
	p->addr[at] = text;
	return 0;
}

void
rvn_peers_free(reeve_node_t *n)
{
	while (n->oldest != NULL) {
		struct rvn_peer *p = n->oldest;

		unlist(n, p);
		free_peer(n, p);
	}
	rv_free(n->arena, n->bucket, n->nbuckets * sizeof(struct rvn_peer *));
	n->bucket = NULL;
	n->nbuckets = 0;
}

/* --- what is told --- */

bool
rvn_peer_tell(reeve_node_t *n, struct rvn_peer *p, struct rvn_event *ev)
{
	bool mine = !p->delivering;

	ev->next = NULL;
	*p->events_end = ev;
	p->events_end = &ev->next;
	p->delivering = true;
	if (mine)
		n->things++;
	return mine;
}

/* The application hears of a connection after the protocols, and of its end too: what it then asks of them works, or
 * they know why not. */
static void
tell(reeve_node_t *n, const char *peer, const struct rvn_event *ev, struct rvn_proto *protos)
{
	const reeve_reason_t *why = ev->kind == RVN_EV_DOWN ? &ev->why : NULL;
	const char *addr = ev->link->addr[0] != '\0' ? ev->link->addr : NULL;

	if (ev->kind == RVN_EV_GO)
		return;
	for (struct rvn_proto *p = protos; p != NULL; p = p->next)
		if (p->ops->peer != NULL)
			p->ops->peer(p, peer, why);
	if (n->fn != NULL)
		n->fn(n->arg, why != NULL ? REEVE_PEER_DISCONNECTED : REEVE_PEER_CONNECTED, peer,
		    addr, why);
}

void
rvn_deliver(reeve_node_t *n, struct rvn_peer *p)
{
	struct rvn_event *ev;
	struct rvn_proto *protos;
	struct rvn_link *l;

	for (;;) {
		rvn_lock(n);
		ev = p->events;
		if (ev == NULL) {
			p->delivering = false;
			rvn_peer_settle(n, p);
			rvn_thing_put(n);
			rvn_unlock(n);
			return;
		}
		p->events = ev->next;
		if (p->events == NULL)
			p->events_end = &p->events;
		protos = n->protos;
		rvn_unlock(n);
		l = ev->link;
		tell(n, p->text, ev, protos);
		if (ev->kind != RVN_EV_DOWN)
			rva_ring(&l->actor, &l->bell, RVN_LINK_GO);
		rvn_link_unref(l);
	}
}
