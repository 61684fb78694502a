/* yamux_frame.c - see yamux_frame.h. */
#include <config.h>

#include "lib/engine/yamux_frame.h"

const char *
rv_ytype_name(unsigned type)
{
	static const char *const name[RV_Y_NTYPES] = {"DATA", "WINDOW", "PING", "GOAWAY"};

	return type < RV_Y_NTYPES ? name[type] : "?";
}
