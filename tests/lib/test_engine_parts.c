/* test_engine_parts.c - the engine's small parts alone: tables of the halves, id table, round
 * trips, bounds, gather. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* --- halves */

START_TEST(every_send_cell_keeps_the_rules)
{
	for (unsigned s = 0; s < RV_TX_NSTATES; s++) {
		for (unsigned e = 0; e < RV_TX_NEVENTS; e++) {
			const struct rv_half_step *c = &rv_tx_table[s][e];

			ck_assert_uint_lt(c->next, RV_TX_NSTATES);
			if (c->action == RV_BAD) {
				/* only frames that cannot have been sent */
				ck_assert(e == RV_TXE_SENT_FIN || e == RV_TXE_SENT_RST);
				continue;
			}
			/* an end is final, and only FIN can turn into a reset */
			if (s == RV_TX_RESET)
				ck_assert_uint_eq(c->next, RV_TX_RESET);
			if (s == RV_TX_FIN)
				ck_assert(c->next == RV_TX_FIN || c->next == RV_TX_RESET);
			/* bytes are kept in one state only, FIN is owed once */
			ck_assert_int_eq(
			    c->action == RV_QUEUE, s == RV_TX_OPEN && e == RV_TXE_SEND);
			ck_assert_int_eq(
			    c->action == RV_OWE_FIN, s == RV_TX_OPEN && e == RV_TXE_SHUT);
			ck_assert_int_eq(c->next == RV_TX_FIN && s != RV_TX_FIN,
			    s == RV_TX_SHUT && e == RV_TXE_SENT_FIN);
			/* what may be queued is let go when the half is reset */
			if (s <= RV_TX_KILL && (e == RV_TXE_RESET || e == RV_TXE_RST))
				ck_assert(c->action == RV_CLEAR && c->next == RV_TX_RESET);
		}
	}
}
END_TEST

START_TEST(every_receive_cell_keeps_the_rules)
{
	for (unsigned s = 0; s < RV_RX_NSTATES; s++) {
		for (unsigned e = 0; e < RV_RX_NEVENTS; e++) {
			const struct rv_half_step *c = &rv_rx_table[s][e];

			ck_assert_uint_lt(c->next, RV_RX_NSTATES);
			ck_assert_uint_ne(
			    c->action, RV_BAD); /* the peer and the application are free */
			if (s == RV_RX_RESET)
				ck_assert(c->next == RV_RX_RESET && c->action != RV_TELL);
			if (s == RV_RX_FIN)
				ck_assert(c->next == RV_RX_FIN || c->next == RV_RX_RESET);
			ck_assert_int_eq(
			    c->action == RV_DELIVER, s == RV_RX_OPEN && e == RV_RXE_DATA);
			ck_assert_int_eq(
			    c->action == RV_OWE_RST, s == RV_RX_LINGER && e == RV_RXE_DATA);
			if (e == RV_RXE_DATA)
				ck_assert_uint_eq(c->next, s);
			if (s == RV_RX_LINGER)
				ck_assert_uint_ne(c->action, RV_TELL);
		}
	}
}
END_TEST

START_TEST(every_state_and_event_has_a_name)
{
	for (unsigned i = 0; i < RV_TX_NSTATES; i++)
		ck_assert_str_ne(rv_tx_state_name[i], "");
	for (unsigned i = 0; i < RV_RX_NSTATES; i++)
		ck_assert_str_ne(rv_rx_state_name[i], "");
	ck_assert_str_eq(rv_tx_event_name[RV_TXE_SENT_FIN], "SENT_FIN");
	ck_assert_str_eq(rv_rx_event_name[RV_RXE_CLOSE], "CLOSE");
	for (unsigned i = 0; i < RV_YMSG_COUNT; i++)
		for (unsigned k = i + 1; k < RV_YMSG_COUNT; k++)
			ck_assert_str_ne(rv_ymsg_text[i].id, rv_ymsg_text[k].id);
	ck_assert_str_eq(rv_ytype_name(RV_Y_WINDOW), "WINDOW");
	ck_assert_str_eq(rv_ytype_name(4), "?");
}
END_TEST

