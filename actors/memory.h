/* memory.h - byte pipes inside the process, and the names by which mem:// addresses find their listener.
 *
 * A pipe is two rings of blocks, one per direction; a block is filled by the writer's one copy and handed to the reader,
 * who cuts slices of it.  Each end belongs to one connection; the ends may be on different workers and runtimes. */
#ifndef REEVE_ACTORS_MEMORY_H
#define REEVE_ACTORS_MEMORY_H

#include "lib/transport/transport.h"

#define RVA_MEMORY_BYTES (256u * 1024) /* in flight per direction */

/* Two joined ends.  REEVE_ENOMEM. */
int rva_memory_pipe(struct rv_transport *t[2], struct rv_arena *ar, size_t bytes);

struct reeve_listener;
/* Register a listener under a name: REEVE_ESYS_BASE - EADDRINUSE when it is taken, REEVE_ENOMEM. */
int rva_memory_bind(const char *name, struct reeve_listener *l);
void rva_memory_unbind(struct reeve_listener *l);
/* Call fn with the listener of that name while it cannot go away; REEVE_ESYS_BASE - ECONNREFUSED when there is none. */
int rva_memory_find(const char *name, int (*fn)(struct reeve_listener *l, void *arg), void *arg);

#endif
