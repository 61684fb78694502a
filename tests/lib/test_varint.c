/* test_varint.c - unsigned varints: every length, partial input, what must be refused. */
#include <config.h>

#include "lib/varint.h"

#include "tests/kit/run.h"

#include <string.h>

START_TEST(values_of_every_length_come_back)
{
	uint8_t b[RV_VARINT_MAX];
	uint64_t v, got;
	unsigned bit, n, i;
	int d;

	for (bit = 0; bit < 64; bit++)
		for (d = -1; d <= 1; d++) {
			v = (UINT64_C(1) << bit) + (uint64_t)d;
			n = rv_varint_put(b, v);
			ck_assert_uint_eq(n, rv_varint_size(v));
			ck_assert_int_eq(rv_varint_get(&got, b, n, RV_VARINT_MAX), (int)n);
			ck_assert_uint_eq(got, v);
			for (i = 0; i < n; i++)
				ck_assert_int_eq(
				    rv_varint_get(&got, b, i, RV_VARINT_MAX), REEVE_EAGAIN);
		}
	n = rv_varint_put(b, UINT64_MAX);
	ck_assert_uint_eq(n, 10);
	ck_assert_int_eq(rv_varint_get(&got, b, n, RV_VARINT_MAX), 10);
	ck_assert_uint_eq(got, UINT64_MAX);
}
END_TEST

START_TEST(known_encodings)
{
	static const struct {
		uint64_t v;
		const char *bytes;
		size_t n;
	} row[] = {{0, "\x00", 1}, {1, "\x01", 1}, {127, "\x7f", 1}, {128, "\x80\x01", 2},
	    {300, "\xac\x02", 2}, {16384, "\x80\x80\x01", 3}, {1048576, "\x80\x80\x40", 3},
	    {INT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9}};
	uint8_t b[RV_VARINT_MAX];
	uint64_t got;
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ck_assert_uint_eq(rv_varint_put(b, row[i].v), row[i].n);
		ck_assert_mem_eq(b, row[i].bytes, row[i].n);
		ck_assert_int_eq(
		    rv_varint_get(&got, (const uint8_t *)row[i].bytes, row[i].n, RV_VARINT_STRICT),
		    (int)row[i].n);
		ck_assert_uint_eq(got, row[i].v);
	}
}
END_TEST

START_TEST(bad_encodings_are_refused)
{
	static const struct {
		const char *bytes;
		size_t n;
		unsigned max;
	} row[] = {
	    {"\x80\x00", 2, 10}, {"\xff\x00", 2, 10},
	    {"\x80\x80\x00", 3, 10},                             /* not the shortest */
	    {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10, 9}, /* ten bytes where nine may be */
	    {"\x80\x80\x80\x80\x80\x80\x80\x80\x80", 9, 9}, /* told before the tenth is there */
	    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 10}, /* 65 bits */
	    {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81", 10, 10}, /* goes on */
	    {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, 10},
	    {"\x80\x80\x80\x01", 4, 3}, /* a length field of three bytes */
	};
	uint64_t got = 42;
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ck_assert_int_eq(
		    rv_varint_get(&got, (const uint8_t *)row[i].bytes, row[i].n, row[i].max),
		    REEVE_EPROTO);
		ck_assert_uint_eq(got, 42);
	}
}
END_TEST

START_TEST(bytes_behind_are_not_read)
{
	uint64_t got;

	ck_assert_int_eq(rv_varint_get(&got, (const uint8_t *)"\x05\xff\xff", 3, 9), 1);
	ck_assert_uint_eq(got, 5);
	ck_assert_int_eq(rv_varint_get(&got, NULL, 0, 9), REEVE_EAGAIN);
}
END_TEST

RVT_MAIN("varint", &values_of_every_length_come_back, &known_encodings, &bad_encodings_are_refused,
    &bytes_behind_are_not_read)
