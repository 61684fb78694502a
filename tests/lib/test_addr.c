/* test_addr.c - addresses: good and bad spellings, round trips, sockets, resolution. */
#include <config.h>

#include "lib/addr.h"

#include "tests/kit/run.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LABEL50 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeee."
#define NAME250 LABEL50 LABEL50 LABEL50 LABEL50 LABEL50
#define PATH50  "/aaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"

START_TEST(good_addresses_are_parsed_and_printed)
{
	static const struct {
		const char *text;
		enum rv_addr_kind kind;
		int numeric;
		unsigned port;
		const char *name;
		const char *print; /* NULL: as text */
	} row[] = {
	    {"tcp://127.0.0.1:80", RV_ADDR_TCP, 1, 80, "127.0.0.1", NULL},
	    {"tcp://0.0.0.0:0", RV_ADDR_TCP, 1, 0, "0.0.0.0", NULL},
	    {"tcp://10.0.0.1:65535", RV_ADDR_TCP, 1, 65535, "10.0.0.1", NULL},
	    {"tcp://1.2.3.4:00080", RV_ADDR_TCP, 1, 80, "1.2.3.4", "tcp://1.2.3.4:80"},
	    {"tcp://[::1]:7", RV_ADDR_TCP, 1, 7, "::1", NULL},
	    {"tcp://[::]:0", RV_ADDR_TCP, 1, 0, "::", NULL},
	    {"tcp://[2001:DB8:0:0::1]:443", RV_ADDR_TCP, 1, 443, "2001:db8::1",
		"tcp://[2001:db8::1]:443"},
	    {"tcp://[::ffff:1.2.3.4]:1", RV_ADDR_TCP, 1, 1, "::ffff:1.2.3.4", NULL},
	    {"tcp://[fe80::1%3]:9", RV_ADDR_TCP, 1, 9, "fe80::1%3", NULL},
	    {"tcp://localhost:1234", RV_ADDR_TCP, 0, 1234, "localhost", NULL},
	    {"tcp://a-b_c.Example.:1", RV_ADDR_TCP, 0, 1, "a-b_c.Example.", NULL},
	    {"tcp://4you.example:1", RV_ADDR_TCP, 0, 1, "4you.example", NULL},
	    {"tcp://" NAME250 "com:1", RV_ADDR_TCP, 0, 1, NAME250 "com", NULL},
	    {"unix:///tmp/s", RV_ADDR_UNIX, 0, 0, "/tmp/s", NULL},
	    {"unix:///a b?:[", RV_ADDR_UNIX, 0, 0, "/a b?:[", NULL},
	    {"unix://" PATH50 PATH50 "/12345", RV_ADDR_UNIX, 0, 0, PATH50 PATH50 "/12345", NULL},
	    {"mem://x", RV_ADDR_MEM, 0, 0, "x", NULL},
	    {"mem://a/b:c", RV_ADDR_MEM, 0, 0, "a/b:c", NULL},
	    {"mem://x?copy=1", RV_ADDR_MEM, 0, 0, "x", NULL},
	    {"mem://x?copy=0", RV_ADDR_MEM, 0, 0, "x", "mem://x"},
	};
	char out[300];
	struct rv_addr a;
	size_t i;
	int n;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const char *print = row[i].print != NULL ? row[i].print : row[i].text;

		ck_assert_msg(rv_addr_parse(&a, row[i].text) == 0, "%s", row[i].text);
		ck_assert_int_eq(a.kind, row[i].kind);
		ck_assert_int_eq(a.numeric, row[i].numeric);
		ck_assert_uint_eq(a.port, row[i].port);
		ck_assert_str_eq(a.name, row[i].name);
		n = (int)strlen(print);
		ck_assert_int_eq(rv_addr_format(&a, out, sizeof(out)), n);
		ck_assert_str_eq(out, print);
		ck_assert_int_eq(rv_addr_format(&a, out, (size_t)n), REEVE_EINVAL);
		ck_assert_int_eq(rv_addr_format(&a, out, (size_t)n + 1), n);
	}
}
END_TEST

