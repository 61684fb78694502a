/* attacks.c - see attacks.h. */
#include <config.h>

#include "tests/hostile/attacks.h"
#include "tests/kit/siege.h"

#include <check.h>
#include <string.h>

#define RUN    65536u  /* bytes of one send */
#define WINDOW 262144u /* a stream's first credit */

static void
ping(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_PING, RVT_SYN, 0, i);
}

static void
pong(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_PING, RVT_ACK, 0, i + 1000000);
}

static void
ping_odd(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_PING, i % 2 == 0 ? 0 : RVT_SYN | RVT_ACK, i % 3, i);
}

static void
data_empty(struct rvt_bytes *o, uint32_t i)
{
	(void)i;
	rvt_put(o, RVT_DATA, 0, 1, 0);
}

static void
window_empty(struct rvt_bytes *o, uint32_t i)
{
	(void)i;
	rvt_put(o, RVT_WU, 0, 1, 0);
}

static void
window_one(struct rvt_bytes *o, uint32_t i)
{
	(void)i;
	rvt_put(o, RVT_WU, 0, 1, 1);
}

static void
ack_again(struct rvt_bytes *o, uint32_t i)
{
	(void)i;
	rvt_put(o, RVT_WU, RVT_ACK, 1, 0);
}

static void
data_one(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_DATA, 0, 1, 1);
	*rvt_bytes_more(o, 1) = (uint8_t)i;
}

static void
data_many(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_DATA, 0, 1, 16384);
	memset(rvt_bytes_more(o, 16384), (int)i, 16384);
}

static void
unknown_data(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_DATA, 0, 2 * i + 3, 0);
}

static void
unknown_volume(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_DATA, i % 2 == 0 ? 0 : RVT_FIN, i % 3 == 0 ? 2 * i + 2 : 2 * i + 3, 65536);
	memset(rvt_bytes_more(o, 65536), (int)i, 65536);
}

static void
unknown_window(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_WU, i % 2 == 0 ? RVT_RST : 0, i + 2, UINT32_MAX);
}

static void
syn_rst(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_WU, RVT_SYN | RVT_RST, 2 * i + 3, 0);
}

static void
churn(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_WU, RVT_SYN, 2 * i + 3, 0);
	rvt_put(o, RVT_WU, RVT_RST, 2 * i + 3, 0);
}

static void
syn(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_WU, RVT_SYN, 2 * i + 3, 0);
}

static void
syn_data(struct rvt_bytes *o, uint32_t i)
{
	rvt_put_data(o, RVT_SYN, 2 * i + 3, 20, 0);
}

static void
syn_fin(struct rvt_bytes *o, uint32_t i)
{
	rvt_put_data(o, RVT_SYN | RVT_FIN, 2 * i + 3, 20, 0);
}

static void
goaway(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_GOAWAY, 0, i % 5, 0);
}

static void
goaway_code(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, RVT_GOAWAY, 0, 0, i + 7);
}

static void
fin_again(struct rvt_bytes *o, uint32_t i)
{
	rvt_put(o, i % 2 == 0 ? RVT_DATA : RVT_WU, RVT_FIN, 1, 0);
}

