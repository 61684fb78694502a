/* peer_bench.c - throughput into a discarding peer.  One thread per stream; bytes count only
 * when the peer has said that it read them. */
#include <config.h>

#include "tests/interop/peer_dial.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* One thread's part; written by main before it starts and read after it ended. */
struct flood {
	pthread_t thread;
	reeve_ctl_t *k;
	size_t write;
	uint64_t until_ns;
	uint64_t bytes;
};

/* Processor time of this process so far, user and system. */
static uint64_t
cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * UINT64_C(1000000000) +
	    ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

static void *
flood_thread(void *arg)
{
	struct flood *f = arg;
	uint8_t *piece = malloc(f->write), what = PEER_DISCARD, total[8];
	reeve_stream_t *s;

	peer_check(piece != NULL, "out of memory");
	memset(piece, 0x5a, f->write);
	peer_must(reeve_open(f->k, &s, -1), "open");
	peer_must(peer_write(s, &what, 1), "write");
	while (peer_now_ns() < f->until_ns)
		peer_must(peer_write(s, piece, f->write), "write");
	peer_must(reeve_shut(s), "shut");
	peer_must(peer_read(s, total, sizeof(total)), "total");
	f->bytes = peer_get64(total);
	reeve_close(s);
	free(piece);
	return NULL;
}

void
peer_bench(reeve_ctl_t *k, char **words, char *out)
{
	unsigned long i, streams = strtoul(words[0], NULL, 10);
	size_t write = strtoul(words[1], NULL, 10);
	struct flood *all = calloc(streams, sizeof(*all));
	uint64_t from = peer_now_ns(), from_cpu = cpu_ns(), bytes = 0, took;

	peer_check(all != NULL && streams > 0 && write > 0, "bench STREAMS WRITE SECONDS");
	for (i = 0; i < streams; i++) {
		all[i].k = k;
		all[i].write = write;
		all[i].until_ns = from + (uint64_t)(strtod(words[2], NULL) * 1e9);
		peer_check(
		    pthread_create(&all[i].thread, NULL, flood_thread, &all[i]) == 0, "no thread");
	}
	for (i = 0; i < streams; i++) {
		pthread_join(all[i].thread, NULL);
		bytes += all[i].bytes;
	}
	free(all);
	took = peer_now_ns() - from;
	peer_check(bytes > 0, "no byte arrived");
	snprintf(out, OUT_SIZE,
	    "\"streams\":%lu,\"write\":%zu,\"bytes_per_s\":%.0f,\"cpu_ns_per_kib\":%.1f", streams,
	    write, (double)bytes * 1e9 / (double)took,
	    (double)(cpu_ns() - from_cpu) * 1024.0 / (double)bytes);
}
