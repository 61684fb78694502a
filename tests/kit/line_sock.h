/* line_sock.h - the sockets of a line. */
#ifndef REEVE_TESTS_KIT_LINE_SOCK_H
#define REEVE_TESTS_KIT_LINE_SOCK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* HOST:PORT, an IPv4 address.  False and EINVAL: it is none. */
bool rvt_line_parse(const char *text, struct sockaddr_in *a);
/* Not blocking, with buffers of bufsize bytes.  -1 and errno. */
int rvt_line_socket(size_t bufsize);
/* The same listening at HOST:PORT (NULL: a free port of 127.0.0.1), and where it does. */
int rvt_line_listen(const char *at, size_t bufsize, char *addr, size_t n);
/* Closes so that the other end sees a reset. */
void rvt_line_reset(int fd);

#endif
