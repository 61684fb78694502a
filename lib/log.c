/* log.c - see log.h. */
#include <config.h>

#include "lib/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void
rv_log(const struct rv_log *l, int level, const char *id, const char *fmt, ...)
{
	char text[RV_LOG_MAX];
	int saved = errno;
	va_list ap;

	if (!rv_log_on(l, level))
		return;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	l->fn(l->ctx, level, id, text);
	errno = saved;
}
