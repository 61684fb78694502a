/* addr.h - addresses: tcp://host:port  tcp://[ipv6]:port  unix:///path  mem://name[?copy=1]
 *
 * Any thread: nothing is shared. */
#ifndef REEVE_LIB_ADDR_H
#define REEVE_LIB_ADDR_H

#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <reeve/error.h>

enum rv_addr_kind { RV_ADDR_TCP = 1, RV_ADDR_UNIX, RV_ADDR_MEM };

struct rv_addr {
	enum rv_addr_kind kind;
	int numeric;     /* tcp: u is filled (host was numeric) */
	int copy;        /* mem: ?copy=1, bytes are copied instead of handed over */
	uint16_t port;   /* tcp */
	char name[256];  /* tcp host (canonical when numeric, no brackets), unix path, mem name */
	socklen_t salen; /* tcp numeric and unix */
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} u;
};

/* Port 0 is good (bind to any).  A host is a dotted quad, an IPv6 address in brackets (with
 * %zone), or a name of letters, digits, '-', '_' and '.' whose last label is not a number (the
 * other old spellings of IPv4 are refused).  A unix path is absolute.  A mem name is printable,
 * without blanks and '?'. REEVE_EINVAL: malformed, too long, port out of range, empty host or
 * path or name. */
int rv_addr_parse(struct rv_addr *a, const char *text);
/* From a bound socket's address; kind TCP or UNIX.  REEVE_EINVAL: another family, or no path. */
int rv_addr_from_sockaddr(struct rv_addr *a, const struct sockaddr *sa, socklen_t len);
/* Length written without the terminating zero, or REEVE_EINVAL when n is too small. */
int rv_addr_format(const struct rv_addr *a, char *out, size_t n);
/* Resolve a tcp host name (blocking, getaddrinfo): 1 to max (>= 1) numeric addresses.  Count, or
 * an error: REEVE_EINVAL (not tcp), REEVE_ENOMEM, a system error (EHOSTUNREACH when the resolver
 * knows no address). */
int rv_addr_resolve(const struct rv_addr *a, struct rv_addr *out, int max);

#endif
