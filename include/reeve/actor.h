/* actor.h - actors of the application on the runtime.  An actor is a function that gets one message at a time,
 * on one worker, never twice at once: its state needs no lock.  Messages from one sender arrive in order. */
#ifndef REEVE_ACTOR_H
#define REEVE_ACTOR_H

#include <reeve/rt.h>

REEVE_BEGIN

/* A message: the sender's storage (embed it).  The library's from reeve_actor_post until fn is called with it;
 * from then on the receiver's, who may post it again, pass it on or free it. */
typedef struct reeve_msg {
	void *priv[4];
} reeve_msg_t;

/* Called on the actor's worker for each message; must not block.  msg == NULL, once: the actor was stopped. Messages
 * posted after the stop still come, so that their storage can be freed. */
typedef void (*reeve_actor_fn)(reeve_actor_t *self, reeve_msg_t *msg, void *arg);

/* Make an actor.  near: NULL, or a controller whose worker it shares (reeve_stream_ctl gives a stream's), so
 * that messages between them stay on one core.  REEVE_EINVAL, REEVE_ENOMEM, REEVE_ECLOSED.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_actor_spawn(
    reeve_actor_t **a, reeve_rt_t *rt, reeve_actor_fn fn, void *arg, reeve_ctl_t *near_to);

/* Send a message.  Never blocks, never fails, allocates nothing.
 * T: any B: no W: ok borrows a */
REEVE_API void reeve_actor_post(reeve_actor_t *a, reeve_msg_t *msg);

/* The operation whose completion msg is (op->actor was this actor), or NULL for an ordinary message.
 * T: any B: no W: ok */
REEVE_API reeve_op_t *reeve_msg_op(reeve_msg_t *msg);

/* Stop: messages posted before are delivered, then fn is called with NULL.  Messages posted after the stop are
 * delivered too, with the actor stopped, until the last reference is gone, so that their storage can be freed.
 * The destruction of the runtime stops every actor; a post after that calls fn on the posting thread.
 * T: any B: no W: ok borrows a */
REEVE_API void reeve_actor_stop(reeve_actor_t *a);

/* One more reference.  Returns a.
 * T: any B: no W: ok returns ref */
REEVE_API reeve_actor_t *reeve_actor_ref(reeve_actor_t *a);

/* Let go.  NULL is ignored.  The last reference stops the actor.
 * T: any B: no W: ok consumes a */
REEVE_API void reeve_actor_unref(reeve_actor_t *a);

/* The argument given at reeve_actor_spawn.
 * T: any B: no W: ok borrows a */
REEVE_API void *reeve_actor_arg(const reeve_actor_t *a);

REEVE_END

#endif
