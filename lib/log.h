/* log.h - the only way the library says anything: a hook with stable ids, silent by default. */
#ifndef REEVE_LIB_LOG_H
#define REEVE_LIB_LOG_H

#include <reeve/rt.h>

struct rv_log {
	reeve_log_fn fn;
	void *ctx;
	int level;
};
static inline int
rv_log_on(const struct rv_log *l, int level)
{
	return l->fn != NULL && level <= l->level;
}
/* Formats into a buffer of 256 bytes on the stack; does nothing when the level is off. */
void rv_log(const struct rv_log *l, int level, const char *id, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
