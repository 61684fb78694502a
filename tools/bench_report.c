/* bench_report.c - what reeve-bench prints in the end: a table of at most 80 columns, or one JSON object. */
#include <config.h>

#include "tools/bench.h"

#include <unistd.h>

#include "tools/term.h"

static const char *const transports[] = {"tcp", "unix", "memory"};
static const char *const yardsticks[] = {
    "a bare TCP connection over loopback",
    "a bare unix socket pair",
    "a bare unix socket pair (memory has none)",
};

static const char *
mux_name(const struct bench_row *r)
{
	return r->proto == REEVE_MPLEX ? "mplex" : "yamux";
}

static long
processors(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

static void
print_row(const struct bench_row *r)
{
	char size[16], msgs[16], window[16];

	printf("%7u%9s%7.2f%7.2f%6.2f%7s%7.2f%7.1f%7.2f%6.2f%9s\n", r->streams,
	    term_bytes(size, (double)r->size), r->ours / 1e9, r->raw / 1e9,
	    r->raw > 0 ? r->ours / r->raw : 0, term_count(msgs, r->ours / (double)r->size),
	    r->copies, r->frames_per_call, r->cpu_ours, r->cpu_raw,
	    r->proto == REEVE_MPLEX ? "none" : term_bytes(window, (double)r->window));
}

void
bench_report_table(
    const struct bench_options *o, const struct bench_row *rows, int n, double message_ns)
{
	char workers[32] = "default workers";

	if (o->workers > 0)
		snprintf(workers, sizeof(workers), "%u worker%s a node", o->workers,
		    o->workers == 1 ? "" : "s");
	printf("reeve-bench %s: %s, %s%s%s, %s, %s, %ld processor%s\n\n", reeve_version(),
	    transports[o->transport], mux_name(rows),
	    mux_agreed(&o->mux) != NULL ? " agreed in " : "",
	    mux_agreed(&o->mux) != NULL ? mux_agreed(&o->mux) : "",
	    o->callbacks ? "callbacks" : "threads", workers, processors(),
	    processors() == 1 ? "" : "s");
	printf("%16s%7s%7s%6s%7s%7s%7s%13s\n", "", "reeve", "raw", "", "writes", "copies", "frames",
	    "CPU s/GB");
	printf("%7s%9s%7s%7s%6s%7s%7s%7s%7s%6s%9s\n", "streams", "size", "GB/s", "GB/s", "ratio",
	    "/s", "/byte", "/call", "reeve", "raw", "window");
	for (int i = 0; i < n; i++)
		print_row(&rows[i]);
	printf("\nA message between two actors of one worker: %.0f ns.\n", message_ns);
	printf("raw: the same writes on %s, in turn\n", yardsticks[o->transport]);
	printf("with ours; medians of %d rounds.  Small writes are gathered by reeve, not by it.\n",
	    BENCH_ROUNDS);
	printf("copies: besides the kernel's.  call: a read or write of the %s.\n",
	    o->transport == BENCH_MEMORY ? "memory pipe" : "socket");
	printf("CPU: all threads of both ends.  window: the largest of a stream.\n");
}

void
bench_report_json(
    const struct bench_options *o, const struct bench_row *rows, int n, double message_ns)
{
	const struct bench_row *r;

	printf("{\"program\": \"reeve-bench\", \"version\": \"%s\", \"transport\": \"%s\", "
	       "\"mode\": \"%s\", \"mux\": \"%s\", \"plaintext\": %s, "
	       "\"noise\": %s,\n",
	    reeve_version(), transports[o->transport], o->callbacks ? "callbacks" : "threads",
	    mux_name(rows), o->mux.plaintext ? "true" : "false", o->mux.noise ? "true" : "false");
	printf(" \"workers\": %u, \"processors\": %ld, \"rounds\": %d, \"raw\": \"%s\",\n",
	    o->workers, processors(), BENCH_ROUNDS, yardsticks[o->transport]);
	printf(" \"message_ns\": %.2f, \"rows\": [", message_ns);
	for (int i = 0; i < n; i++) {
		r = &rows[i];
		printf("%s\n  {\"streams\": %u, \"size\": %zu, \"bytes_per_s\": %.0f, "
		       "\"raw_bytes_per_s\": %.0f,\n",
		    i > 0 ? "," : "", r->streams, r->size, r->ours, r->raw);
		printf("   \"ratio\": %.4f, \"writes_per_s\": %.0f, \"copies_per_byte\": %.4f,\n",
		    r->raw > 0 ? r->ours / r->raw : 0, r->ours / (double)r->size, r->copies);
		printf("   \"frames_per_call\": %.3f, \"frames_per_write\": %.3f, "
		       "\"frames_per_read\": %.3f,\n",
		    r->frames_per_call, r->frames_per_write, r->frames_per_read);
		printf("   \"cpu_s_per_gb\": %.4f, \"raw_cpu_s_per_gb\": %.4f, \"window\": %llu,\n",
		    r->cpu_ours, r->cpu_raw, (unsigned long long)r->window);
		printf("   \"actor_messages_per_s\": %.0f, \"wakes_per_s\": %.0f}",
		    r->actor_messages, r->wakes);
	}
	printf("]}\n");
}