START_TEST(record_is_two_cache_lines)
{
	ck_assert_uint_le(sizeof(struct rv_stream), 128);
	ck_assert_uint_eq(sizeof(struct rv_event), 32);
	ck_assert_uint_eq(sizeof(struct rv_idtab_entry), 16);
}
END_TEST

/* --- id table */

static uint32_t rnd = 1;

static uint32_t
next_rnd(void)
{
	rnd = rnd * 1664525u + 1013904223u;
	return rnd >> 8;
}

START_TEST(idtab_agrees_with_a_plain_array)
{
	static struct rv_stream *model[4096];
	static struct rv_stream some[4096];
	struct rv_arena *ar = rv_arena_create(NULL);
	struct rv_idtab t;
	uint32_t id;

	rv_idtab_init(&t, (uint64_t)_i * 77777);
	ck_assert_ptr_null(rv_idtab_get(&t, 1));
	for (int k = 0; k < 200000; k++) {
		/* waves, so that it grows and shrinks */
		bool add = (k / 20000) % 2 == 0 ? next_rnd() % 4 != 0 : next_rnd() % 4 == 0;

		id = next_rnd() % 4095 + 1;
		if (add && model[id] == NULL) {
			RVT_CHECK(rv_idtab_reserve(&t, ar) == 0);
			rv_idtab_put(&t, id, &some[id]);
			model[id] = &some[id];
		} else if (!add && model[id] != NULL) {
			rv_idtab_del(&t, ar, id);
			model[id] = NULL;
		}
		RVT_CHECK(rv_idtab_get(&t, id) == model[id] && 2 * t.n <= t.cap);
	}
	for (id = 1; id < 4096; id++)
		ck_assert_ptr_eq(rv_idtab_get(&t, id), model[id]);
	for (id = 1; id < 4096; id++)
		if (model[id] != NULL)
			rv_idtab_del(&t, ar, id);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_uint_le(t.cap, 64);
	rv_idtab_fini(&t, ar);
	ck_assert_uint_eq(rv_arena_bytes(ar), 0);
	rv_arena_unref(ar);
	memset(model, 0, sizeof(model));
}
END_TEST

/* --- round trips */

START_TEST(rtt_is_the_smallest_of_the_last_samples)
{
	struct rv_rtt x = {0};
	uint32_t us[100], min;
	uint64_t now = 10;

	ck_assert_uint_eq(rv_rtt_min(&x), 0);
	for (uint32_t i = 0; i < 100; i++) {
		us[i] = next_rnd() % 1000 + 1 + i;
		ck_assert_uint_eq(rv_rtt_sent(&x, now, 0), i);
		ck_assert_uint_eq(rv_rtt_pong(&x, i + 1, now + 1, 0), 0);
		ck_assert_uint_eq(rv_rtt_pong(&x, i, now + us[i], 0), us[i]);
		ck_assert_uint_eq(rv_rtt_pong(&x, i, now + us[i], 0), 0);
		min = us[i];
		for (uint32_t k = i; k + RV_RTT_SAMPLES > i && k != UINT32_MAX; k--)
			min = us[k] < min ? us[k] : min;
		ck_assert_uint_eq(rv_rtt_min(&x), min);
	}
}
END_TEST

