/* check.h - how the library checks itself.  REEVE_REQUIRE: caller's mistakes, always on, prints nothing.  REEVE_ASSERT: own
 * invariants, with --enable-debug-checks.  Peer input is never asserted. */
#ifndef REEVE_LIB_CHECK_H
#define REEVE_LIB_CHECK_H

#include <stdlib.h>

#define REEVE_REQUIRE(x, rc)       \
	do {                       \
		if (!(x))          \
			return rc; \
	} while (0)

#ifdef REEVE_DEBUG_CHECKS
#define REEVE_ASSERT(x)          \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)
#else
#define REEVE_ASSERT(x) ((void)0)
#endif

#endif
