/* test_mplex_frame.c - headers of mplex: bytes as they are known, every split, everything that is no header. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Known bytes: kind, id, who opened the stream, length. */
static const struct {
	enum rv_mp_kind kind;
	uint64_t id;
	bool by_sender;
	uint32_t len;
	uint8_t n, bytes[12];
} vectors[] = {
    {RV_MP_OPEN, 0, true, 0, 2, {0x00, 0x00}},
    {RV_MP_OPEN, 1, true, 0, 2, {0x08, 0x00}},
    {RV_MP_DATA, 0, true, 2, 2, {0x02, 0x02}},
    {RV_MP_DATA, 0, false, 2, 2, {0x01, 0x02}},
    {RV_MP_CLOSE, 17, false, 0, 3, {0x8b, 0x01, 0x00}},
    {RV_MP_CLOSE, 17, true, 0, 3, {0x8c, 0x01, 0x00}},
    {RV_MP_RESET, 17, false, 0, 3, {0x8d, 0x01, 0x00}},
    {RV_MP_RESET, 17, true, 0, 3, {0x8e, 0x01, 0x00}},
    {RV_MP_OPEN, UINT64_C(1) << 32, true, 0, 7, {0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00}},
    {RV_MP_RESET, RV_MP_ID_LAST, true, 0, 10,
	{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x00}},
    {RV_MP_DATA, RV_MP_ID_LAST, false, 1048576, 12,
	{0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x80, 0x80, 0x40}},
    {RV_MP_DATA, 0, true, 127, 2, {0x02, 0x7f}},
    {RV_MP_DATA, 0, true, 128, 3, {0x02, 0x80, 0x01}},
    {RV_MP_DATA, 0, true, 256, 3, {0x02, 0x80, 0x02}},
    {RV_MP_DATA, 0, true, 8192, 3, {0x02, 0x80, 0x40}},
    {RV_MP_DATA, 0, true, 16383, 3, {0x02, 0xff, 0x7f}},
    {RV_MP_DATA, 0, true, 16384, 4, {0x02, 0x80, 0x80, 0x01}},
    {RV_MP_DATA, 15, true, 1, 2, {0x7a, 0x01}},
    {RV_MP_DATA, 16, true, 1, 3, {0x82, 0x01, 0x01}},
    {RV_MP_DATA, 0, true, 1048576, 4, {0x02, 0x80, 0x80, 0x40}},
};
#define VECTORS ((int)(sizeof(vectors) / sizeof(vectors[0])))

START_TEST(known_bytes_both_ways)
{
	struct rv_mphdr h;
	uint8_t p[RV_MP_HDR_MAX];
	uint64_t mine = rv_mp_key(vectors[_i].id, vectors[_i].by_sender);
	unsigned n = vectors[_i].n;

	ck_assert_uint_eq(rv_mphdr_put(p, mine, vectors[_i].kind, vectors[_i].len), n);
	ck_assert_mem_eq(p, vectors[_i].bytes, n);
	ck_assert_uint_eq(rv_mphdr_size(mine, vectors[_i].len), n);
	ck_assert_uint_eq(rv_mp_id(mine), vectors[_i].id);
	/* every part of it is a beginning */
	for (unsigned k = 0; k < n; k++)
		ck_assert_int_eq(rv_mphdr_get(&h, p, k), REEVE_EAGAIN);
	ck_assert_int_eq(rv_mphdr_get(&h, p, n), (int)n);
	ck_assert_uint_eq(h.kind, vectors[_i].kind);
	ck_assert_uint_eq(h.len, vectors[_i].len);
	/* who receives it sees the other side's stream */
	ck_assert_uint_eq(h.key, rv_mp_key(vectors[_i].id, !vectors[_i].by_sender));
}
END_TEST