START_TEST(rtt_under_load_counts_only_if_smaller)
{
	struct rv_rtt x = {0};
	uint64_t moved = 0;
	uint32_t v;

	/* The first one counts whatever was going on. */
	v = rv_rtt_sent(&x, 0, moved);
	moved += 1u << 20;
	ck_assert_uint_eq(rv_rtt_pong(&x, v, 900, moved), 900);
	ck_assert_uint_eq(rv_rtt_min(&x), 900);
	v = rv_rtt_sent(&x, 1000, moved);
	moved += RV_RTT_LOADED;
	ck_assert_uint_eq(rv_rtt_pong(&x, v, 1100, moved), 100);
	/* However long the transfer lasts, its queue is not taken for the path. */
	for (int i = 0; i < 100; i++) {
		v = rv_rtt_sent(&x, 2000, moved);
		moved += RV_RTT_LOADED + 1;
		ck_assert_uint_eq(rv_rtt_pong(&x, v, 3000, moved), 1000);
		ck_assert_uint_eq(rv_rtt_min(&x), 100);
	}
	v = rv_rtt_sent(&x, 4000, moved);
	moved += RV_RTT_LOADED + 1;
	ck_assert_uint_eq(rv_rtt_pong(&x, v, 4050, moved), 50);
	ck_assert_uint_eq(rv_rtt_min(&x), 50);
	/* Nothing else going on: the path did change. */
	for (int i = 0; i < RV_RTT_SAMPLES; i++) {
		v = rv_rtt_sent(&x, 5000, moved);
		(void)rv_rtt_pong(&x, v, 5300, moved);
	}
	ck_assert_uint_eq(rv_rtt_min(&x), 300);
}
END_TEST

START_TEST(rtt_of_a_forgotten_ping_is_not_a_sample)
{
	struct rv_rtt x = {0};
	uint32_t v = rv_rtt_sent(&x, 10, 0);

	ck_assert_uint_eq(rv_rtt_least(&x, 10 + RV_RTT_MISSED_US), 0);
	ck_assert_uint_eq(rv_rtt_least(&x, 10000000), 9999990); /* that much it takes at least */

	rv_rtt_forget(&x);
	ck_assert_uint_eq(rv_rtt_least(&x, 10000000), 0);
	ck_assert_uint_eq(rv_rtt_pong(&x, v, 20, 0), 0);
	ck_assert_uint_eq(rv_rtt_sent(&x, 30, 0), v + 1);
	ck_assert_uint_eq(rv_rtt_pong(&x, v + 1, 30, 0), 1); /* never 0 */
	ck_assert_uint_eq(rv_rtt_min(&x), 1);
	ck_assert_uint_eq(rv_rtt_least(&x, 10000000), 1);
}
END_TEST

/* --- bounds */

START_TEST(bucket_gives_burst_then_rate)
{
	struct rv_bucket b;
	unsigned n = 0;

	rv_bucket_init(&b, 10, 5, 0);
	for (int i = 0; i < 100; i++)
		n += rv_bucket_take(&b, 0);
	ck_assert_uint_eq(n, 10);
	for (uint64_t t = 0; t <= 2000000; t += 1000) /* asked often: nothing is lost by rounding */
		n += rv_bucket_take(&b, t);
	ck_assert_uint_eq(n, 20);
	for (int i = 0; i < 100; i++)
		n += rv_bucket_take(&b, UINT64_C(1) << 50);
	ck_assert_uint_eq(n, 30);
}
END_TEST

START_TEST(bucket_without_bound_always_gives)
{
	struct rv_bucket b;

	rv_bucket_init(&b, UINT32_MAX, UINT32_MAX, 0);
	for (int i = 0; i < 10; i++)
		ck_assert(rv_bucket_take(&b, UINT64_MAX));
}
END_TEST

START_TEST(pongs_keep_the_oldest_32_in_order)
{
	struct rv_pongs p = {0};

	for (uint32_t i = 0; i < 40; i++)
		ck_assert_int_eq(rv_pongs_push(&p, i), i < 32);
	rv_pongs_drop(&p, 5);
	ck_assert_uint_eq(p.n, 27);
	ck_assert_uint_eq(p.v[0], 5);
	ck_assert(rv_pongs_push(&p, 99));
	ck_assert_uint_eq(p.v[27], 99);
}
END_TEST

