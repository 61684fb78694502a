/* test_noise_oom.c - keys, the handshake and its filter while OpenSSL's allocation number n fails, for every n, alone or
 * with all behind it: each call works or says so, and nothing stays. */
#include <config.h>

#include "lib/upgrade/noise.h"

#include "tests/kit/run.h"

#include <openssl/crypto.h>
#include <string.h>

static uint64_t calls, fail_at;
static bool fail_rest;
static int64_t out;

static bool
fails(void)
{
	calls++;
	return fail_at != 0 && (calls == fail_at || (fail_rest && calls > fail_at));
}

static void *
get(size_t n, const char *file, int line)
{
	void *p = fails() ? NULL : malloc(n);

	(void)file;
	(void)line;
	out += p != NULL;
	return p;
}

static void *
again(void *old, size_t n, const char *file, int line)
{
	void *p = fails() ? NULL : realloc(old, n);

	(void)file;
	(void)line;
	out += p != NULL && old == NULL;
	return p;
}

static void
put(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	out -= p != NULL;
	free(p);
}

static int
pump(struct rv_noise x[2])
{
	const uint8_t *p;
	size_t n;

	for (int i = 0; rv_noise_out(&x[0], &p) + rv_noise_out(&x[1], &p) > 0; i ^= 1) {
		while ((n = rv_noise_out(&x[i], &p)) > 0) {
			(void)rv_noise_feed(&x[1 - i], p, n);
			rv_noise_sent(&x[i], n);
		}
	}
	return x[0].done && x[1].done && x[0].rc == 0 && x[1].rc == 0;
}

static void
life(struct rv_arena *ar)
{
	static const uint8_t seed[32] = {9};
	reeve_key_t *k;
	struct rv_noise x[2];
	struct rv_filter *f;
	int rc = reeve_key_from_seed(&k, seed);

	ck_assert(rc == 0 || rc == REEVE_ENOMEM);
	if (rc < 0)
		return;
	rv_noise_init(&x[0], true, k, NULL);
	rv_noise_init(&x[1], false, k, NULL);
	if (pump(x)) {
		rc = rv_noise_filter(&x[0], &f, ar);
		ck_assert(rc == 0 || rc == REEVE_ENOMEM);
		if (rc == 0)
			f->ops->destroy(f);
	} else {
		/* One has failed for want of memory.  What it says looks to OpenSSL's verification like any failure. */
		for (int i = 0; i < 2; i++)
			ck_assert_msg(!x[i].done || x[i].rc == 0 || x[i].rc == REEVE_ENOMEM ||
				x[i].rc == REEVE_EIDENTITY || x[i].rc == REEVE_EPROTO,
			    "%s", reeve_errname(x[i].rc));
	}
	rv_noise_fini(&x[0]);
	rv_noise_fini(&x[1]);
	reeve_key_free(k);
}

START_TEST(a_life_survives_any_failure)
{
	struct rv_arena *ar = rv_arena_create(NULL);
	int64_t before = 0;
	uint64_t total;

	fail_rest = _i;
	for (int i = 0; i < 3; i++) { /* what OpenSSL makes once for all */
		before = out;
		calls = 0;
		life(ar);
	}
	ck_assert_int_eq(out, before);
	total = calls;
	ck_assert_uint_gt(total, 50);
	for (uint64_t n = 1; n <= total; n++) {
		calls = 0;
		fail_at = n;
		life(ar);
		fail_at = 0;
		/* A failure may have undone what is made once; what it left otherwise would add up. */
		life(ar);
	}
	ck_assert_int_lt(out - before, 50);
	rv_arena_unref(ar);
}
END_TEST

int
main(void)
{
	static const struct rvt_test table[] = {{&a_life_survives_any_failure, 2}};

	if (CRYPTO_set_mem_functions(get, again, put) != 1)
		return 77;
	return rvt_run_table("noise_oom", table, 1);
}
