/* noise_peer.c - see noise_peer.h. */
#include <config.h>

#include "tests/kit/noise_peer.h"

#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/engine/gather.h"
#include "tests/kit/peer.h"
#include "tests/kit/sock.h"

struct rvt_np rvt_np;

void
rvt_np_begin(int role, const char *expect)
{
	reeve_upgrade_t up = {
	    .size = sizeof(up), .security = REEVE_NOISE, .muxers = {REEVE_YAMUX}, .expect = expect};
	uint8_t seed[32];
	reeve_cfg_t cfg;
	int v[2];

	for (int i = 0; i < 2; i++) {
		memset(seed, i + 5, sizeof(seed));
		ck_assert_int_eq(reeve_key_from_seed(&rvt_np.key[i], seed), 0);
	}
	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = REEVE_OFF;
	up.identity = rvt_np.key[0];
	cfg.upgrade = &up;
	ck_assert_int_eq(reeve_rt_create(&rvt_np.rt, NULL), 0);
	rvt_unix_pair(v);
	rvt_np.fd = v[1];
	ck_assert_int_eq(reeve_conn_open_fd(&rvt_np.c, rvt_np.rt, v[0], role, &cfg), 0);
	rvt_np.k = reeve_conn_ctl(rvt_np.c);
	rvt_np.arena = rv_arena_create(NULL);
	rvt_np.pool = rv_pool_create(rvt_np.arena);
	rvt_np.g = malloc(sizeof(*rvt_np.g));
	rv_noise_init(&rvt_np.x, role == REEVE_LISTENER, rvt_np.key[1], NULL);
}

void
rvt_np_finish(void)
{
	reeve_conn_destroy(rvt_np.c);
	reeve_rt_destroy(rvt_np.rt);
	if (rvt_np.fd >= 0)
		close(rvt_np.fd);
	if (rvt_np.f != NULL)
		rvt_np.f->ops->destroy(rvt_np.f);
	rv_noise_fini(&rvt_np.x);
	rv_pool_close(rvt_np.pool);
	rv_arena_unref(rvt_np.arena);
	free(rvt_np.g);
	for (int i = 0; i < 2; i++)
		reeve_key_free(rvt_np.key[i]);
	rvt_bytes_fini(&rvt_np.in);
	rvt_bytes_fini(&rvt_np.out);
	rvt_bytes_fini(&rvt_np.plain);
}

/* --- bytes as they are */

void
rvt_np_put(const void *p, size_t n)
{
	memcpy(rvt_bytes_more(&rvt_np.out, n), p, n);
}

/* Everything that was put, in pieces. */
void
rvt_np_flush(size_t piece)
{
	size_t k;

	for (size_t at = 0; at < rvt_np.out.n; at += k) {
		k = rvt_np.out.n - at < piece ? rvt_np.out.n - at : piece;
		ck_assert_int_eq(send(rvt_np.fd, rvt_np.out.p + at, k, MSG_NOSIGNAL), (ssize_t)k);
	}
	rvt_np.out.n = 0;
}

/* False: the end. */
bool
rvt_np_more(void)
{
	struct pollfd p = {.fd = rvt_np.fd, .events = POLLIN};
	ssize_t k;

	ck_assert_int_eq(poll(&p, 1, rvt_slow(10000)), 1);
	k = recv(rvt_np.fd, rvt_bytes_more(&rvt_np.in, 4096), 4096, 0);
	rvt_np.in.n -= 4096 - (size_t)(k > 0 ? k : 0);
	return k > 0;
}

void
rvt_np_want(const void *p, size_t n)
{
	while (rvt_np.in.n - rvt_np.in.at < n)
		ck_assert(rvt_np_more());
	ck_assert_mem_eq(rvt_np.in.p + rvt_np.in.at, p, n);
	rvt_np.in.at += n;
}

/* --- the handshake */

void
rvt_np_noise_out(void)
{
	const uint8_t *p;
	size_t n = rv_noise_out(&rvt_np.x, &p);

	rvt_np_put(p, n);
	rv_noise_sent(&rvt_np.x, n);
}

void
rvt_np_noise_in(size_t n)
{
	while (rvt_np.in.n - rvt_np.in.at < n)
		ck_assert(rvt_np_more());
	ck_assert_uint_eq(rv_noise_feed(&rvt_np.x, rvt_np.in.p + rvt_np.in.at, n), n);
	rvt_np.in.at += n;
}