START_TEST(refusals_are_a_queue_of_1024)
{
	struct rv_arena *ar = rv_arena_create(NULL);
	struct rv_refusals q;
	uint32_t in = 1, out = 1;

	rv_refusals_init(&q);
	for (int round = 0; round < 3; round++) {
		while (rv_refusals_push(&q, ar, in) == 0)
			in++;
		ck_assert_uint_eq(in - out, 1024);
		for (int i = 0; i < 700; i++)
			ck_assert_uint_eq(rv_refusals_pop(&q, ar), out++);
	}
	while (rv_refusals_any(&q))
		ck_assert_uint_eq(rv_refusals_pop(&q, ar), out++);
	ck_assert_uint_eq(out, in);
	ck_assert_uint_eq(rv_refusals_pop(&q, ar), 0);
	ck_assert_uint_eq(rv_arena_bytes(ar), 0);
	rv_arena_unref(ar);
}
END_TEST

/* --- gather */

START_TEST(gather_joins_what_is_staged_in_a_row)
{
	struct rv_gather *g = malloc(sizeof(*g));
	static const uint8_t big[4096];

	rv_gather_reset(g);
	ck_assert(rv_gather_empty(g) && rv_gather_room(g));
	rv_gather_stage(g, "ab", 2);
	rv_gather_stage(g, "cd", 2);
	ck_assert_int_eq(g->niov, 1);
	ck_assert_uint_eq(g->iov[0].iov_len, 4);
	rv_gather_ref(g, big, sizeof(big));
	rv_gather_stage(g, "ef", 2);
	ck_assert_int_eq(g->niov, 3);
	ck_assert_uint_eq(g->bytes, 6 + sizeof(big));
	/* Partial writes move on inside and across pieces; appending goes on. */
	rv_gather_sent(NULL, g, 3);
	rv_gather_sent(NULL, g, 1 + 100);
	ck_assert_int_eq(g->iov_at, 1);
	ck_assert_uint_eq(g->iov[1].iov_len, sizeof(big) - 100);
	rv_gather_sent(NULL, g, sizeof(big) - 100 + 2);
	ck_assert(rv_gather_empty(g));
	rv_gather_stage(g, "gh", 2);
	ck_assert_int_eq(g->niov, 4);
	ck_assert_int_eq(g->iov_at, 3);
	ck_assert_int_eq(memcmp(g->iov[3].iov_base, "gh", 2), 0);
	free(g);
}
END_TEST

START_TEST(gather_is_full_before_any_part_overflows)
{
	struct rv_gather *g = malloc(sizeof(*g));
	unsigned n = 0;

	rv_gather_reset(g);
	for (; rv_gather_room(g); n++)
		(void)rv_gather_reserve(g, 12 + RV_STAGE_MAX - 1);
	ck_assert_uint_gt(n, 25);
	ck_assert_uint_le(g->stage_used, RV_STAGE_SIZE);
	rv_gather_reset(g);
	for (n = 0; rv_gather_room(g); n++) {
		(void)rv_gather_reserve(g, 12);
		rv_gather_ref(g, g->stage, 65536);
	}
	ck_assert_uint_ge(g->bytes, RV_GATHER_BYTES);
	ck_assert_uint_lt(g->bytes, RV_GATHER_BYTES + 65536 + 12);
	free(g);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_parts");

	tcase_add_test(t, every_send_cell_keeps_the_rules);
	tcase_add_test(t, every_receive_cell_keeps_the_rules);
	tcase_add_test(t, every_state_and_event_has_a_name);
	tcase_add_test(t, record_is_two_cache_lines);
	tcase_add_loop_test(t, idtab_agrees_with_a_plain_array, 0, 3);
	tcase_add_test(t, rtt_is_the_smallest_of_the_last_samples);
	tcase_add_test(t, rtt_under_load_counts_only_if_smaller);
	tcase_add_test(t, rtt_of_a_forgotten_ping_is_not_a_sample);
	tcase_add_test(t, bucket_gives_burst_then_rate);
	tcase_add_test(t, bucket_without_bound_always_gives);
	tcase_add_test(t, pongs_keep_the_oldest_32_in_order);
	tcase_add_test(t, refusals_are_a_queue_of_1024);
	tcase_add_test(t, gather_joins_what_is_staged_in_a_row);
	tcase_add_test(t, gather_is_full_before_any_part_overflows);
	return rvt_run_tcase("engine_parts", t);
}
