/*
 * split_bare.c - the same bytes through the same steps by the least that can do it: two threads that block, no
 * library.  One stream, so what a stream costs is a header read and a header written.
 */
#include <config.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/split.h"
#include "perf/split_link.h"

#define MS    "\x13/multistream/1.0.0\n"
#define PLAIN "\x11/plaintext/2.0.0\n"
#define MPLEX "\x0d/mplex/6.7.0\n"

#define EXCHANGE 79

struct bare {
	struct rvp_split_task task;
	struct rvp_split_box box;
	const struct rvp_split_load *load;
	uint8_t exchange[EXCHANGE];
	int listener;
	struct rvp_link end[2]; /* the sender's, the receiver's */
	struct rvp_queue *way;  /* two */
	/* memory: where a listener waits, and what it is offered */
	pthread_mutex_t lock;
	pthread_cond_t offered;
	unsigned name;
	bool offer;
	uint8_t *buf;
	size_t body; /* of the frame that is read: bytes to come */
	unsigned mib;
};

static void *
bare_open(const struct rvp_split_load *l)
{
	struct bare *b = calloc(1, sizeof(*b));
	uint8_t *x;

	(void)l;
	rvp_check(b != NULL, "memory");
	b->way = malloc(2 * sizeof(*b->way));
	rvp_check(b->way != NULL, "memory");
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->offered, NULL);
	rvp_link_init(&b->end[0]);
	rvp_link_init(&b->end[1]);
	/* length, peer id (identity hash of the key), key */
	x = b->exchange;
	memcpy(x, "\x4e\x0a\x26\x00\x24\x08\x01\x12\x20", 9);
	memset(x + 9, 7, 32);
	memcpy(x + 41, "\x12\x24\x08\x01\x12\x20", 6);
	memset(x + 47, 7, 32);
	rvp_split_box_init(&b->box);
	rvp_split_task_start(&b->task, l->pin);
	return b;
}

/* --- a connection --- */

static void
listen_at(struct bare *b)
{
	struct sockaddr_in at = {
	    .sin_family = AF_INET, .sin_addr = {htonl(rvp_split_host(b->load))}};
	int on = 1;

	if (b->load->transport == RVP_MEMORY) {
		pthread_mutex_lock(&b->lock);
		b->name = b->load->turn;
		b->offer = false;
		pthread_mutex_unlock(&b->lock);
		return;
	}
	b->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rvp_check(b->listener >= 0 &&
		setsockopt(b->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
		bind(b->listener, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		listen(b->listener, 1024) == 0,
	    "listen");
}

static void
say_address(struct bare *b)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	char addr[RVP_SPLIT_ADDR], host[INET_ADDRSTRLEN];

	if (b->load->transport == RVP_MEMORY) {
		snprintf(addr, sizeof(addr), "%u", b->name);
	} else {
		rvp_check(
		    getsockname(b->listener, (struct sockaddr *)&at, &len) == 0, "getsockname");
		(void)inet_ntop(AF_INET, &at.sin_addr, host, sizeof(host));
		snprintf(addr, sizeof(addr), "%s %u", host, ntohs(at.sin_port));
	}
	rvp_split_box_put(&b->box, addr);
}

static void
no_delay(int fd)
{
	int on = 1;

	rvp_check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "no delay");
}

static void
connect_to(struct bare *b)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	char addr[RVP_SPLIT_ADDR], *port;
	int fd;

	rvp_split_box_take(&b->box, addr);
	if (b->load->transport == RVP_MEMORY) {
		pthread_mutex_lock(&b->lock);
		rvp_check(strtoul(addr, NULL, 10) == b->name, "name");
		rvp_queue_init(&b->way[0]);
		rvp_queue_init(&b->way[1]);
		rvp_link_queues(&b->end[0], &b->way[0], &b->way[1]);
		b->offer = true;
		pthread_cond_signal(&b->offered);
		pthread_mutex_unlock(&b->lock);
		return;
	}
	port = strchr(addr, ' ');
	*port++ = '\0';
	at.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	rvp_check(inet_pton(AF_INET, addr, &at.sin_addr) == 1, "address");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rvp_check(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0, "connect");
	no_delay(fd);
	rvp_link_socket(&b->end[0], fd);
}

