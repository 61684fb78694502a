/* addr.c - parse, print and resolve addresses: see addr.h. */
#include <config.h>

#include "lib/addr.h"
#include "lib/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

/* Copies n bytes as a's name. */
static int
set_name(struct rv_addr *a, const char *s, size_t n)
{
	if (n == 0 || n >= sizeof(a->name))
		return REEVE_EINVAL;
	memcpy(a->name, s, n);
	a->name[n] = '\0';
	return 0;
}

static int
parse_port(struct rv_addr *a, const char *s)
{
	size_t n = strlen(s);
	unsigned long v;

	if (n == 0 || n > 5 || strspn(s, DIGITS) != n)
		return REEVE_EINVAL;
	v = strtoul(s, NULL, 10);
	if (v > UINT16_MAX)
		return REEVE_EINVAL;
	a->port = (uint16_t)v;
	return 0;
}

/* Number or interface name; 0: neither. */
static uint32_t
parse_zone(const char *s)
{
	size_t n = strlen(s);

	if (n > 0 && n < 10 && strspn(s, DIGITS) == n)
		return (uint32_t)strtoul(s, NULL, 10);
	return if_nametoindex(s);
}

/* name[] as the canonical text of the numeric address in u. */
static int
name_numeric(struct rv_addr *a)
{
	const void *bytes = a->u.sa.sa_family == AF_INET6 ? (const void *)&a->u.in6.sin6_addr
							  : (const void *)&a->u.in.sin_addr;
	size_t n;

	if (inet_ntop(a->u.sa.sa_family, bytes, a->name, INET6_ADDRSTRLEN) == NULL)
		return REEVE_EINVAL;
	if (a->u.sa.sa_family == AF_INET6 && a->u.in6.sin6_scope_id != 0) {
		n = strlen(a->name);
		snprintf(
		    a->name + n, sizeof(a->name) - n, "%%%u", (unsigned)a->u.in6.sin6_scope_id);
	}
	return 0;
}

/* name[] holds what was between the brackets. */
static int
parse_ipv6(struct rv_addr *a)
{
	char *zone = strchr(a->name, '%');

	if (zone != NULL) {
		*zone++ = '\0';
		a->u.in6.sin6_scope_id = parse_zone(zone);
		if (a->u.in6.sin6_scope_id == 0)
			return REEVE_EINVAL;
	}
	if (inet_pton(AF_INET6, a->name, &a->u.in6.sin6_addr) != 1)
		return REEVE_EINVAL;
	a->u.in6.sin6_family = AF_INET6;
	a->u.in6.sin6_port = htons(a->port);
	a->salen = sizeof(a->u.in6);
	a->numeric = 1;
	return name_numeric(a);
}

static int
check_host_name(const char *s)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_." DIGITS;
	size_t n = strlen(s);
	const char *last;

	if (n > 253 || strspn(s, letters) != n || s[0] == '.' || strstr(s, "..") != NULL)
		return REEVE_EINVAL;
	last = strrchr(s, '.');
	last = last == NULL ? s : last + 1;
	if (*last != '\0' && strspn(last, DIGITS) == strlen(last))
		return REEVE_EINVAL;
	return 0;
}

static int
parse_host(struct rv_addr *a)
{
	if (inet_pton(AF_INET, a->name, &a->u.in.sin_addr) != 1)
		return check_host_name(a->name);
	a->u.in.sin_family = AF_INET;
	a->u.in.sin_port = htons(a->port);
	a->salen = sizeof(a->u.in);
	a->numeric = 1;
	return name_numeric(a);
}

static int
parse_tcp(struct rv_addr *a, const char *s)
{
	const char *host = s, *end, *colon;
	int v6 = s[0] == '[';

	if (v6) {
		host++;
		end = strchr(host, ']');
		colon = end == NULL ? NULL : end + 1;
	} else {
		end = colon = strchr(s, ':');
	}
	if (colon == NULL || *colon != ':' || parse_port(a, colon + 1) != 0 ||
	    set_name(a, host, (size_t)(end - host)) != 0)
		return REEVE_EINVAL;
	return v6 ? parse_ipv6(a) : parse_host(a);
}

static int
parse_unix(struct rv_addr *a, const char *s)
{
	size_t n = strlen(s);

	if (n < 2 || s[0] != '/' || n >= sizeof(a->u.un.sun_path))
		return REEVE_EINVAL;
	memcpy(a->u.un.sun_path, s, n + 1);
	a->u.un.sun_family = AF_UNIX;
	a->salen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	return set_name(a, s, n);
}

