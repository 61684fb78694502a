/* test_small_bodies.c - received bodies that are put together where they are: nothing is lost, nothing is mixed up, and
 * nobody reads what belongs to another. */
#include <config.h>

#include "tests/kit/mplex_peer.h"
#include "tests/kit/run.h"

#define STREAMS 3

static struct rvt_raw r;
static reeve_stream_t *s[STREAMS];
static uint64_t sent[STREAMS];

static void
begin(void)
{
	reeve_cfg_t cfg;

	rvt_mpp_cfg(&cfg);
	rvt_mpp_open(&r, &cfg);
	for (unsigned i = 0; i < STREAMS; i++) {
		s[i] = rvt_mpp_inbound(&r, i);
		sent[i] = 0;
	}
}

static void
end(void)
{
	for (unsigned i = 0; i < STREAMS; i++)
		reeve_close(s[i]);
	rvt_raw_fini(&r);
}

static void
queue(unsigned i, uint32_t n)
{
	rvt_mpp_queue(&r, RVT_MP_DATA_I, i, n, sent[i]);
	sent[i] += n;
}

static void
read_all(void)
{
	for (unsigned i = 0; i < STREAMS; i++)
		rvt_want_read(s[i], sent[i], 0);
}

/* Sizes around those from which on a body is kept where it is; more frames than one read of the socket takes. */
START_TEST(bodies_of_any_size_in_a_row)
{
	static const uint32_t n[] = {1, 2, 255, 256, 2047, 2048, 2049, 3000};

	begin();
	for (unsigned k = 0; sent[0] < 200000; k++)
		queue(0, _i < 8 ? n[_i] : n[k * 5 % 8]);
	rvt_peer_send(&r.p);
	read_all();
	end();
}
END_TEST

/* Runs of one stream and frames of others between them, also frames that carry nothing. */
START_TEST(streams_do_not_mix)
{
	begin();
	for (unsigned k = 0; k < 1200; k++) {
		queue(k / (1 + (unsigned)_i) % STREAMS, 1 + k * 37 % 400);
		if (k % 7 == 0)
			rvt_mp_put(&r.p.out, RVT_MP_DATA_I, k % STREAMS, 0);
		if (k % 11 == 0) {
			rvt_mp_put(&r.p.out, RVT_MP_OPEN, 100 + k, 0);
			rvt_mp_put(&r.p.out, RVT_MP_RESET_I, 100 + k, 0);
		}
	}
	rvt_peer_send(&r.p);
	read_all();
	end();
}
END_TEST

/* What follows small bodies of a stream comes behind them: its end, its reset, the end of the pipe. */
START_TEST(ends_come_behind_the_bytes)
{
	begin();
	for (unsigned k = 0; k < 300; k++)
		queue(k % 100 == 0, 100);
	if (_i < 2)
		rvt_mp_put(&r.p.out, _i ? RVT_MP_RESET_I : RVT_MP_CLOSE_I, 0, 0);
	rvt_peer_send(&r.p);
	if (_i == 2)
		rvt_peer_shut(&r.p);
	read_all();
	rvt_want_rc(s[0], _i == 0 ? 0 : _i == 1 ? REEVE_ERESET : REEVE_EEND);
	end();
}
END_TEST

/* Many frames may come before anybody reads: the bound of the stream is one of bytes, and holds to the byte. */
START_TEST(the_bound_is_met_in_the_middle_of_a_run)
{
	reeve_cfg_t cfg;

	rvt_mpp_cfg(&cfg);
	cfg.max_window = 16384;
	cfg.flags = REEVE_CFG_SLOW_RESET;
	rvt_mpp_open(&r, &cfg);
	s[0] = rvt_mpp_inbound(&r, 0);
	sent[0] = 0;
	while (sent[0] < 20000)
		queue(0, 100);
	rvt_peer_send(&r.p);
	rvt_mpp_want(&r, RVT_MP_RESET_R, 0);
	rvt_want_read(s[0], 16384, 0);
	rvt_want_rc(s[0], REEVE_ELIMIT);
	reeve_close(s[0]);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("small_bodies", {&bodies_of_any_size_in_a_row, 9}, {&streams_do_not_mix, 3},
    {&ends_come_behind_the_bytes, 3}, {&the_bound_is_met_in_the_middle_of_a_run, 0})
