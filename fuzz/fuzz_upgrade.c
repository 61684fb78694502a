/* fuzz_upgrade.c - multistream-select in its three modes and the exchange of plaintext against arbitrary bytes.
 *
 * The first byte chooses the machine and how its input is cut.  Looked for: crashes, more bytes used than given, output
 * without a bound, an end that is not told, a result that depends on how the input was cut. */
#include <config.h>

#include "fuzz/fuzz.h"
#include "lib/upgrade/multistream.h"
#include "lib/upgrade/plaintext.h"

#include <string.h>

struct result {
	int rc;
	bool done;
	unsigned at;
	size_t used, out;
};

static struct result
negotiate(enum rv_ms_mode mode, const uint8_t *p, size_t n, size_t piece)
{
	static const char *const names[] = {"/yamux/1.0.0", "/mplex/6.7.0", "/a"};
	static struct rv_ms m;
	const uint8_t *out;
	struct result r = {0};
	size_t k, used;

	must(rv_ms_init(&m, mode, names, mode == RV_MS_LAZY ? 1 : 3) == 0);
	while (!m.done && r.used < n) {
		k = n - r.used < piece ? n - r.used : piece;
		used = rv_ms_feed(&m, p + r.used, k);
		must(used <= k && (used == k || m.done));
		r.used += used;
		while ((k = rv_ms_out(&m, &out)) > 0) {
			must(out >= m.out && out + k <= m.out + RV_MS_OUT);
			r.out += k;
			rv_ms_sent(&m, k > 3 ? k / 2 : k);
			r.out -= k > 3 ? k - k / 2 : 0;
		}
	}
	if (!m.done)
		rv_ms_end(&m);
	must(m.done && m.id != NULL && (m.rc != 0 || m.at < m.nnames));
	must(r.out <= 16384 && r.used <= RV_MS_BYTES + RV_MS_MESSAGE);
	r.done = m.done;
	r.rc = m.rc;
	r.at = m.rc == 0 ? m.at : 0;
	return r;
}

static struct result
exchange(const uint8_t *p, size_t n, size_t piece)
{
	static const struct rv_pubkey key = {.type = RV_KEY_ED25519, .len = 32};
	static struct rv_plaintext x;
	struct result r = {0};
	const uint8_t *out;
	size_t k, used;

	rv_plaintext_init(&x, &key, NULL);
	while (!x.done && r.used < n) {
		k = n - r.used < piece ? n - r.used : piece;
		used = rv_plaintext_feed(&x, p + r.used, k);
		must(used <= k && (used == k || x.done));
		r.used += used;
	}
	while ((k = rv_plaintext_out(&x, &out)) > 0) {
		r.out += k;
		rv_plaintext_sent(&x, k);
	}
	if (!x.done)
		rv_plaintext_end(&x);
	must(x.done && x.id != NULL && r.used <= RV_PLAINTEXT_MAX + 2);
	r.done = x.done;
	r.rc = x.rc;
	return r;
}

/* One negotiation that came from a real peer, with one byte changed: arbitrary bytes do not get far. */
static size_t
nearly(uint8_t *to, const uint8_t *p, size_t n)
{
	static const char text[] =
	    "\x13/multistream/1.0.0\n\x03na\n\x0d/mplex/6.7.0\n\x03ls\n\x0d/yamux/1.0.0\n";
	size_t len = sizeof(text) - 1;

	memcpy(to, text, len);
	for (size_t i = 0; i + 1 < n && i < 8; i += 2)
		to[p[i] % len] = p[i + 1];
	return len;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint8_t near[128];
	struct result a, b;
	unsigned how;
	size_t piece;

	if (n == 0)
		return 0;
	how = p[0] % 4;
	piece = p[0] / 16 + 1u;
	p++;
	n--;
	if (p[-1] & 8) {
		n = nearly(near, p, n);
		p = near;
	}
	if (how == 0) {
		a = exchange(p, n, SIZE_MAX);
		b = exchange(p, n, piece);
	} else {
		a = negotiate((enum rv_ms_mode)how, p, n, SIZE_MAX);
		b = negotiate((enum rv_ms_mode)how, p, n, piece);
	}
	must(a.rc == b.rc && a.at == b.at && a.used == b.used && a.out == b.out);
	return 0;
}