/* What follows a header is not looked at. */
START_TEST(header_ends_where_it_ends)
{
	struct rv_mphdr h;
	uint8_t p[RV_MP_HDR_MAX + 8];

	memset(p, 0xff, sizeof(p));
	memcpy(p, vectors[_i].bytes, vectors[_i].n);
	ck_assert_int_eq(rv_mphdr_get(&h, p, sizeof(p)), (int)vectors[_i].n);
	ck_assert_uint_eq(h.len, vectors[_i].len);
}
END_TEST

static const struct {
	int rc;
	uint8_t n, bytes[12];
} bad[] = {
    {REEVE_EPROTO, 2, {0x82, 0x00}},
    {REEVE_EPROTO, 2, {0x80, 0x00}},
    {REEVE_EPROTO, 4, {0x82, 0x80, 0x80, 0x00}},
    {REEVE_EPROTO, 9, {0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}},
    /* ten bytes, told at the ninth */
    {REEVE_EPROTO, 9, {0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}},
    {REEVE_EPROTO, 9, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {REEVE_EPROTO, 3, {0x02, 0x80, 0x00}},
    {REEVE_EPROTO, 4, {0x02, 0x80, 0x80, 0x00}},
    {REEVE_ELIMIT, 4, {0x02, 0x81, 0x80, 0x40}}, /* 1 MiB and 1 */
    {REEVE_ELIMIT, 4, {0x02, 0xff, 0xff, 0x7f}},
    {REEVE_ELIMIT, 4, {0x02, 0x80, 0x80, 0x80}}, /* a fourth byte is too many */
    {REEVE_ELIMIT, 4, {0x00, 0xff, 0xff, 0xff}}, /* names are no exception */
    {REEVE_ELIMIT, 12, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x81, 0x80, 0x40}},
};
#define BAD ((int)(sizeof(bad) / sizeof(bad[0])))

START_TEST(what_is_no_header_is_told_at_its_last_byte)
{
	struct rv_mphdr h = {.key = 77, .len = 78, .kind = 79};

	for (unsigned k = 0; k < bad[_i].n; k++)
		ck_assert_int_eq(rv_mphdr_get(&h, bad[_i].bytes, k), REEVE_EAGAIN);
	ck_assert_int_eq(rv_mphdr_get(&h, bad[_i].bytes, bad[_i].n), bad[_i].rc);
	ck_assert(h.key == 77 && h.len == 78 && h.kind == 79);
}
END_TEST

START_TEST(what_is_no_header_ends_the_connection)
{
	struct rvt_rig r;

	for (size_t chunk = 0; chunk < 2; chunk++) {
		rvt_mp_init(&r, NULL, NULL);
		rvt_mp_put(&r.in, RVT_MP_OPEN, 0, 0);
		memcpy(rvt_bytes_more(&r.in, bad[_i].n), bad[_i].bytes, bad[_i].n);
		ck_assert_int_eq(rvt_feed(&r, chunk), REEVE_EPROTO);
		rvt_mp_want_reason(&r, REEVE_EPROTO,
		    bad[_i].rc == REEVE_ELIMIT ? "REEVE-MPLEX-0004" : "REEVE-MPLEX-0001");
		ck_assert_uint_eq(r.e->reason.by, REEVE_BY_US);
		(void)rvt_event(&r, RV_EV_OPEN, 2); /* what came before it counts */
		ck_assert(!r.e->ops->has_output(r.e));
		rvt_rig_fini(&r);
	}
}
END_TEST

START_TEST(flag_7_is_unknown_with_any_id_and_length)
{
	static const char *const hex[] = {
	    "07 00", "0f 00", "87 01 00", "07 80 80 40", "ff ff ff ff ff ff ff ff 7f 00"};
	struct rvt_rig r;

	rvt_mp_init(&r, NULL, NULL);
	rvt_mp_put_raw(&r, hex[_i]);
	ck_assert_int_eq(rvt_feed(&r, 1), REEVE_EPROTO);
	rvt_mp_want_reason(&r, REEVE_EPROTO, "REEVE-MPLEX-0002");
	rvt_rig_fini(&r);
}
END_TEST

