/* net.c - see net.h. */
#include <config.h>

#include "tests/kit/net.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/duo.h"
#include "tests/kit/peer.h"

const char *const rvt_fake_names[] = {"/fake/2", "/fake/1"};

/* --- the protocol */

static struct rvt_fake_peer *
fake_peer(struct rvt_fake *f, const char *id)
{
	for (unsigned i = 0; i < f->npeers; i++)
		if (strcmp(f->peer[i].id, id) == 0)
			return &f->peer[i];
	if (f->npeers == 64)
		return NULL;
	snprintf(f->peer[f->npeers].id, REEVE_PEER_TEXT, "%s", id);
	return &f->peer[f->npeers++];
}

static void
fake_inbound(struct rvn_proto *p, const char *peer, reeve_stream_t *s, unsigned name)
{
	struct rvt_fake *f = (struct rvt_fake *)(void *)p;
	struct rvt_fake_peer *who;
	bool keep;

	pthread_mutex_lock(&f->lock);
	who = fake_peer(f, peer);
	if (who != NULL && !who->up)
		f->disorder = true;
	f->inbound++;
	f->names[name % 4]++;
	keep = !f->drop && !f->closed && f->nkept < RVT_FAKE_KEEP;
	if (keep)
		f->kept[f->nkept++] = s;
	pthread_mutex_unlock(&f->lock);
	if (f->cut)
		(void)reeve_abort(reeve_stream_ctl(s), 0);
	if (!keep)
		reeve_close(s);
}

static void
fake_peer_event(struct rvn_proto *p, const char *peer, const reeve_reason_t *why)
{
	struct rvt_fake *f = (struct rvt_fake *)(void *)p;
	struct rvt_fake_peer *who;

	pthread_mutex_lock(&f->lock);
	who = fake_peer(f, peer);
	if (who != NULL) {
		if (who->up == (why == NULL))
			f->disorder = true;
		who->up = why == NULL;
	}
	f->balance += why == NULL ? 1 : -1;
	if (why == NULL)
		f->ups++;
	else
		f->downs++;
	pthread_mutex_unlock(&f->lock);
}

void
rvt_fake_let_go(struct rvt_fake *f)
{
	unsigned n;

	pthread_mutex_lock(&f->lock);
	n = f->nkept;
	f->nkept = 0;
	for (unsigned i = 0; i < n; i++)
		reeve_close(f->kept[i]);
	pthread_mutex_unlock(&f->lock);
}

static void
fake_close(struct rvn_proto *p)
{
	struct rvt_fake *f = (struct rvt_fake *)(void *)p;

	pthread_mutex_lock(&f->lock);
	f->closed = true;
	pthread_mutex_unlock(&f->lock);
	rvt_fake_let_go(f);
}

static void
fake_free(struct rvn_proto *p)
{
	((struct rvt_fake *)(void *)p)->freed = true;
}

static const struct rvn_proto_ops fake_ops = {fake_inbound, fake_peer_event, fake_close, fake_free};

/* --- nodes */

static void
on_peer(void *arg, int event, const char *peer, const char *addr, const reeve_reason_t *why)
{
	struct rvt_net_node *m = arg;

	(void)addr;
	pthread_mutex_lock(&m->fake.lock);
	if (event == REEVE_PEER_CONNECTED)
		m->connected++;
	else if (event == REEVE_PEER_DISCONNECTED)
		m->disconnected++;
	else
		m->dial_failed++;
	if (why != NULL)
		m->why = *why;
	snprintf(m->last, sizeof(m->last), "%s", peer != NULL ? peer : "");
	pthread_mutex_unlock(&m->fake.lock);
	if (m->hook != NULL)
		m->hook(m, event, peer);
}

int
rvt_net_node(struct rvt_net *t, unsigned i, const struct rvt_net_cfg *cfg, unsigned key)
{
	struct rvt_net_node *m = &t->node[i];
	reeve_node_cfg_t nc = cfg->node;
	reeve_upgrade_t up = {.size = sizeof(up), .security = REEVE_PLAINTEXT};
	reeve_key_t *identity = NULL;
	reeve_cfg_t conn;
	int rc;

	memset(&m->fake, 0, sizeof(m->fake));
	m->connected = m->disconnected = m->dial_failed = 0;
	pthread_mutex_init(&m->fake.lock, NULL);
	memset(m->key, (int)key, sizeof(m->key));
	if (cfg->noise) {
		ck_assert_int_eq(reeve_key_from_seed(&identity, m->key), 0);
		up.security = REEVE_NOISE;
		up.identity = identity;
	} else {
		up.key = m->key;
	}
	up.muxers[0] = cfg->muxer;
	if (cfg->conn != NULL)
		conn = *cfg->conn;
	else
		reeve_cfg_init(&conn);
	conn.upgrade = &up;
	nc.size = sizeof(nc);
	nc.conn = &conn;
	nc.fn = on_peer;
	nc.arg = m;
	rc = reeve_node_create(&m->n, m->rt, &nc);
	reeve_key_free(identity);
	if (rc < 0) {
		m->n = NULL;
		return rc;
	}
	ck_assert_int_gt(reeve_node_id(m->n, m->id, sizeof(m->id)), 0);
	m->fake.p.ops = &fake_ops;
	rc = rvn_proto_install(m->n, &m->fake.p, rvt_fake_names, 2);
	if (rc < 0 || cfg->deaf)
		return rc;
	if (m->addr[0] == '\0')
		rvt_scratch(cfg->via == RVT_PAIR ? RVT_MEMORY : cfg->via, m->addr, sizeof(m->addr));
	rc = reeve_node_listen(m->n, m->addr);
	if (rc == 0)
		ck_assert_int_gt(reeve_node_addr(m->n, 0, m->addr, sizeof(m->addr)), 0);
	return rc;
}

