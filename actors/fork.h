/* fork.h - a runtime cannot live on in a forked child: its threads are not there.  A counter that the child's side of
 * fork raises tells. */
#ifndef REEVE_ACTORS_FORK_H
#define REEVE_ACTORS_FORK_H

#include <stdint.h>

uint32_t rva_fork_generation(void);

#endif