static void
part(struct rvt_rig *r, const uint8_t *p, size_t n)
{
	if (n > 0)
		memcpy(rvt_bytes_more(&r->in, n), p, n);
	rvt_mp_feed(r);
}

/* A whole conversation, cut in two at every byte: the events are the same. */
START_TEST(every_split_of_a_conversation_is_the_same)
{
	struct rvt_bytes all = {0};
	struct rvt_rig r;
	size_t total = SIZE_MAX;

	for (size_t cut = 0; cut <= total; cut++) {
		rvt_mp_init(&r, NULL, NULL);
		(void)rvt_mp_outbound(&r);
		rvt_mp_put(&all, RVT_MP_OPEN, RV_MP_ID_LAST, 3);
		memcpy(rvt_bytes_more(&all, 3), "abc", 3);
		rvt_mp_data(&all, RVT_MP_DATA_I, RV_MP_ID_LAST, 200, 0);
		rvt_mp_data(&all, RVT_MP_DATA_R, 0, 5, 0);
		rvt_mp_put(&all, RVT_MP_DATA_I, 1234567, 2); /* of nobody */
		memcpy(rvt_bytes_more(&all, 2), "xy", 2);
		rvt_mp_put(&all, RVT_MP_CLOSE_I, RV_MP_ID_LAST, 0);
		rvt_mp_put(&all, RVT_MP_RESET_R, 0, 0);
		total = all.n;
		part(&r, all.p, cut);
		part(&r, all.p + cut, total - cut);
		ck_assert_int_eq(r.e->ops->feed_end(r.e), 0);
		(void)rvt_event(&r, RV_EV_OPEN, rvt_mp_key(RV_MP_ID_LAST, false));
		(void)rvt_event(&r, RV_EV_FIN, rvt_mp_key(RV_MP_ID_LAST, false));
		(void)rvt_event(&r, RV_EV_RST, rvt_mp_key(0, true));
		ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(RV_MP_ID_LAST, false))->got, 200);
		ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(0, true))->got, 5);
		all.n = 0;
		rvt_rig_fini(&r);
	}
	rvt_bytes_fini(&all);
}
END_TEST

/* The pipe may end between frames, and nowhere else. */
START_TEST(end_inside_a_frame_is_told)
{
	static const char *const hex = "08 02 61 62 0a 80 01";
	struct rvt_rig r;

	for (unsigned n = 1; n <= 7; n++) {
		rvt_mp_init(&r, NULL, NULL);
		rvt_mp_put_raw(&r, hex);
		r.in.n = n;
		ck_assert_int_eq(rvt_feed(&r, 1), 0);
		ck_assert_int_eq(r.e->ops->feed_end(r.e), n == 4 ? 0 : REEVE_ETRUNC);
		if (n != 4) {
			rvt_mp_want_reason(&r, REEVE_ETRUNC, "REEVE-MPLEX-0008");
			ck_assert_uint_eq(r.e->reason.by, REEVE_BY_TRANSPORT);
		}
		rvt_rig_fini(&r);
	}
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_frame");

	tcase_add_loop_test(t, known_bytes_both_ways, 0, VECTORS);
	tcase_add_loop_test(t, header_ends_where_it_ends, 0, VECTORS);
	tcase_add_loop_test(t, what_is_no_header_is_told_at_its_last_byte, 0, BAD);
	tcase_add_loop_test(t, what_is_no_header_ends_the_connection, 0, BAD);
	tcase_add_loop_test(t, flag_7_is_unknown_with_any_id_and_length, 0, 5);
	tcase_add_test(t, every_split_of_a_conversation_is_the_same);
	tcase_add_test(t, end_inside_a_frame_is_told);
	return rvt_run_tcase("mplex_frame", t);
}
