/* sock.h - joined descriptors, and waiting for them.  Check assertions inside: main thread of a test. */
#ifndef REEVE_TESTS_KIT_SOCK_H
#define REEVE_TESTS_KIT_SOCK_H

#define RVT_POLL_MS 10000

/* Connected and blocking. */
void rvt_unix_pair(int v[2]);
void rvt_tcp_pair(int v[2]);
void rvt_pipe_pair(int v[2]); /* [0] reads, [1] writes */

/* Wait until poll tells one of events, or an error. */
void rvt_poll(int fd, short events);

#endif
