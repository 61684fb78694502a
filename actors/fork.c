/* fork.c - the generation of the process: the library's only process-wide word beside the memory pipes' names. */
#include <config.h>

#include "actors/fork.h"

#include <pthread.h>

#include "queues/cell.h"

static struct rvq_cell32 generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
in_child(void)
{
	(void)rvq_cell32_add(&generation, 1);
}

static void
watch(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

uint32_t
rva_fork_generation(void)
{
	(void)pthread_once(&once, watch);
	return rvq_cell32_get_relaxed(&generation);
}