static int
parse_mem(struct rv_addr *a, const char *s)
{
	size_t n = strcspn(s, "?"), i;

	for (i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return REEVE_EINVAL;
	if (strcmp(s + n, "?copy=1") == 0)
		a->copy = 1;
	else if (s[n] != '\0' && strcmp(s + n, "?copy=0") != 0)
		return REEVE_EINVAL;
	return set_name(a, s, n);
}

int
rv_addr_parse(struct rv_addr *a, const char *text)
{
	static const struct {
		const char *prefix;
		enum rv_addr_kind kind;
		int (*parse)(struct rv_addr *a, const char *rest);
	} forms[] = {
	    {"tcp://", RV_ADDR_TCP, parse_tcp},
	    {"unix://", RV_ADDR_UNIX, parse_unix},
	    {"mem://", RV_ADDR_MEM, parse_mem},
	};
	size_t i, n;

	REEVE_REQUIRE(text != NULL, REEVE_EINVAL);
	memset(a, 0, sizeof(*a));
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		n = strlen(forms[i].prefix);
		if (strncmp(text, forms[i].prefix, n) == 0) {
			a->kind = forms[i].kind;
			return forms[i].parse(a, text + n);
		}
	}
	return REEVE_EINVAL;
}

int
rv_addr_from_sockaddr(struct rv_addr *a, const struct sockaddr *sa, socklen_t len)
{
	size_t path = offsetof(struct sockaddr_un, sun_path);
	char text[sizeof(a->u.un.sun_path) + 1];

	if (len < sizeof(sa->sa_family) || len > sizeof(a->u))
		return REEVE_EINVAL;
	memset(a, 0, sizeof(*a));
	memcpy(&a->u, sa, len);
	a->salen = len;
	a->kind = RV_ADDR_TCP;
	a->numeric = 1;
	if (a->u.sa.sa_family == AF_INET && len == sizeof(a->u.in)) {
		a->port = ntohs(a->u.in.sin_port);
		return name_numeric(a);
	}
	if (a->u.sa.sa_family == AF_INET6 && len == sizeof(a->u.in6)) {
		a->port = ntohs(a->u.in6.sin6_port);
		return name_numeric(a);
	}
	if (a->u.sa.sa_family != AF_UNIX || len <= path)
		return REEVE_EINVAL;
	memset(text, 0, sizeof(text));
	memcpy(text, a->u.un.sun_path, len - path);
	memset(a, 0, sizeof(*a));
	a->kind = RV_ADDR_UNIX;
	return parse_unix(a, text);
}

int
rv_addr_format(const struct rv_addr *a, char *out, size_t n)
{
	int len;

	switch (a->kind) {
	case RV_ADDR_TCP:
		len = snprintf(out, n, strchr(a->name, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u",
		    a->name, (unsigned)a->port);
		break;
	case RV_ADDR_UNIX:
		len = snprintf(out, n, "unix://%s", a->name);
		break;
	case RV_ADDR_MEM:
		len = snprintf(out, n, "mem://%s%s", a->name, a->copy ? "?copy=1" : "");
		break;
	default:
		return REEVE_EINVAL;
	}
	return len < 0 || (size_t)len >= n ? REEVE_EINVAL : len;
}

static int
resolver_error(int rc)
{
	if (rc == EAI_MEMORY)
		return REEVE_ENOMEM;
	return REEVE_ESYS_BASE - (rc == EAI_SYSTEM && errno != 0 ? errno : EHOSTUNREACH);
}

int
rv_addr_resolve(const struct rv_addr *a, struct rv_addr *out, int max)
{
	struct addrinfo hints = {0}, *list, *i;
	char port[8];
	int rc, n = 0;

	REEVE_REQUIRE(a->kind == RV_ADDR_TCP && max > 0, REEVE_EINVAL);
	if (a->numeric) {
		out[0] = *a;
		return 1;
	}
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICSERV;
	snprintf(port, sizeof(port), "%u", (unsigned)a->port);
	rc = getaddrinfo(a->name, port, &hints, &list);
	if (rc != 0)
		return resolver_error(rc);
	for (i = list; i != NULL && n < max; i = i->ai_next)
		if (rv_addr_from_sockaddr(&out[n], i->ai_addr, i->ai_addrlen) == 0)
			n++;
	freeaddrinfo(list);
	return n > 0 ? n : resolver_error(EAI_NONAME);
}
