/* log.h - the only way the library says anything: a hook with stable ids, silent by default.
 *
 * Any thread: the hook is called on whichever thread has something to say. */
#ifndef REEVE_LIB_LOG_H
#define REEVE_LIB_LOG_H

#include <reeve/rt.h>

/* Immutable once threads share it. */
struct rv_log {
	reeve_log_fn fn; /* NULL: silent */
	void *ctx;
	int level; /* the least important that is reported: REEVE_LOG_* */
};
static inline int
rv_log_on(const struct rv_log *l, int level)
{
	return l->fn != NULL && level <= l->level;
}
/* Formats into a buffer of RV_LOG_MAX bytes on the stack (longer text is cut); does nothing when
 * the level is off.  Keeps errno. */
void rv_log(const struct rv_log *l, int level, const char *id, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#define RV_LOG_MAX 256

#endif
