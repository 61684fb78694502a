/* test_mailbox.c - the mailbox: order, re-posting, half-done posts, and "scheduled exactly once".
 *  */
#include <config.h>

#include "queues/cell.h"
#include "queues/mailbox.h"

#include "tests/queues/crew.h"

START_TEST(mailbox_is_24_bytes_and_a_node_8)
{
	ck_assert_uint_eq(sizeof(struct rvq_mailbox), 24);
	ck_assert_uint_eq(sizeof(struct rvq_node), 8);
}
END_TEST

START_TEST(first_post_schedules_and_the_next_does_not)
{
	struct rvq_mailbox m;
	struct rvq_node n[2];

	rvq_mailbox_init(&m);
	ck_assert(rvq_mailbox_post_mpsc(&m, &n[0]));
	ck_assert(!rvq_mailbox_post_mpsc(&m, &n[1]));
}
END_TEST

START_TEST(nodes_come_out_in_the_order_posted)
{
	struct rvq_mailbox m;
	struct rvq_node n[5];
	unsigned len, i;

	rvq_mailbox_init(&m);
	for (len = 0; len <= 5; len++) {
		for (i = 0; i < len; i++)
			rvq_mailbox_post_mpsc(&m, &n[i]);
		for (i = 0; i < len; i++)
			ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &n[i]);
		ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&m));
	}
}
END_TEST

START_TEST(popped_node_can_be_posted_at_once)
{
	struct rvq_mailbox a, b;
	struct rvq_node n[2];
	unsigned i;

	rvq_mailbox_init(&a);
	rvq_mailbox_init(&b);
	rvq_mailbox_post_mpsc(&a, &n[0]);
	for (i = 0; i < 10; i++) { /* the only node, again and again */
		ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&a), &n[0]);
		ck_assert(!rvq_mailbox_post_mpsc(&a, &n[0]));
	}
	rvq_mailbox_post_mpsc(&a, &n[1]);
	for (i = 0; i < 10; i++) { /* two nodes, round and round */
		ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&a), &n[i % 2]);
		rvq_mailbox_post_mpsc(&a, &n[i % 2]);
	}
	ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&a), &n[0]);
	ck_assert(rvq_mailbox_post_mpsc(&b, &n[0])); /* into another mailbox */
	ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&a), &n[1]);
	ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&a));
	ck_assert(rvq_mailbox_idle_mpsc(&a));
	ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&b), &n[0]);
}
END_TEST

START_TEST(idle_mailbox_schedules_again)
{
	struct rvq_mailbox m;
	struct rvq_node n;
	unsigned i;

	rvq_mailbox_init(&m);
	for (i = 0; i < 3; i++) {
		ck_assert(rvq_mailbox_post_mpsc(&m, &n));
		ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &n);
		ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&m));
		ck_assert(rvq_mailbox_idle_mpsc(&m));
	}
}
END_TEST

START_TEST(idle_is_refused_while_nodes_are_left)
{
	struct rvq_mailbox m;
	struct rvq_node n[2];

	rvq_mailbox_init(&m);
	rvq_mailbox_post_mpsc(&m, &n[0]);
	ck_assert(!rvq_mailbox_idle_mpsc(&m));
	rvq_mailbox_post_mpsc(&m, &n[1]);
	ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &n[0]);
	ck_assert(!rvq_mailbox_idle_mpsc(&m));
	ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &n[1]);
	ck_assert(rvq_mailbox_idle_mpsc(&m));
}
END_TEST

START_TEST(near_post_schedules_an_idle_mailbox_and_no_other)
{
	struct rvq_mailbox m;
	struct rvq_node n[3];

	rvq_mailbox_init(&m);
	ck_assert(rvq_mailbox_post_near(&m, &n[0]));
	ck_assert(!rvq_mailbox_post_near(&m, &n[1]));
	ck_assert(!rvq_mailbox_post_mpsc(&m, &n[2]));
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &n[i]);
	ck_assert(!rvq_mailbox_post_near(&m, &n[0])); /* empty, but its owner is still scheduled */
	ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &n[0]);
	ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&m));
	ck_assert(rvq_mailbox_idle_mpsc(&m));
	ck_assert(rvq_mailbox_post_mpsc(&m, &n[0]));
	ck_assert(!rvq_mailbox_post_near(&m, &n[1]));
}
END_TEST

/* What one thread does comes in its order, whatever lane it takes: all sequences of eight steps, each a near post, a far
 * one or a pop. */
START_TEST(two_lanes_are_one_queue)
{
	struct rvq_node n[8], *got;
	struct rvq_mailbox m;
	unsigned steps, in, out;

	for (unsigned code = 0; code < 6561; code++) {
		rvq_mailbox_init(&m);
		in = out = 0;
		steps = code;
		for (int i = 0; i < 8; i++, steps /= 3) {
			if (steps % 3 == 0) {
				got = rvq_mailbox_pop_mpsc(&m);
				ck_assert_ptr_eq(got, out < in ? &n[out] : NULL);
				out += got != NULL;
			} else if (steps % 3 == 1) {
				ck_assert_int_eq(rvq_mailbox_post_near(&m, &n[in]), in == 0);
				in++;
			} else {
				ck_assert_int_eq(rvq_mailbox_post_mpsc(&m, &n[in]), in == 0);
				in++;
			}
		}
		for (; out < in; out++)
			ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &n[out]);
		ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&m));
	}
}
END_TEST

#define TALKS 20000

/* A question and its answer, and back: the home's posts are near, the other's are far. */
struct talk {
	struct rvq_mailbox box;
	struct rvq_node far[TALKS], near[TALKS];
	struct rvq_cell32 asked, answered; /* how many there are */
};