/* Seal n bytes into one message, behind what was put. */
void
rvt_np_seal(const void *p, size_t n)
{
	struct iovec v[RV_FILTER_IOV];
	int k;

	rv_pool_enter(rvt_np.pool);
	rv_gather_reset(rvt_np.g);
	rv_gather_ref(rvt_np.g, p, n);
	ck_assert_int_eq(rvt_np.f->ops->seal(rvt_np.f, rvt_np.pool, rvt_np.g), 0);
	k = rv_filter_iov(rvt_np.f, v);
	for (int i = 0; i < k; i++)
		rvt_np_put(v[i].iov_base, v[i].iov_len);
	rv_filter_sent(rvt_np.f, rvt_np.f->out_left);
	rv_pool_enter(NULL);
}

/* Open what has come. */
void
rvt_np_open_in(void)
{
	struct rv_part part;
	size_t n;

	rv_pool_enter(rvt_np.pool);
	while (rvt_np.in.at < rvt_np.in.n) {
		n = rvt_np.in.n - rvt_np.in.at < 65536 ? rvt_np.in.n - rvt_np.in.at : 65536;
		ck_assert_int_eq(
		    rvt_np.f->ops->open(rvt_np.f, rvt_np.pool, rvt_np.in.p + rvt_np.in.at, n), 0);
		rvt_np.in.at += n;
		while (rv_filter_pop(rvt_np.f, &part)) {
			memcpy(rvt_bytes_more(&rvt_np.plain, part.len), part.slab->data + part.off,
			    part.len);
			rv_slab_unref(part.slab);
		}
	}
	rvt_bytes_pack(&rvt_np.in);
	rv_pool_enter(NULL);
}

void
rvt_np_want_plain(const void *p, size_t n)
{
	rvt_np_open_in();
	while (rvt_np.plain.n - rvt_np.plain.at < n) {
		ck_assert(rvt_np_more());
		rvt_np_open_in();
	}
	ck_assert_mem_eq(rvt_np.plain.p + rvt_np.plain.at, p, n);
	rvt_np.plain.at += n;
}

void
rvt_np_filter(void)
{
	ck_assert(rvt_np.x.done);
	ck_assert_int_eq(rvt_np.x.rc, 0);
	ck_assert_int_eq(rv_noise_filter(&rvt_np.x, &rvt_np.f, rvt_np.arena), 0);
}

/* We listen, the peer dials: up to and with the last message of noise, which is put but not sent. */
void
rvt_np_dial_noise(void)
{
	rvt_np_put(STR(HELLO NOISE));
	rvt_np_flush(SIZE_MAX);
	rvt_np_want(STR(HELLO NOISE));
	rvt_np_noise_out();
	rvt_np_flush(SIZE_MAX);
	rvt_np_noise_in(202);
	rvt_np_noise_out();
	rvt_np_filter();
}

void
rvt_np_dial(void)
{
	rvt_np_dial_noise();
	rvt_np_seal(STR(HELLO YAMUX));
	rvt_np_flush(SIZE_MAX);
	rvt_np_want_plain(STR(HELLO YAMUX));
	ck_assert_int_eq(reeve_ready(rvt_np.k, rvt_slow(10000)), 0);
}

/* A stream of the peer's with n bytes, sealed. */
void
rvt_np_stream(uint32_t id, uint32_t n)
{
	struct rvt_bytes b = {0};

	rvt_put_data(&b, RVT_SYN, id, n, 0);
	rvt_np_seal(b.p, b.n);
	rvt_bytes_fini(&b);
}

reeve_stream_t *
rvt_np_accepted(void)
{
	reeve_stream_t *s;

	ck_assert_int_eq(reeve_accept(rvt_np.k, &s, rvt_slow(10000)), 0);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD | REEVE_WR, rvt_slow(10000)), 0);
	return s;
}

void
rvt_np_want_reason(int rc, uint32_t by, const char *id)
{
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_op_t op;

	reeve_op_init(&op, NULL, NULL);
	reeve_closed_async(rvt_np.k, &op);
	(void)reeve_op_wait(&op);
	ck_assert_int_eq(reeve_ctl_reason(rvt_np.k, &why), 0);
	ck_assert_str_eq(reeve_errname(why.rc), reeve_errname(rc));
	ck_assert_uint_eq(why.by, by);
	if (id != NULL)
		ck_assert_str_eq(why.id, id);
}
