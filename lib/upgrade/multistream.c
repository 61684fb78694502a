/* multistream.c - multistream-select.  See multistream.h. */
#include <config.h>

#include "lib/upgrade/multistream.h"

#include "lib/check.h"
#include "lib/varint.h"

#include <string.h>

static const char header[] = "/multistream/1.0.0\n";
static const char na[] = "na\n";
static const char ls[] = "ls\n";

static void
finish(struct rv_ms *m, int rc, const char *id)
{
	m->done = true;
	m->rc = rc;
	m->id = id;
}

/* What does not belong here.  A lazy dialer whose name we did not know has sent bytes of its protocol before it saw
 * "na": that is no name in common, not a broken protocol. */
static void
bad(struct rv_ms *m, const char *id)
{
	if (m->refused)
		finish(m, REEVE_ENOPROTO, "REEVE-MS-0001");
	else
		finish(m, REEVE_EPROTO, id);
}

/* --- out */

static void
put(struct rv_ms *m, const char *text, size_t n, bool newline)
{
	if (m->out_at == m->out_end)
		m->out_at = m->out_end = 0;
	if (n + newline + 2 > sizeof(m->out) - m->out_end) {
		finish(m, REEVE_ELIMIT, "REEVE-MS-0002");
		return;
	}
	m->out_end += rv_varint_put(m->out + m->out_end, n + newline);
	memcpy(m->out + m->out_end, text, n);
	m->out_end += (uint32_t)n;
	if (newline)
		m->out[m->out_end++] = '\n';
}

static void
put_name(struct rv_ms *m)
{
	put(m, m->names[m->at], strlen(m->names[m->at]), true);
}

static void
put_na(struct rv_ms *m)
{
	m->refused = true;
	put(m, na, sizeof(na) - 1, false);
}

/* Each name as a message of its own, and a newline behind the last: all of it one message. */
static void
put_list(struct rv_ms *m)
{
	char text[RV_MS_MESSAGE];
	size_t n = 0, len;
	unsigned i;

	for (i = 0; i < m->nnames; i++) {
		len = strlen(m->names[i]);
		if (n + len + 4 > sizeof(text)) {
			put_na(m);
			return;
		}
		n += rv_varint_put((uint8_t *)text + n, len + 1);
		memcpy(text + n, m->names[i], len);
		n += len;
		text[n++] = '\n';
	}
	put(m, text, n, true);
}

/* --- in */

static bool
is(const char *text, size_t n, const uint8_t *p, size_t len)
{
	return n == len && memcmp(text, p, n) == 0;
}

/* A message of the other end of a dialer: its text with the newline. */
static void
answer(struct rv_ms *m, const uint8_t *p, size_t n)
{
	const char *name = m->names[m->at];

	if (n > 1 && is(name, strlen(name), p, n - 1)) {
		finish(m, 0, "");
	} else if (!is(na, sizeof(na) - 1, p, n)) {
		bad(m, "REEVE-MS-0003");
	} else if (m->mode == RV_MS_LAZY || m->at + 1 == m->nnames) {
		finish(m, REEVE_ENOPROTO, "REEVE-MS-0001");
	} else {
		m->at++;
		put_name(m);
	}
}

static void
proposal(struct rv_ms *m, const uint8_t *p, size_t n)
{
	unsigned i;

	if (++m->proposals > RV_MS_PROPOSALS) {
		finish(m, REEVE_ELIMIT, "REEVE-MS-0002");
		return;
	}
	if (is(ls, sizeof(ls) - 1, p, n) && !m->listed) {
		m->listed = true;
		put_list(m);
		return;
	}
	for (i = 0; i < m->nnames; i++)
		if (is(m->names[i], strlen(m->names[i]), p, n - 1)) {
			m->at = i;
			m->refused = false;
			put_name(m);
			if (!m->done)
				finish(m, 0, "");
			return;
		}
	if (p[0] == '/' || is(ls, sizeof(ls) - 1, p, n))
		put_na(m);
	else
		bad(m, "REEVE-MS-0003");
}

static void
message(struct rv_ms *m, const uint8_t *p, size_t n)
{
	if (p[n - 1] != '\n') {
		bad(m, "REEVE-MS-0004");
	} else if (!m->header) {
		m->header = is(header, sizeof(header) - 1, p, n);
		if (!m->header)
			bad(m, "REEVE-MS-0005");
		else if (m->mode == RV_MS_LISTENER)
			put(m, header, sizeof(header) - 1, false);
	} else if (m->mode == RV_MS_LISTENER) {
		proposal(m, p, n);
	} else {
		answer(m, p, n);
	}
}

/* The length of the message at hand, when it is complete. */
static void
length(struct rv_ms *m)
{
	uint64_t v = 0;
	int rc = rv_varint_get(&v, m->in, m->have, 2);

	if (rc == REEVE_EAGAIN)
		return;
	if (rc < 0 || v == 0 || v > RV_MS_MESSAGE) {
		bad(m, "REEVE-MS-0006");
		return;
	}
	m->need = (uint32_t)v;
	m->have = 0;
}

size_t
rv_ms_feed(struct rv_ms *m, const uint8_t *p, size_t n)
{
	size_t used = 0, k;

	while (!m->done && used < n) {
		if (m->need == 0) {
			m->in[m->have++] = p[used++];
			length(m);
			continue;
		}
		k = m->need - m->have < n - used ? m->need - m->have : n - used;
		memcpy(m->in + m->have, p + used, k);
		m->have += (uint32_t)k;
		used += k;
		if (m->have < m->need)
			continue;
		k = m->need;
		m->need = m->have = 0;
		m->seen += (uint32_t)k;
		message(m, m->in, k);
		if (!m->done && m->seen > RV_MS_BYTES)
			finish(m, REEVE_ELIMIT, "REEVE-MS-0002");
	}
	return used;
}

void
rv_ms_end(struct rv_ms *m)
{
	if (m->done)
		return;
	if (m->mode == RV_MS_LAZY)
		finish(m, REEVE_ETRUNC, "REEVE-MS-0007");
	else
		finish(m, REEVE_ENOPROTO, "REEVE-MS-0007");
}

size_t
rv_ms_out(const struct rv_ms *m, const uint8_t **p)
{
	*p = m->out + m->out_at;
	return m->out_end - m->out_at;
}

void
rv_ms_sent(struct rv_ms *m, size_t n)
{
	m->out_at += (uint32_t)n;
}

int
rv_ms_init(struct rv_ms *m, enum rv_ms_mode mode, const char *const *names, unsigned n)
{
	unsigned i;

	REEVE_REQUIRE(n > 0, REEVE_EINVAL);
	for (i = 0; i < n; i++)
		REEVE_REQUIRE(names[i] != NULL && names[i][0] == '/' &&
			strlen(names[i]) < RV_MS_MESSAGE && strchr(names[i], '\n') == NULL,
		    REEVE_EINVAL);
	memset(m, 0, offsetof(struct rv_ms, in));
	m->names = names;
	m->nnames = mode == RV_MS_LAZY ? 1 : n;
	m->mode = (uint8_t)mode;
	m->id = "";
	if (mode == RV_MS_LISTENER)
		return 0;
	put(m, header, sizeof(header) - 1, false);
	put_name(m);
	return 0;
}
