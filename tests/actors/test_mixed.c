/* test_mixed.c - streams of every kind at once, one table of rows: how many, how much in which pieces, who opens, who reads and
 * how fast, how it ends; with either protocol, over every near transport.
 *
 * Each stream carries its bytes from the end that opened it to the other one, whose reader answers.  Every byte is
 * compared and so is every end.  Four threads write, each to its share of the streams in turn. */
#include <config.h>

#include "tests/kit/content.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/scenarios/pace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE    77
#define ANSWER  16
#define MOST    500
#define WRITERS 4
#define TICK_US 500

enum opener { DIALER, LISTENER, BOTH };
enum reader { BLOCKING, CALLBACK, ACTOR };
enum finish {
	FIN,          /* both directions end in order, the answer's behind the last byte */
	RESET_READ,   /* the writer resets when the reader has everything */
	RESET_AMID,   /* the writer resets after half of it, whatever was read */
	READER_RESETS /* after half of it */
};
enum pace {
	EVEN,
	SLOW, /* one read in a tick */
	PAUSED /* no read before the others have everything: what there is must fit into the window */
};

struct mix {
	unsigned streams;
	uint32_t bytes, write; /* of a stream, of a call */
	enum opener opener;
	enum reader reader;
	enum finish finish;
	enum pace pace;
	unsigned every; /* every so many streams have that pace, the others are even */
};

static const struct mix rows[] = {
    {1, 2u << 20, 65536, DIALER, BLOCKING, FIN, EVEN, 1},
    {2, 50000, 13, BOTH, CALLBACK, FIN, EVEN, 1},
    {8, 400000, 10007, BOTH, CALLBACK, FIN, SLOW, 4},
    {8, 400000, 65536, LISTENER, ACTOR, FIN, SLOW, 3},
    {8, 300000, 300000, DIALER, BLOCKING, FIN, SLOW, 2},
    {64, 100000, 16384, BOTH, ACTOR, FIN, PAUSED, 8},
    {12, 128000, 3000, DIALER, BLOCKING, FIN, PAUSED, 3},
    {MOST, 2000, 100, BOTH, CALLBACK, FIN, EVEN, 1},
    {300, 0, 1, BOTH, ACTOR, FIN, EVEN, 1},
    {MOST, 1, 1, LISTENER, ACTOR, RESET_READ, EVEN, 1},
    {32, 60000, 1000, BOTH, BLOCKING, RESET_READ, EVEN, 1},
    {20, 64000, 1024, LISTENER, CALLBACK, RESET_READ, PAUSED, 5},
    {16, 300000, 5000, DIALER, CALLBACK, RESET_AMID, SLOW, 4},
    {40, 100000, 777, BOTH, ACTOR, RESET_AMID, PAUSED, 10},
    {16, 200000, 70001, LISTENER, BLOCKING, READER_RESETS, EVEN, 1},
    {16, 200000, 4096, BOTH, ACTOR, READER_RESETS, SLOW, 2},
    {64, 9000, 9000, DIALER, CALLBACK, READER_RESETS, EVEN, 1},
};
#define ROWS ((int)(sizeof(rows) / sizeof(rows[0])))
static const enum rvt_via vias[] = {RVT_TCP, RVT_UNIX, RVT_MEMORY};
#define LOOPS (ROWS * 2 * 3)

/* --- what all share */

struct lane {
	reeve_stream_t *tx, *rx;
	enum pace pace;
	unsigned key;
	/* the reader's */
	struct rvt_content in;
	uint64_t got;
	reeve_ssize end; /* what it ended with */
	bool wrong;
	reeve_op_t read, write;
	pthread_t thread;
	/* the writer's */
	struct rvt_content out;
	uint64_t sent;
	reeve_ssize tx_end;
	unsigned answered;
	bool tx_wrong, tx_over;
	/* under lock */
	int pending;        /* operations of the reader */
	bool idle, waiting; /* between two ticks; paused */
	bool hasty;         /* not paused, and the bytes are not all there yet */
};

