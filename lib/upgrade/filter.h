/* filter.h - the seam between transport and engine for encryption.  None exists yet: connections run with NULL. */
#ifndef REEVE_LIB_UPGRADE_FILTER_H
#define REEVE_LIB_UPGRADE_FILTER_H

#include <sys/uio.h>
#include "lib/buf/slice.h"

struct rv_filter;

struct rv_filter_ops {
	/* Consume cipher bytes, append plain slices.  0 or an error that ends the connection. */
	int (*open)(struct rv_filter *f, struct rv_chain *cipher, struct rv_chain *plain);
	/* Seal what v holds into one buffer (one reference).  0 or an error. */
	int (*seal)(struct rv_filter *f, const struct iovec *v, int n, reeve_buf_t **out);
	void (*destroy)(struct rv_filter *f);
};

struct rv_filter {
	const struct rv_filter_ops *ops;
};

#endif