static void
accept_one(struct bare *b)
{
	int fd;

	if (b->load->transport == RVP_MEMORY) {
		pthread_mutex_lock(&b->lock);
		while (!b->offer)
			pthread_cond_wait(&b->offered, &b->lock);
		pthread_mutex_unlock(&b->lock);
		rvp_link_queues(&b->end[1], &b->way[1], &b->way[0]);
		return;
	}
	fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
	rvp_check(fd >= 0, "accept");
	no_delay(fd);
	rvp_link_socket(&b->end[1], fd);
}

/* The queues go when both ends have left; sockets have gone. */
static void
let_go(struct bare *b)
{
	if (b->load->transport == RVP_MEMORY) {
		rvp_queue_fini(&b->way[0]);
		rvp_queue_fini(&b->way[1]);
	}
}

/* --- what both ends say first --- */

static void
say(struct rvp_link *k, const char *what)
{
	rvp_link_put(k, (const uint8_t *)what, strlen(what));
}

static void
hear(struct rvp_link *k, const void *what, size_t n)
{
	uint8_t got[EXCHANGE];
	size_t off = 0;

	while (off < n)
		off += rvp_link_get(k, got + off, n - off);
	rvp_check(memcmp(got, what, n) == 0, "handshake");
}

static void
hear_peer(struct bare *b, struct rvp_link *k)
{
	uint8_t got[EXCHANGE];
	size_t off = 0;

	while (off < EXCHANGE)
		off += rvp_link_get(k, got + off, EXCHANGE - off);
	/* The form, and that the id is the key's. */
	rvp_check(memcmp(got, b->exchange, 9) == 0 && memcmp(got + 41, b->exchange + 41, 6) == 0 &&
		memcmp(got + 9, got + 47, 32) == 0,
	    "exchange");
}

/* As few flights as there can be: one's last words of a step leave with its first of the next. */
static void
dialer(struct bare *b, struct rvp_link *k)
{
	say(k, MS PLAIN);
	rvp_link_flush(k);
	hear(k, MS PLAIN, sizeof(MS PLAIN) - 1);
	rvp_link_put(k, b->exchange, EXCHANGE);
	say(k, MS MPLEX);
	rvp_link_flush(k);
	hear_peer(b, k);
	hear(k, MS MPLEX, sizeof(MS MPLEX) - 1);
}

static void
listener(struct bare *b, struct rvp_link *k)
{
	hear(k, MS PLAIN, sizeof(MS PLAIN) - 1);
	say(k, MS PLAIN);
	rvp_link_put(k, b->exchange, EXCHANGE);
	rvp_link_flush(k);
	hear_peer(b, k);
	hear(k, MS MPLEX, sizeof(MS MPLEX) - 1);
	say(k, MS MPLEX);
	rvp_link_flush(k);
}

/* --- frames --- */

static size_t
header(uint8_t *p, uint8_t flag, size_t body)
{
	size_t n = 0;

	p[n++] = flag;
	for (; body > 127; body >>= 7)
		p[n++] = (uint8_t)(body | 128);
	p[n++] = (uint8_t)body;
	return n;
}

static void
write_all(struct bare *b, size_t bytes)
{
	struct rvp_link *k = &b->end[0];
	size_t off, n;
	uint8_t h[4];

	for (off = 0; off < bytes; off += n) {
		n = bytes - off < b->load->split ? bytes - off : b->load->split;
		rvp_link_put(k, h, header(h, 2, n));
		rvp_link_put(k, b->load->payload + off, n);
	}
	rvp_link_flush(k);
}

static size_t
varint(struct rvp_link *k)
{
	size_t v = 0;
	unsigned shift = 0;
	uint8_t c;

	do {
		c = rvp_link_byte(k);
		v |= (size_t)(c & 127) << shift;
		shift += 7;
	} while (c & 128);
	return v;
}

