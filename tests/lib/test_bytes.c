/* test_bytes.c - big-endian loads, stores and cursors. */
#include <config.h>

#include "lib/bytes.h"

#include "tests/kit/run.h"

START_TEST(stores_and_loads_are_big_endian)
{
	uint8_t b[9] = {0};

	rv_store_be16(b + 1, 0x0102);
	ck_assert_mem_eq(b + 1, "\x01\x02", 2);
	ck_assert_uint_eq(rv_load_be16(b + 1), 0x0102);
	rv_store_be32(b + 1, 0xf1020384);
	ck_assert_mem_eq(b + 1, "\xf1\x02\x03\x84", 4);
	ck_assert_uint_eq(rv_load_be32(b + 1), 0xf1020384);
	rv_store_be64(b + 1, UINT64_C(0xf102038405060788));
	ck_assert_mem_eq(b + 1, "\xf1\x02\x03\x84\x05\x06\x07\x88", 8);
	ck_assert_uint_eq(rv_load_be64(b + 1), UINT64_C(0xf102038405060788));
}
END_TEST

START_TEST(cursors_carry_values_across)
{
	uint8_t b[15];
	struct rv_writer w = {b, sizeof(b), false};
	struct rv_reader r = {b, sizeof(b), false};

	rv_write_u8(&w, 0x81);
	rv_write_be16(&w, 0x8283);
	rv_write_be32(&w, 0x84858687);
	rv_write_be64(&w, UINT64_MAX - 1);
	ck_assert(!w.bad && w.left == 0);
	ck_assert_uint_eq(rv_read_u8(&r), 0x81);
	ck_assert_uint_eq(rv_read_be16(&r), 0x8283);
	ck_assert_uint_eq(rv_read_be32(&r), 0x84858687);
	ck_assert_uint_eq(rv_read_be64(&r), UINT64_MAX - 1);
	ck_assert(!r.bad && r.left == 0);
}
END_TEST

START_TEST(cursor_that_does_not_fit_moves_nothing_and_stays_bad)
{
	uint8_t b[3] = {1, 2, 3};
	struct rv_reader r = {b, sizeof(b), false};
	struct rv_writer w = {b, sizeof(b), false};

	ck_assert_uint_eq(rv_read_be32(&r), 0);
	ck_assert(r.bad && r.left == 3 && r.p == b);
	ck_assert_uint_eq(rv_read_u8(&r), 0);
	ck_assert_uint_eq(rv_read_be16(&r), 0);
	ck_assert_uint_eq(rv_read_be64(&r), 0);
	ck_assert_ptr_null(rv_read_bytes(&r, 0));
	rv_write_be64(&w, 0);
	rv_write_be32(&w, 0);
	rv_write_be16(&w, 0);
	rv_write_u8(&w, 0);
	ck_assert(w.bad && w.left == 3 && w.p == b);
	ck_assert_mem_eq(b, "\x01\x02\x03", 3);
	r.bad = false;
	ck_assert_ptr_eq(rv_read_bytes(&r, 3), b);
	ck_assert_ptr_null(rv_read_bytes(&r, SIZE_MAX));
}
END_TEST

RVT_MAIN("bytes", &stores_and_loads_are_big_endian, &cursors_carry_values_across,
    &cursor_that_does_not_fit_moves_nothing_and_stays_bad)