START_TEST(bad_addresses_are_refused)
{
	static const char *const bad[] = {"", "tcp", "tcp:", "tcp://", "tcp://:80", "tcp://host",
	    "tcp://host:", "tcp://host:65536", "tcp://host:99999", "tcp://host:123456",
	    "tcp://host:-1", "tcp://host:+1", "tcp://host: 1", "tcp://host:1 ", "tcp://host:8o",
	    "tcp://host:1/", "tcp://host:1:2", "tcp://::1:80", "tcp://[::1]", "tcp://[::1]80",
	    "tcp://[::1:80", "tcp://[]:80", "tcp://[::g]:80", "tcp://[1.2.3.4]:80",
	    "tcp://[host]:80", "tcp://[::1%]:80", "tcp://[::1%nosuchif0]:80", "tcp://[::1%0]:1",
	    "tcp://1.2.3:80", "tcp://1.2.3.256:80", "tcp://1.2.3.4.5:80", "tcp://127.1:80",
	    "tcp://12345:80", "tcp://ho st:80", "tcp://h\xc3\xb6st:80", "tcp://.host:80",
	    "tcp://a..b:80", "tcp://host\n:80", "tcp://a@b:80", "tcp://" NAME250 "comm:1",
	    "tcp://" NAME250 NAME250 ":1", "TCP://host:80", "udp://host:80", "://host:80",
	    " tcp://host:80", "unix://", "unix:///", "unix://rel", "unix://@abstract",
	    "unix:/tmp/s", "unix://" PATH50 PATH50 "/1234567", "mem://", "mem://?copy=1",
	    "mem://x?", "mem://x?copy", "mem://x?copy=2", "mem://x?copy=1&", "mem://x?other=1",
	    "mem://a b", "mem://a\x7f", "mem://" NAME250 "123456"};
	struct rv_addr a;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(rv_addr_parse(&a, bad[i]) == REEVE_EINVAL, "%s", bad[i]);
	ck_assert_int_eq(rv_addr_parse(&a, NULL), REEVE_EINVAL);
}
END_TEST

START_TEST(socket_addresses_are_filled)
{
	struct rv_addr a;

	ck_assert_int_eq(rv_addr_parse(&a, "tcp://1.2.3.4:258"), 0);
	ck_assert_uint_eq(a.salen, sizeof(a.u.in));
	ck_assert_int_eq(a.u.in.sin_family, AF_INET);
	ck_assert_mem_eq(&a.u.in.sin_port, "\x01\x02", 2);
	ck_assert_mem_eq(&a.u.in.sin_addr, "\x01\x02\x03\x04", 4);
	ck_assert_int_eq(rv_addr_parse(&a, "tcp://[fe80::1%3]:258"), 0);
	ck_assert_uint_eq(a.salen, sizeof(a.u.in6));
	ck_assert_int_eq(a.u.in6.sin6_family, AF_INET6);
	ck_assert_uint_eq(a.u.in6.sin6_scope_id, 3);
	ck_assert_mem_eq(&a.u.in6.sin6_port, "\x01\x02", 2);
	ck_assert_int_eq(rv_addr_parse(&a, "unix:///tmp/s"), 0);
	ck_assert_int_eq(a.u.un.sun_family, AF_UNIX);
	ck_assert_str_eq(a.u.un.sun_path, "/tmp/s");
	ck_assert_int_eq(rv_addr_parse(&a, "mem://x?copy=1"), 0);
	ck_assert_int_eq(a.copy, 1);
}
END_TEST

/* Binds to text and returns what the socket says about itself. */
static struct rv_addr
bound(const char *text)
{
	struct rv_addr want, got;
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd;

	ck_assert_int_eq(rv_addr_parse(&want, text), 0);
	fd = socket(want.u.sa.sa_family, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, &want.u.sa, want.salen), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	ck_assert_int_eq(rv_addr_from_sockaddr(&got, (struct sockaddr *)&ss, len), 0);
	close(fd);
	return got;
}