void
rvt_net_start(struct rvt_net *t, const struct rvt_net_cfg *cfg)
{
	reeve_rt_cfg_t rc;

	memset(t, 0, sizeof(*t));
	t->base = rvt_base();
	rvt_alloc_init(&t->alloc);
	t->n = cfg->nodes != 0 ? cfg->nodes : 2;
	for (unsigned i = 0; i < t->n; i++) {
		reeve_rt_cfg_init(&rc);
		rc.workers = cfg->workers != 0 ? cfg->workers : 2;
		rc.alloc = t->alloc.a;
		ck_assert_int_eq(reeve_rt_create(&t->node[i].rt, &rc), 0);
		ck_assert_int_eq(rvt_net_node(t, i, cfg, i + 1), 0);
	}
}

reeve_node_stats_t
rvt_net_stats(struct rvt_net *t, unsigned i)
{
	reeve_node_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_node_stats(t->node[i].n, &st), 0);
	return st;
}

void
rvt_net_stop(struct rvt_net *t, unsigned i, int64_t timeout_ms)
{
	struct rvt_net_node *m = &t->node[i];
	reeve_node_stats_t st;
	int rc;

	if (m->n == NULL)
		return;
	rc = reeve_node_close(m->n, timeout_ms);
	ck_assert_msg(rc == 0 || rc == REEVE_ETIMEDOUT, "close: %s", reeve_errname(rc));
	st = rvt_net_stats(t, i);
	ck_assert_uint_eq(st.peers + st.conns + st.dials + st.negotiating + st.opening, 0);
	ck_assert_int_eq(m->fake.balance, 0);
	ck_assert_uint_eq(m->connected, m->disconnected);
	ck_assert_uint_eq(m->fake.ups, m->fake.downs);
	ck_assert(!m->fake.disorder);
	ck_assert(m->fake.closed);
	reeve_node_destroy(m->n);
	ck_assert(m->fake.freed);
	pthread_mutex_destroy(&m->fake.lock);
	m->n = NULL;
}

void
rvt_net_end(struct rvt_net *t)
{
	for (unsigned i = 0; i < t->n; i++) /* a graceful end waits for both ends of each stream */
		if (t->node[i].n != NULL)
			rvt_fake_let_go(&t->node[i].fake);
	for (unsigned i = 0; i < t->n; i++)
		rvt_net_stop(t, i, 1000);
	for (unsigned i = 0; i < t->n; i++)
		reeve_rt_destroy(t->node[i].rt);
	rvt_scratch_end();
	rvt_alloc_check(&t->alloc);
	rvt_base_check(&t->base);
}

void
rvt_net_introduce(struct rvt_net *t, unsigned i, unsigned j)
{
	ck_assert_int_eq(reeve_node_add_address(t->node[i].n, t->node[j].id, t->node[j].addr), 0);
}

void
rvt_net_connect(struct rvt_net *t, unsigned i, unsigned j)
{
	char who[REEVE_PEER_TEXT];
	int rc = reeve_node_dial(
	    t->node[i].n, t->node[j].id, t->node[j].addr, who, rvt_slow(RVT_WAIT_MS));

	ck_assert_msg(rc == 0, "dial: %s", reeve_errname(rc));
	ck_assert_str_eq(who, t->node[j].id);
}

unsigned
rvt_fake_inbound(struct rvt_net_node *m)
{
	unsigned n;

	pthread_mutex_lock(&m->fake.lock);
	n = m->fake.inbound;
	pthread_mutex_unlock(&m->fake.lock);
	return n;
}

unsigned
rvt_net_events(struct rvt_net_node *m, int event)
{
	unsigned n;

	pthread_mutex_lock(&m->fake.lock);
	n = event == REEVE_PEER_CONNECTED      ? m->connected
	    : event == REEVE_PEER_DISCONNECTED ? m->disconnected
					       : m->dial_failed;
	pthread_mutex_unlock(&m->fake.lock);
	return n;
}

/* --- opens */

static void
on_open(struct rvn_open *open)
{
	struct rvt_opening *o = (struct rvt_opening *)(void *)open;

	pthread_mutex_lock(&o->lock);
	o->calls++;
	o->inside = pthread_equal(o->starter, pthread_self()) != 0;
	o->ms = rvt_ms();
	pthread_cond_broadcast(&o->cond);
	pthread_mutex_unlock(&o->lock);
}