static size_t
read_some(struct bare *b, uint8_t *to, size_t n)
{
	struct rvp_link *k = &b->end[1];

	while (b->body == 0) {
		rvp_check(varint(k) == 2, "frame");
		b->body = varint(k);
	}
	n = rvp_link_get(k, to, n < b->body ? n : b->body);
	b->body -= n;
	return n;
}

static void
read_all(struct bare *b, size_t bytes)
{
	size_t off = 0, want;

	while (off < bytes) {
		want = bytes - off < RVP_SPLIT_READ ? bytes - off : RVP_SPLIT_READ;
		off += read_some(b, b->buf + off, want);
	}
}

static void
meet(struct bare *b)
{
	say_address(b);
	accept_one(b);
	listener(b, &b->end[1]);
	hear(&b->end[1], "\0\0", 2); /* stream 0, without a name */
}

static void
receive(void *arg)
{
	struct bare *b = arg;

	meet(b);
	b->buf = calloc(1, b->load->bytes);
	rvp_check(b->buf != NULL, "memory");
	read_all(b, b->load->bytes);
	if (b->load->check)
		rvp_split_same(b->buf, b->load);
	free(b->buf);
	rvp_link_close(&b->end[1]);
	if (b->load->transport == RVP_TCP)
		close(b->listener);
}

static void
dial(struct bare *b)
{
	connect_to(b);
	dialer(b, &b->end[0]);
	rvp_link_put(&b->end[0], (const uint8_t *)"\0\0", 2);
}

static void
bare_once(void *run, const struct rvp_split_load *l)
{
	struct bare *b = run;

	b->load = l;
	listen_at(b);
	rvp_split_task_run(&b->task, receive, b);
	dial(b);
	write_all(b, l->bytes);
	rvp_link_close(&b->end[0]);
	rvp_split_task_wait(&b->task);
	let_go(b);
}

/* --- a connection that stays --- */

static void
meet_task(void *arg)
{
	meet(arg);
}

static void
bare_keep(void *run, const struct rvp_split_load *l)
{
	struct bare *b = run;

	b->load = l;
	b->buf = calloc(1, RVP_SPLIT_PAYLOAD);
	rvp_check(b->buf != NULL, "memory");
	listen_at(b);
	rvp_split_task_run(&b->task, meet_task, b);
	dial(b);
	rvp_link_flush(&b->end[0]);
	rvp_split_task_wait(&b->task);
}

static void
receive_kept(void *arg)
{
	struct bare *b = arg;

	for (unsigned i = 0; i < b->mib; i++)
		read_all(b, RVP_SPLIT_PAYLOAD);
	if (b->load->check)
		rvp_split_same(b->buf, b->load);
}

static void
bare_carry(void *run, const struct rvp_split_load *l, unsigned mib)
{
	struct bare *b = run;

	b->load = l;
	b->mib = mib;
	rvp_split_task_run(&b->task, receive_kept, b);
	for (unsigned i = 0; i < mib; i++)
		write_all(b, RVP_SPLIT_PAYLOAD);
	rvp_split_task_wait(&b->task);
}

static void
bare_close(void *run)
{
	struct bare *b = run;

	rvp_split_task_stop(&b->task);
	if (b->mib != 0) {
		rvp_link_close(&b->end[0]);
		rvp_link_close(&b->end[1]);
		if (b->load->transport == RVP_TCP)
			close(b->listener);
		let_go(b);
		free(b->buf);
	}
	rvp_link_fini(&b->end[0]);
	rvp_link_fini(&b->end[1]);
	rvp_split_box_fini(&b->box);
	pthread_cond_destroy(&b->offered);
	pthread_mutex_destroy(&b->lock);
	free(b->way);
	free(b);
}

const struct rvp_split_kind rvp_split_bare = {
    "bare", bare_open, bare_once, bare_keep, bare_carry, bare_close};
