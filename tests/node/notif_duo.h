/* notif_duo.h - the set-up of the programs that watch two nodes notify each other: theirs, a configuration each, a sink each. */
#ifndef REEVE_TESTS_NODE_NOTIF_DUO_H
#define REEVE_TESTS_NODE_NOTIF_DUO_H

#include <string.h>

#include "tests/kit/notes.h"

static struct rvt_notes t;
static reeve_sink_t *k[2];
static reeve_notif_cfg_t nc[2];
static struct rvt_notes_cfg cfg;

static inline const char *
id(unsigned i)
{
	return t.net.node[i].id;
}

static inline void
prepare(void)
{
	memset(&cfg, 0, sizeof(cfg));
	for (unsigned i = 0; i < 2; i++) {
		rvt_notes_cfg(&nc[i], NULL);
		nc[i].flags = REEVE_NOTIF_ACCEPT_ALL;
		cfg.cfg[i] = &nc[i];
	}
}

static inline void
begin(void)
{
	rvt_notes_start(&t, &cfg);
	rvt_notes_open(&t, 0, 1, k);
}

static inline void
end(void)
{
	reeve_sink_unref(k[0]);
	reeve_sink_unref(k[1]);
	rvt_notes_end(&t);
}

static inline reeve_buf_t *
note(size_t n, uint32_t number)
{
	return rvt_note(t.net.node[0].rt, n, number);
}

#endif