void
rvt_opening_init(struct rvt_opening *o, unsigned flags, int64_t timeout_ms)
{
	memset(o, 0, sizeof(*o));
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->cond, NULL);
	o->o.fn = on_open;
	o->o.names = rvt_fake_names;
	o->o.nnames = 2;
	o->o.flags = flags;
	o->o.deadline = rv_deadline_us(rv_clock_us(), timeout_ms);
}

void
rvt_open(struct rvt_net *t, unsigned i, unsigned j, struct rvt_opening *o)
{
	o->starter = pthread_self();
	rvn_open(t->node[i].n, t->node[j].id, &o->o);
}

bool
rvt_opening_done(struct rvt_opening *o)
{
	bool done;

	pthread_mutex_lock(&o->lock);
	done = o->calls > 0;
	pthread_mutex_unlock(&o->lock);
	return done;
}

int
rvt_opening_wait(struct rvt_opening *o)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += rvt_slow(RVT_WAIT_MS) / 1000;
	pthread_mutex_lock(&o->lock);
	while (o->calls == 0)
		ck_assert_msg(pthread_cond_timedwait(&o->cond, &o->lock, &until) == 0,
		    "an open was never completed");
	ck_assert_uint_eq(o->calls, 1);
	ck_assert(!o->inside || o->anywhere);
	pthread_mutex_unlock(&o->lock);
	if (o->o.stream != NULL) {
		ck_assert_int_eq(o->o.rc, 0);
		reeve_close(o->o.stream);
		o->o.stream = NULL;
	} else {
		ck_assert_int_lt(o->o.rc, 0);
	}
	pthread_cond_destroy(&o->cond);
	pthread_mutex_destroy(&o->lock);
	return o->o.rc;
}

/* --- strangers */

static void
stranger_cfg(struct rvt_stranger *s, reeve_cfg_t *cfg, reeve_upgrade_t *up)
{
	*up = (reeve_upgrade_t){.size = sizeof(*up), .security = REEVE_PLAINTEXT, .key = s->key};
	reeve_cfg_init(cfg);
	cfg->upgrade = up;
}

void
rvt_stranger_start(struct rvt_stranger *s, reeve_rt_t *rt, unsigned key)
{
	struct rv_pubkey pub = {.type = RV_KEY_ED25519, .len = 32};
	struct rv_peer_id id;
	reeve_upgrade_t up;
	reeve_cfg_t cfg;

	memset(s, 0, sizeof(*s));
	memset(s->key, (int)key, sizeof(s->key));
	memcpy(pub.v, s->key, 32);
	rv_peer_id_of(&id, &pub);
	(void)rv_peer_id_text(&id, s->id);
	stranger_cfg(s, &cfg, &up);
	ck_assert_int_eq(reeve_listen(&s->l, rt, "tcp://127.0.0.1:0", &cfg), 0);
	ck_assert_int_gt(reeve_listener_addr(s->l, s->addr, sizeof(s->addr)), 0);
}

void
rvt_stranger_accept(struct rvt_stranger *s)
{
	ck_assert_int_eq(reeve_listener_accept(s->l, &s->c, rvt_slow(RVT_WAIT_MS)), 0);
	s->k = reeve_conn_ctl(s->c);
}

int
rvt_stranger_dial(struct rvt_stranger *s, reeve_rt_t *rt, const char *addr)
{
	reeve_upgrade_t up;
	reeve_cfg_t cfg;
	int rc;

	stranger_cfg(s, &cfg, &up);
	rc = reeve_dial(&s->c, rt, addr, &cfg, rvt_slow(RVT_WAIT_MS));
	s->k = rc == 0 ? reeve_conn_ctl(s->c) : NULL;
	return rc;
}

void
rvt_stranger_end(struct rvt_stranger *s)
{
	reeve_conn_destroy(s->c);
	reeve_listener_destroy(s->l);
}

void
rvt_silent_start(struct rvt_silent *s, enum rvt_quiet how)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);

	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	if (how != RVT_NOBODY)
		ck_assert_int_eq(listen(s->fd, how == RVT_DEAF ? 0 : 64), 0);
	ck_assert_int_eq(getsockname(s->fd, (struct sockaddr *)&sa, &len), 0);
	snprintf(s->addr, sizeof(s->addr), "tcp://127.0.0.1:%u", ntohs(sa.sin_port));
	for (int i = 0; i < 8; i++) {
		s->filler[i] = how == RVT_DEAF ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)
					       : -1;
		if (how == RVT_DEAF)
			(void)connect(s->filler[i], (struct sockaddr *)&sa, sizeof(sa));
	}
}

void
rvt_silent_end(struct rvt_silent *s)
{
	for (int i = 0; i < 8; i++)
		if (s->filler[i] >= 0)
			close(s->filler[i]);
	close(s->fd);
}

void
rvt_nobody(char addr[64])
{
	snprintf(addr, 64, "mem://nobody-%ld", (long)getpid());
}