START_TEST(bound_sockets_tell_their_address)
{
	char path[64], out[300];
	struct rv_addr a = bound("tcp://127.0.0.1:0");

	ck_assert_uint_ne(a.port, 0);
	ck_assert_str_eq(a.name, "127.0.0.1");
	ck_assert_int_eq(a.numeric, 1);
	snprintf(path, sizeof(path), "unix:///tmp/reeve-addr-%ld", (long)getpid());
	a = bound(path);
	unlink(a.name);
	ck_assert_int_eq(a.kind, RV_ADDR_UNIX);
	ck_assert_int_gt(rv_addr_format(&a, out, sizeof(out)), 0);
	ck_assert_str_eq(out, path);
}
END_TEST

START_TEST(socket_addresses_of_other_kinds_are_refused)
{
	struct sockaddr_storage ss = {0};
	struct sockaddr_un un = {0};
	struct rv_addr a;
	int v[2];
	socklen_t len = sizeof(un);

	ss.ss_family = AF_NETLINK;
	ck_assert_int_eq(rv_addr_from_sockaddr(&a, (struct sockaddr *)&ss, 12), REEVE_EINVAL);
	ss.ss_family = AF_INET;
	ck_assert_int_eq(rv_addr_from_sockaddr(&a, (struct sockaddr *)&ss, 3), REEVE_EINVAL);
	ck_assert_int_eq(
	    rv_addr_from_sockaddr(&a, (struct sockaddr *)&ss, sizeof(ss)), REEVE_EINVAL);
	ck_assert_int_eq(rv_addr_from_sockaddr(&a, (struct sockaddr *)&ss, 0), REEVE_EINVAL);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, v), 0); /* no name */
	ck_assert_int_eq(getsockname(v[0], (struct sockaddr *)&un, &len), 0);
	ck_assert_int_eq(rv_addr_from_sockaddr(&a, (struct sockaddr *)&un, len), REEVE_EINVAL);
	close(v[0]);
	close(v[1]);
	un.sun_family = AF_UNIX; /* a path that fills its field has no end */
	memset(un.sun_path, 'x', sizeof(un.sun_path));
	un.sun_path[0] = '/';
	ck_assert_int_eq(
	    rv_addr_from_sockaddr(&a, (struct sockaddr *)&un, sizeof(un)), REEVE_EINVAL);
}
END_TEST

START_TEST(names_are_resolved)
{
	struct rv_addr a, out[4];
	int n, i;

	ck_assert_int_eq(rv_addr_parse(&a, "tcp://[::1]:5"), 0);
	ck_assert_int_eq(rv_addr_resolve(&a, out, 4), 1);
	ck_assert_str_eq(out[0].name, "::1");
	ck_assert_int_eq(rv_addr_parse(&a, "tcp://localhost:5"), 0);
	n = rv_addr_resolve(&a, out, 4);
	ck_assert_int_ge(n, 1);
	for (i = 0; i < n; i++)
		ck_assert(out[i].numeric && out[i].port == 5);
	ck_assert_int_eq(rv_addr_resolve(&a, out, 1), 1);
	ck_assert_int_eq(rv_addr_resolve(&a, out, 0), REEVE_EINVAL);
	ck_assert_int_eq(rv_addr_parse(&a, "mem://x"), 0);
	ck_assert_int_eq(rv_addr_resolve(&a, out, 4), REEVE_EINVAL);
}
END_TEST

RVT_MAIN("addr", &good_addresses_are_parsed_and_printed, &bad_addresses_are_refused,
    &socket_addresses_are_filled, &bound_sockets_tell_their_address,
    &socket_addresses_of_other_kinds_are_refused, &names_are_resolved)
