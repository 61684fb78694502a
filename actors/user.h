/* user.h - actors of the application. */
#ifndef REEVE_ACTORS_USER_H
#define REEVE_ACTORS_USER_H

#include <reeve/actor.h>

#include "actors/actor.h"
#include "queues/ref.h"

struct reeve_actor {
	struct rva_actor actor;
	struct rvq_bell bell; /* RVA_USER_* */
	struct rvq_ref refs;
	reeve_actor_fn fn; /* immutable */
	void *arg;         /* immutable */
	reeve_rt_t *rt;    /* immutable; used until stopped */
	struct rv_arena *arena;
	struct reeve_actor *next, **pprev; /* register, under its lock */
	bool stopped;                      /* owner */
};

void rva_user_post(reeve_actor_t *a, struct rvq_node *n);
/* The runtime ends: as reeve_actor_stop, by the register. */
void rva_user_stop(struct reeve_actor *a);

#endif
