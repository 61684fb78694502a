/* user.c - actors of the application: reeve/actor.h.
 *
 * An actor is its mailbox and a bell.  References keep the memory.  The runtime's register names every actor that was
 * not stopped, so that the end of the runtime reaches it. */
#include <config.h>

#include "actors/user.h"

#include "actors/connection.h"
#include "actors/op.h"
#include "actors/runtime.h"
#include "lib/alloc.h"
#include "lib/check.h"

#define USER_STOP 1u
#define USER_LAST 2u /* no reference is left */

_Static_assert(
    sizeof(struct rva_msg) <= sizeof(reeve_msg_t), "a message fits the caller's storage");

static void
user_stop_turn(struct reeve_actor *a)
{
	if (a->stopped)
		return;
	a->stopped = true;
	rva_rt_remove_actor(a->rt, a);
	a->fn(a, NULL, a->arg);
}

static void
user_on(struct rva_actor *actor, struct rvq_node *n)
{
	struct reeve_actor *a = rva_container(actor, struct reeve_actor, actor);
	uint32_t bits;

	if (n != &a->bell.node) {
		a->fn(a, (reeve_msg_t *)(void *)n, a->arg);
		return;
	}
	bits = rvq_bell_answer(&a->bell);
	user_stop_turn(a);
	if (bits & USER_LAST)
		actor->dead = true;
}

static void
user_free(struct rva_actor *actor)
{
	struct reeve_actor *a = rva_container(actor, struct reeve_actor, actor);

	rv_free(a->arena, a, sizeof(*a));
}

static const struct rva_actor_ops user_ops = {user_on, user_free, false};

int
reeve_actor_spawn(
    reeve_actor_t **out, reeve_rt_t *rt, reeve_actor_fn fn, void *arg, reeve_ctl_t *near_to)
{
	struct reeve_actor *a;
	int rc;

	REEVE_REQUIRE(out != NULL && rt != NULL && fn != NULL, REEVE_EINVAL);
	REEVE_REQUIRE(near_to == NULL || near_to->conn->rt == rt, REEVE_EINVAL);
	rc = rva_rt_alive(rt);
	REEVE_REQUIRE(rc == 0, rc);
	a = rv_zalloc(rt->arena, sizeof(*a));
	REEVE_REQUIRE(a != NULL, REEVE_ENOMEM);
	rva_actor_init(&a->actor, near_to != NULL ? near_to->conn->w : rva_rt_place(rt), &user_ops);
	rvq_bell_init(&a->bell);
	rvq_ref_init(&a->refs, 1);
	a->fn = fn;
	a->arg = arg;
	a->rt = rt;
	a->arena = rt->arena;
	rc = rva_rt_add_actor(rt, a);
	if (rc < 0) {
		rv_free(rt->arena, a, sizeof(*a));
		return rc;
	}
	*out = a;
	return 0;
}

void
rva_user_post(reeve_actor_t *a, struct rvq_node *n)
{
	rva_post(&a->actor, n);
}

void
reeve_actor_post(reeve_actor_t *a, reeve_msg_t *msg)
{
	struct rva_msg *m = (struct rva_msg *)(void *)msg;

	if (a == NULL || msg == NULL)
		return;
	m->kind = RVA_MSG_USER;
	rva_post(&a->actor, &m->node);
}

reeve_op_t *
reeve_msg_op(reeve_msg_t *msg)
{
	struct rva_msg *m = (struct rva_msg *)(void *)msg;

	return m != NULL && m->kind == RVA_MSG_DONE ? rva_op_of_msg(&m->node) : NULL;
}

void
rva_user_stop(struct reeve_actor *a)
{
	rva_ring(&a->actor, &a->bell, USER_STOP);
}

void
reeve_actor_stop(reeve_actor_t *a)
{
	if (a != NULL)
		rva_user_stop(a);
}

reeve_actor_t *
reeve_actor_ref(reeve_actor_t *a)
{
	if (a != NULL)
		rvq_ref_get(&a->refs);
	return a;
}

void
reeve_actor_unref(reeve_actor_t *a)
{
	if (a != NULL && rvq_ref_put(&a->refs))
		rva_ring(&a->actor, &a->bell, USER_LAST);
}

void *
reeve_actor_arg(const reeve_actor_t *a)
{
	return a != NULL ? a->arg : NULL;
}