static struct rvt_nodes n;
static const struct mix *mix;
static struct lane lanes[MOST];
static reeve_actor_t *actor;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned live, nhasty; /* under lock */
static bool actor_gone;       /* under lock */

static void on_op(reeve_op_t *op);

/* --- readers */

static void
note_full(struct lane *a)
{
	pthread_mutex_lock(&lock);
	nhasty -= a->hasty;
	a->hasty = false;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

/* One operation less; with the last one the lane is over. */
static void
settle(struct lane *a)
{
	pthread_mutex_lock(&lock);
	if (--a->pending == 0)
		live--;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static void
op_init(struct lane *a, reeve_op_t *op)
{
	reeve_op_init(op, mix->reader == ACTOR ? NULL : on_op, a);
	op->actor = mix->reader == ACTOR ? actor : NULL;
}

static void
read_next(struct lane *a)
{
	op_init(a, &a->read);
	reeve_read_async(a->rx, &a->read);
}

static void
answer(struct lane *a)
{
	uint8_t text[ANSWER];
	struct rvt_content c;
	reeve_buf_t *b;

	rvt_content_init(&c, a->key + 1);
	rvt_content_fill(&c, text, ANSWER);
	if (mix->reader == BLOCKING) {
		if (reeve_write(a->rx, text, ANSWER) != ANSWER)
			a->wrong = true;
		return;
	}
	b = reeve_buf_alloc(n.rt[0], ANSWER);
	memcpy(reeve_buf_mut(b), text, ANSWER);
	pthread_mutex_lock(&lock);
	a->pending++;
	pthread_mutex_unlock(&lock);
	op_init(a, &a->write);
	reeve_write_async(a->rx, b, &a->write);
}

/* What a reader does about the result of a read.  False: it was the last one. */
static bool
took(struct lane *a, const uint8_t *p, reeve_ssize got)
{
	if (got <= 0) {
		a->end = got;
		if (mix->finish == FIN && got == 0) {
			answer(a);
			if (reeve_shut(a->rx) != 0)
				a->wrong = true;
		}
		note_full(a);
		return false;
	}
	if (!rvt_content_is(&a->in, p, (size_t)got))
		a->wrong = true;
	a->got += (uint64_t)got;
	if (mix->finish == READER_RESETS && a->got >= mix->bytes / 2) {
		a->end = reeve_reset(a->rx, CODE);
		note_full(a);
		return false;
	}
	if (a->got == mix->bytes) {
		if (mix->finish == RESET_READ)
			answer(a);
		note_full(a);
	}
	return true;
}

static void
on_read(struct lane *a)
{
	bool more = took(a, a->read.res > 0 ? reeve_buf_data(a->read.buf) : NULL, a->read.res);

	if (a->read.res > 0)
		reeve_buf_unref(a->read.buf);
	if (!more) {
		settle(a);
	} else if (a->pace == SLOW) {
		pthread_mutex_lock(&lock);
		a->idle = true;
		pthread_mutex_unlock(&lock);
	} else {
		read_next(a);
	}
}

static void
on_op(reeve_op_t *op)
{
	struct lane *a = op->arg;

	if (op == &a->read) {
		on_read(a);
		return;
	}
	if (op->res != ANSWER)
		a->wrong = true;
	settle(a);
}

static void
on_message(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	(void)arg;
	if (msg != NULL) {
		on_op(reeve_msg_op(msg));
		return;
	}
	pthread_mutex_lock(&lock);
	actor_gone = true;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static void *
read_lane(void *arg)
{
	struct lane *a = arg;
	size_t most = a->pace == SLOW ? 5000 : 20000;
	uint8_t *p = malloc(most);
	reeve_ssize got;

	do {
		if (a->pace == SLOW)
			rvt_pace_us(TICK_US);
		got = reeve_read(a->rx, p, most);
	} while (took(a, p, got));
	free(p);
	settle(a);
	return NULL;
}

static void
start_reader(struct lane *a)
{
	if (mix->reader == BLOCKING)
		ck_assert_int_eq(pthread_create(&a->thread, NULL, read_lane, a), 0);
	else
		read_next(a);
}

/* A tick later, or earlier: slow readers go on; when the others have everything the paused ones begin. */
static void
look_after_readers(void)
{
	struct timespec t;
	bool begin;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += TICK_US * 1000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	if (live > 0)
		pthread_cond_timedwait(&changed, &lock, &t);
	begin = nhasty == 0;
	for (unsigned i = 0; i < mix->streams; i++) {
		struct lane *a = &lanes[i];
		bool start = a->idle || (begin && a->waiting);

		if (!start)
			continue;
		a->waiting = begin ? false : a->waiting;
		a->idle = false;
		pthread_mutex_unlock(&lock);
		start_reader(a);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

/* --- writers */

/* One call more, or what follows the last byte.  False: there is nothing more to write. */
static bool
write_more(struct lane *a)
{
	uint64_t left = (mix->finish == RESET_AMID ? mix->bytes / 2 : mix->bytes) - a->sent;
	size_t k = mix->write < left ? mix->write : (size_t)left;
	reeve_buf_t *b;
	reeve_ssize put;

	if (k == 0) {
		a->tx_end = mix->finish == RESET_AMID ? reeve_reset(a->tx, CODE)
		    : mix->finish == FIN              ? reeve_shut(a->tx)
						      : 0;
		return false;
	}
	b = reeve_buf_alloc(n.rt[0], k);
	rvt_content_fill(&a->out, reeve_buf_mut(b), k);
	put = a->key % 2 == 0 ? reeve_write_buf(a->tx, reeve_buf_ref(b))
			      : reeve_write(a->tx, reeve_buf_data(b), k);
	reeve_buf_unref(b);
	a->sent += put > 0 ? (uint64_t)put : 0; /* less than all: the next call says why */
	a->tx_end = put > 0 ? 0 : put;
	return put > 0;
}

/* The answer, and the end of the other direction. */
static void
hear_answer(struct lane *a)
{
	uint8_t p[ANSWER + 1];
	struct rvt_content c;
	reeve_ssize got;

	rvt_content_init(&c, a->key + 1);
	for (;;) {
		if (mix->finish == RESET_READ && a->answered == ANSWER) {
			a->tx_end = reeve_reset(a->tx, CODE);
			return;
		}
		got = reeve_read(a->tx, p, sizeof(p));
		if (got <= 0)
			break;
		a->answered += (unsigned)got;
		if (!rvt_content_is(&c, p, (size_t)got))
			a->tx_wrong = true;
	}
	a->tx_end = got;
}

static void *
write_lanes(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg, open = 1;

	while (open > 0) {
		open = 0;
		for (unsigned i = first; i < mix->streams; i += WRITERS) {
			lanes[i].tx_over = lanes[i].tx_over || !write_more(&lanes[i]);
			open += !lanes[i].tx_over;
		}
	}
	for (unsigned i = first; i < mix->streams && mix->finish != RESET_AMID; i += WRITERS)
		if (lanes[i].tx_end == 0)
			hear_answer(&lanes[i]);
	return NULL;
}

/* --- the whole */

static void
begin(bool mplex, enum rvt_via via)
{
	struct rvt_wedding w = {.via = via};
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.proto = mplex ? REEVE_MPLEX : REEVE_YAMUX;
	cfg.max_in = MOST;
	cfg.slow_ms = mplex ? REEVE_OFF : 0; /* who is slow here is slow on purpose */
	w.cfg[0] = w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
	if (mix->reader == ACTOR)
		ck_assert_int_eq(reeve_actor_spawn(&actor, n.rt[1], on_message, NULL, n.k[1]), 0);
	live = mix->streams;
	for (unsigned i = 0; i < mix->streams; i++) {
		struct lane *a = &lanes[i];
		int end = mix->opener == BOTH ? (int)i % 2 : mix->opener == LISTENER;
		reeve_stream_t *s[2];

		rvt_stream_pair(&n, end, s);
		a->tx = s[end];
		a->rx = s[1 - end];
		a->pace = i % mix->every == mix->every - 1 ? mix->pace : EVEN;
		a->waiting = a->pace == PAUSED;
		a->hasty = !a->waiting;
		nhasty += a->hasty;
		a->pending = 1;
		a->key = 3 * i + 1;
		rvt_content_init(&a->in, a->key);
		rvt_content_init(&a->out, a->key);
	}
}

/* What came of a stream. */
static void
judge(const struct lane *a, bool mplex)
{
	bool by_reader = mix->finish == READER_RESETS;
	reeve_reason_t why = {.size = sizeof(why)};

	ck_assert(!a->wrong && !a->tx_wrong);
	if (mix->finish == FIN || mix->finish == RESET_READ) {
		ck_assert_uint_eq(a->got, mix->bytes);
		ck_assert_uint_eq(a->answered, ANSWER);
	} else {
		ck_assert_uint_eq(a->answered, 0);
		ck_assert(by_reader ? a->got >= mix->bytes / 2 : a->got <= mix->bytes / 2);
	}
	ck_assert_int_eq(a->end, mix->finish == FIN || by_reader ? 0 : REEVE_ERESET);
	ck_assert_int_eq(a->tx_end, by_reader ? REEVE_ERESET : 0);
	if (mix->finish == FIN)
		return;
	ck_assert_int_eq(reeve_stream_reason(by_reader ? a->tx : a->rx, &why), 0);
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	ck_assert_uint_eq(why.wire_code, mplex ? 0 : CODE);
}

/* Everything was taken back from the readers, in time. */
static void
await_readers(void)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	unsigned left = live;

	for (unsigned i = 0; i < mix->streams; i++)
		if (lanes[i].hasty)
			start_reader(&lanes[i]);
	while (left > 0) {
		ck_assert_msg(rvt_now_ms() < deadline, "%u streams have not ended", left);
		look_after_readers();
		pthread_mutex_lock(&lock);
		left = live;
		pthread_mutex_unlock(&lock);
	}
	for (unsigned i = 0; i < mix->streams && mix->reader == BLOCKING; i++)
		pthread_join(lanes[i].thread, NULL);
}

static void
stop_actor(void)
{
	reeve_actor_stop(actor);
	pthread_mutex_lock(&lock);
	while (!actor_gone)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	reeve_actor_unref(actor);
}

START_TEST(every_byte_arrives_and_every_end_is_the_one_asked_for)
{
	enum rvt_via via = vias[_i % 3];
	bool mplex = _i / 3 % 2 == 1;
	pthread_t writers[WRITERS];

	mix = &rows[_i / 6];
	printf("row %d, %s, %s\n", _i / 6, mplex ? "mplex" : "yamux", rvt_via_name[via]);
	fflush(stdout);
	begin(mplex, via);
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_int_eq(
		    pthread_create(&writers[i], NULL, write_lanes, (void *)(uintptr_t)i), 0);
	await_readers();
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	if (mix->reader == ACTOR)
		stop_actor();
	for (unsigned i = 0; i < mix->streams; i++) {
		judge(&lanes[i], mplex);
		reeve_close(lanes[i].tx);
		reeve_close(lanes[i].rx);
	}
	for (int i = 0; i < 2 && mix->finish == FIN; i++)
		ck_assert_uint_eq(rvt_stats(n.k[i]).resets_out, 0);
	rvt_part(&n);
}
END_TEST

RVT_MAIN_TABLE("mixed", {&every_byte_arrives_and_every_end_is_the_one_asked_for, LOOPS})
