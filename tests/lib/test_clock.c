/* test_clock.c - monotonic time and deadlines. */
#include <config.h>

#include "lib/clock.h"

#include "tests/kit/run.h"

START_TEST(time_goes_on)
{
	uint64_t first = rv_clock_us(), now = first, end = first + 10000;

	while (now < end) {
		uint64_t next = rv_clock_us();

		ck_assert_uint_ge(next, now);
		now = next;
	}
}
END_TEST

START_TEST(deadlines_never_overflow)
{
	static const struct {
		uint64_t now;
		int64_t timeout;
		uint64_t deadline;
	} row[] = {{1000, 0, 1000}, {1000, 1, 2000}, {1000, 10000, 10001000},
	    {1000, -1, UINT64_MAX}, {1000, INT64_MIN, UINT64_MAX}, {1000, INT64_MAX, UINT64_MAX},
	    {0, INT64_MAX / 1000, (uint64_t)(INT64_MAX / 1000) * 1000},
	    {UINT64_MAX - 1000, 1, UINT64_MAX}, {UINT64_MAX - 999, 1, UINT64_MAX},
	    {UINT64_MAX - 2000, 1, UINT64_MAX - 1000}};
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		ck_assert_uint_eq(rv_deadline_us(row[i].now, row[i].timeout), row[i].deadline);
}
END_TEST

RVT_MAIN("clock", &time_goes_on, &deadlines_never_overflow)