/* Measured ratios (gcc -O2, plain data 16 KiB a frame is 1): doc/protocol-yamux.md, section 7. */
const struct attack attacks[NATTACKS] = {
    {"plain data", data_many, 1, 16384, .large = true, .memory_kb = 1024, .ratio = 2},
    {"data of one byte", data_one, 1, 1, .memory_kb = 1024, .ratio = 200},
    {"pings", ping, 1, .memory_kb = 256, .ratio = 60},
    {"pongs nobody asked for", pong, 1, .memory_kb = 256, .ratio = 60},
    {"pings with odd flags", ping_odd, 1, .memory_kb = 256, .ratio = 60},
    {"empty data", data_empty, 1, .memory_kb = 256, .ratio = 60},
    {"empty window updates", window_empty, 1, .memory_kb = 256, .ratio = 60},
    {"window updates of one byte", window_one, 1, .memory_kb = 256, .ratio = 60},
    {"acknowledgements again", ack_again, 1, .memory_kb = 256, .ratio = 60},
    {"ends again", fin_again, 1, .memory_kb = 256, .ratio = 60},
    {"empty data of unknown streams", unknown_data, 1, .memory_kb = 256, .ratio = 60},
    {"volume of unknown streams", unknown_volume, 1, .large = true, .memory_kb = 256, .ratio = 4},
    {"credit and resets of unknown streams", unknown_window, 1, .memory_kb = 256, .ratio = 60},
    {"openings with a reset", syn_rst, 1, .memory_kb = 256, .ratio = 60},
    {"opening and reset", churn, 2, .rc = REEVE_ELIMIT, .id = "REEVE-YAMUX-0011", .memory_kb = 1024,
	.ratio = 400},
    {"openings", syn, 1, .may = true, .rc = REEVE_ELIMIT, .id = "REEVE-YAMUX-0009",
	.memory_kb = 1024, .ratio = 100},
    {"openings with data", syn_data, 1, .may = true, .rc = REEVE_ELIMIT, .id = "REEVE-YAMUX-0009",
	.memory_kb = 2048, .ratio = 100},
    {"openings with data and an end", syn_fin, 1, .may = true, .rc = REEVE_ELIMIT,
	.id = "REEVE-YAMUX-0009", .memory_kb = 2048, .ratio = 100},
    {"go-aways", goaway, 1, .memory_kb = 256, .ratio = 60},
    {"go-aways with codes", goaway_code, 1, .rc = REEVE_EGOAWAY, .id = "REEVE-YAMUX-0014",
	.memory_kb = 256, .ratio = 60},
};

const struct attack *
attack_named(const char *name)
{
	for (int i = 0; i < NATTACKS; i++)
		if (strcmp(attacks[i].name, name) == 0)
			return &attacks[i];
	ck_abort_msg("no attack %s", name);
	return NULL;
}

/* --- the stream that is read */

static void
on_read(reeve_op_t *op)
{
	struct sink *k = op->arg;

	if (op->res <= 0) {
		rvq_gauge_add(&k->over, 1);
		return;
	}
	reeve_buf_unref(op->buf);
	reeve_read_async(k->s, op);
}

void
sink_begin(struct sink *k, reeve_ctl_t *ctl, struct rvt_peer *p)
{
	rvt_peer_put(p, RVT_WU, RVT_SYN, 1, 0);
	ck_assert_int_eq(reeve_accept(ctl, &k->s, rvt_slow(RVT_WAIT_MS)), 0);
	rvt_peer_want(p, RVT_WU, RVT_ACK, 1, 0);
	reeve_stream_ref(k->s); /* for on_read, which may come after the close */
	k->over = (struct rvq_gauge){0};
	reeve_op_init(&k->op, on_read, k);
	reeve_read_async(k->s, &k->op);
	rvt_peer_settle(p);
}

void
sink_end(struct sink *k)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	reeve_close(k->s);
	while (rvq_gauge_get(&k->over) == 0)
		ck_assert_uint_lt(rvt_now_ms(), deadline);
	reeve_stream_unref(k->s);
	k->s = NULL;
}

/* --- sending */

/* Credit for n more bytes of stream 1. */
static bool
have_credit(struct assault *t, uint32_t n)
{
	struct rvt_frame f;

	while (t->credit < n) {
		if (!rvt_peer_next(t->p, &f))
			return false;
		if (f.type == RVT_WU && f.id == 1)
			t->credit += f.len;
	}
	t->credit -= n;
	return true;
}

bool
assault(struct assault *t, uint64_t from, uint64_t to)
{
	struct rvt_bytes *o = &t->p->out;
	bool lives = true;

	if (from == 0)
		t->credit = WINDOW;
	for (uint64_t i = from; i < to && lives; i++) {
		if (t->a->body > t->credit || o->n >= RUN) {
			t->bytes += o->n;
			lives = t->a->body > 0 ? rvt_peer_try_send(t->p) : rvt_hurl(t->p, t->read);
		}
		lives = lives && have_credit(t, t->a->body);
		if (lives)
			t->a->put(o, (uint32_t)i);
		t->frames += t->a->frames;
	}
	t->bytes += o->n;
	return lives && (t->a->body > 0 ? rvt_peer_try_send(t->p) : rvt_hurl(t->p, t->read));
}