static void *
ask(void *arg)
{
	struct talk *t = arg;

	for (unsigned i = 0; i < TALKS; i++) {
		while (rvq_cell32_get(&t->answered) < i)
			sched_yield();
		(void)rvq_mailbox_post_mpsc(&t->box, &t->far[i]);
		rvq_cell32_put(&t->asked, i + 1);
	}
	return NULL;
}

START_TEST(an_answer_never_overtakes_its_question)
{
	static struct talk t;
	struct crew crew = {.n = 0};
	struct rvq_node *n;
	unsigned far = 0, near = 0, said = 0;

	rvq_mailbox_init(&t.box);
	crew_start(&crew, ask, &t);
	while (far + near < 2 * TALKS) {
		if (said < rvq_cell32_get(&t.asked)) {
			(void)rvq_mailbox_post_near(&t.box, &t.near[said]);
			rvq_cell32_put(&t.answered, ++said);
		}
		if (said % 3 == 1 && said < TALKS) /* now and then some come together */
			continue;
		while ((n = rvq_mailbox_pop_mpsc(&t.box)) != NULL) {
			if (far == near)
				ck_assert_ptr_eq(n, &t.far[far++]);
			else
				ck_assert_ptr_eq(n, &t.near[near++]);
		}
	}
	crew_join(&crew);
	ck_assert(rvq_mailbox_idle_mpsc(&t.box));
}
END_TEST

#define POSTERS 3
#define WORKERS 2
#define POOL    4

struct letter {
	struct rvq_node node; /* first */
	unsigned poster;
	uint64_t seq;
	struct rvq_cell32 posted; /* 0: free again */
};

struct office {
	struct rvq_mailbox box;
	struct rvq_cell32 runnable; /* entries of the owner in the run queue: never more than one */
	struct rvq_cell32 posters;  /* still at work */
	struct rvq_cell64 posted;
	/* the owner's plain state: only one worker at a time may be here */
	unsigned inside;
	uint64_t next[POSTERS], popped;
};

struct poster {
	struct office *office;
	unsigned id;
	struct letter pool[POOL];
};

static void
schedule(struct office *o)
{
	ck_assert_uint_eq(rvq_cell32_add(&o->runnable, 1), 0);
}

static void *
post_all(void *arg)
{
	struct poster *p = arg;
	uint64_t end = crew_now_us() + CREW_STRESS_US, seq = 0;
	struct letter *l;

	for (; crew_now_us() < end || seq < 100; seq++) {
		l = &p->pool[seq % POOL];
		while (rvq_cell32_get(&l->posted))
			sched_yield();
		rvq_cell32_put(&l->posted, 1);
		l->poster = p->id;
		l->seq = seq;
		if (rvq_mailbox_post_mpsc(&p->office->box, &l->node))
			schedule(p->office);
	}
	rvq_cell64_add(&p->office->posted, seq);
	rvq_cell32_add(&p->office->posters, UINT32_MAX);
	return NULL;
}

/* One turn; true when the owner has to run again. */
static bool
turn(struct office *o)
{
	struct rvq_node *n;
	struct letter *l;
	unsigned budget;

	for (budget = 0; budget < 8; budget++) {
		ck_assert_uint_eq(o->inside++, 0);
		n = rvq_mailbox_pop_mpsc(&o->box);
		o->inside--;
		if (n == NULL)
			return !rvq_mailbox_idle_mpsc(&o->box);
		l = (struct letter *)(void *)n;
		ck_assert_uint_eq(l->seq, o->next[l->poster]);
		o->next[l->poster]++;
		o->popped++;
		rvq_cell32_put(&l->posted, 0); /* its poster posts it again at once */
	}
	return true;
}

static void *
work(void *arg)
{
	struct office *o = arg;

	for (;;) {
		if (rvq_cell32_cas(&o->runnable, 1, 0)) {
			if (turn(o))
				schedule(o);
		} else if (rvq_cell32_get(&o->posters) == 0 &&
		    rvq_load_acq(&o->box.far) == RVQ_MAILBOX_IDLE) {
			return NULL;
		} else {
			sched_yield();
		}
	}
}

START_TEST(owner_runs_on_one_worker_at_a_time_and_misses_nothing)
{
	static struct office o;
	static struct poster posters[POSTERS];
	struct crew crew = {.n = 0};
	unsigned i;

	rvq_mailbox_init(&o.box);
	rvq_cell32_put(&o.posters, POSTERS);
	for (i = 0; i < POSTERS; i++) {
		posters[i].office = &o;
		posters[i].id = i;
		crew_start(&crew, post_all, &posters[i]);
	}
	for (i = 0; i < WORKERS; i++)
		crew_start(&crew, work, &o);
	crew_join(&crew);
	ck_assert_uint_eq(o.popped, rvq_cell64_get(&o.posted));
	ck_assert_uint_gt(o.popped, 100);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {mailbox_is_24_bytes_and_a_node_8,
	    first_post_schedules_and_the_next_does_not, nodes_come_out_in_the_order_posted,
	    popped_node_can_be_posted_at_once, idle_mailbox_schedules_again,
	    idle_is_refused_while_nodes_are_left, near_post_schedules_an_idle_mailbox_and_no_other,
	    two_lanes_are_one_queue, an_answer_never_overtakes_its_question,
	    owner_runs_on_one_worker_at_a_time_and_misses_nothing};

	return rvt_run("mailbox", tests, sizeof(tests) / sizeof(tests[0]));
}
