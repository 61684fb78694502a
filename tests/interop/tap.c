/* tap.c - a TCP relay that reads the frames that pass: usage: tap --to HOST:PORT (IPv4) [--mux mplex].  Prints "listening
 * HOST:PORT"; at SIGTERM "up BYTES down BYTES", the largest bodies of DATA frames that passed whole, by direction (up:
 * from who connects).  Two threads a connection, one a direction; they share the two maxima, under a mutex. */
#include <config.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER 12

/* One direction of a connection. */
struct way {
	int from, to;
	int up;
	size_t have; /* bytes of the header at hand; mplex: bytes of the varint at hand */
	uint8_t header[HEADER];
	uint64_t varint,
	    first; /* mplex: the one at hand, and the one before it when that was a header */
	int second;
	uint32_t body, left; /* of the frame at hand; body is 0 when it is not data */
};

static int mplex; /* set before there are threads */

static struct {
	pthread_mutex_t lock;
	uint32_t largest[2]; /* down, up */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
need(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "tap: %s\n", what);
		exit(1);
	}
}

static void
frame_passed(struct way *w)
{
	pthread_mutex_lock(&seen.lock);
	if (w->body > seen.largest[w->up])
		seen.largest[w->up] = w->body;
	pthread_mutex_unlock(&seen.lock);
}

static uint32_t
length_of(const uint8_t *header)
{
	return (uint32_t)header[8] << 24 | (uint32_t)header[9] << 16 | (uint32_t)header[10] << 8 |
	    header[11];
}

/* Takes bytes of a header: how many.  Only DATA (type 0) has a body. */
static size_t
yamux_header(struct way *w, const uint8_t *p, size_t n)
{
	size_t part = HEADER - w->have;

	if (part > n)
		part = n;
	memcpy(w->header + w->have, p, part);
	if ((w->have += part) == HEADER) {
		w->have = 0;
		w->body = w->left = w->header[1] == 0 ? length_of(w->header) : 0;
	}
	return part;
}

/* Two varints, and a body whatever the frame is; 1 and 2 are data. */
static size_t
mplex_header(struct way *w, const uint8_t *p)
{
	w->varint |= (uint64_t)(*p & 0x7f) << 7 * w->have++;
	if ((*p & 0x80) != 0) {
		need(w->have < 9, "that is not mplex");
		return 1;
	}
	if (w->second) {
		w->left = (uint32_t)w->varint;
		w->body = (w->first & 7) == 1 || (w->first & 7) == 2 ? w->left : 0;
	}
	w->first = w->varint;
	w->second = !w->second;
	w->varint = w->have = 0;
	return 1;
}

static void
watch(struct way *w, const uint8_t *p, size_t n)
{
	while (n > 0) {
		size_t part = w->left < n ? w->left : n;

		if (w->left == 0)
			part = mplex ? mplex_header(w, p) : yamux_header(w, p, n);
		else if ((w->left -= (uint32_t)part) == 0)
			frame_passed(w);
		p += part;
		n -= part;
	}
}

static void *
carry(void *arg)
{
	static const size_t room = 65536;
	struct way *w = arg;
	uint8_t *piece = malloc(room);
	ssize_t n = 0, put = 0, at;

	need(piece != NULL, "out of memory");
	while (put >= 0 && (n = read(w->from, piece, room)) > 0) {
		watch(w, piece, (size_t)n);
		for (at = 0; at < n && put >= 0; at += put)
			put = send(w->to, piece + at, (size_t)(n - at), MSG_NOSIGNAL);
	}
	shutdown(w->to, SHUT_WR);
	if (put < 0)
		shutdown(w->from, SHUT_RD);
	free(piece);
	return NULL;
}

static struct sockaddr_in
address_of(const char *text)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	const char *colon = strchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";

	need(colon != NULL && (size_t)(colon - text) < sizeof(host), "an address is HOST:PORT");
	memcpy(host, text, (size_t)(colon - text));
	a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	need(inet_pton(AF_INET, host, &a.sin_addr) == 1, "the host has to be an IPv4 address");
	return a;
}

/* One connection at a time, which is what the cases make; its threads end with it. */
static void *
serve(void *arg)
{
	const struct sockaddr_in *to = arg;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0), fd, target;
	pthread_t thread[2];

	need(l >= 0 && bind(l, (struct sockaddr *)&a, len) == 0 && listen(l, 8) == 0 &&
		getsockname(l, (struct sockaddr *)&a, &len) == 0,
	    "cannot listen");
	printf("listening 127.0.0.1:%u\n", ntohs(a.sin_port));
	fflush(stdout);
	while ((fd = accept(l, NULL, NULL)) >= 0) {
		struct way down = {.up = 0}, up = {.up = 1};

		target = socket(AF_INET, SOCK_STREAM, 0);
		need(target >= 0 && connect(target, (const struct sockaddr *)to, sizeof(*to)) == 0,
		    "cannot connect");
		up.from = down.to = fd;
		up.to = down.from = target;
		need(pthread_create(&thread[0], NULL, carry, &up) == 0 &&
			pthread_create(&thread[1], NULL, carry, &down) == 0,
		    "no thread");
		pthread_join(thread[0], NULL);
		pthread_join(thread[1], NULL);
		close(fd);
		close(target);
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in to;
	pthread_t server;
	sigset_t ends;
	int sig;

	mplex = argc == 5 && strcmp(argv[3], "--mux") == 0 && strcmp(argv[4], "mplex") == 0;
	need((argc == 3 || mplex) && strcmp(argv[1], "--to") == 0,
	    "usage: tap --to HOST:PORT [--mux mplex]");
	to = address_of(argv[2]);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	need(pthread_create(&server, NULL, serve, &to) == 0, "no thread");
	sigwait(&ends, &sig);
	pthread_mutex_lock(&seen.lock);
	printf("up %u down %u\n", seen.largest[1], seen.largest[0]);
	fflush(stdout);
	_exit(0);
}
