/* base.c - descriptors, threads, memory and processor time of the process, from /proc. */
#include <config.h>

#include "tests/kit/base.h"
#include "tests/kit/peer.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static unsigned
entries(const char *folder)
{
	unsigned n = 0;
	DIR *d = opendir(folder);

	ck_assert_ptr_nonnull(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static struct rvt_base
now_is(void)
{
	return (struct rvt_base){entries("/proc/self/fd"), entries("/proc/self/task")};
}

static void *
note_tid(void *arg)
{
	*(int *)arg = (int)syscall(SYS_gettid);
	return NULL;
}

struct rvt_base
rvt_base(void)
{
	char task[64];
	pthread_t t;
	int tid = 0;

	/* With the first thread a sanitizer starts one of its own, which stays. */
	ck_assert_int_eq(pthread_create(&t, NULL, note_tid, &tid), 0);
	pthread_join(t, NULL);
	snprintf(task, sizeof(task), "/proc/self/task/%d", tid);
	while (access(task, F_OK) == 0) /* joined, and yet not gone */
		sched_yield();
	return now_is();
}

void
rvt_base_check(const struct rvt_base *b)
{
	uint64_t until = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	struct rvt_base now = now_is();

	while (now.fds != b->fds || now.threads != b->threads) {
		ck_assert_msg(rvt_now_ms() < until,
		    "descriptors %u, before %u; threads %u, before %u", now.fds, b->fds,
		    now.threads, b->threads);
		sched_yield();
		now = now_is();
	}
}

uint64_t
rvt_rss(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t
rvt_cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
rvt_median(double *v, unsigned n)
{
	qsort(v, n, sizeof(v[0]), by_size);
	return v[n / 2];
}
