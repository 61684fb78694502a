/* idtab.c - see idtab.h. */
#include <config.h>

#include "lib/engine/idtab.h"
#include "lib/check.h"

#include <reeve/error.h>

#define RV_IDTAB_MIN 16u

void
rv_idtab_init(struct rv_idtab *t, uint64_t seed)
{
	t->v = NULL;
	t->cap = t->n = 0;
	t->shift = 63;
	/* splitmix64's finisher: neighbours in time become unrelated multipliers; odd, so that
	 * it permutes. */
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
	t->mult = (seed ^ (seed >> 31)) | 1;
}

void
rv_idtab_fini(struct rv_idtab *t, struct rv_arena *ar)
{
	rv_free(ar, t->v, t->cap * sizeof(*t->v));
	t->v = NULL;
	t->cap = t->n = 0;
}

static void
place(struct rv_idtab *t, uint64_t id, struct rv_stream *st)
{
	uint32_t i = rv_idtab_slot(t, id);

	while (t->v[i].id != 0)
		i = (i + 1) & (t->cap - 1);
	t->v[i].id = id;
	t->v[i].st = st;
}

static int
resize(struct rv_idtab *t, struct rv_arena *ar, uint32_t cap)
{
	struct rv_idtab_entry *old = t->v, *v = rv_zalloc(ar, cap * sizeof(*v));
	uint32_t was = t->cap;

	if (v == NULL)
		return REEVE_ENOMEM;
	t->v = v;
	t->cap = cap;
	for (t->shift = 64; cap > 1; cap >>= 1)
		t->shift--;
	for (uint32_t i = 0; i < was; i++)
		if (old[i].id != 0)
			place(t, old[i].id, old[i].st);
	rv_free(ar, old, was * sizeof(*old));
	return 0;
}

int
rv_idtab_reserve(struct rv_idtab *t, struct rv_arena *ar)
{
	if (2 * (t->n + 1) <= t->cap)
		return 0;
	return resize(t, ar, t->cap == 0 ? RV_IDTAB_MIN : 2 * t->cap);
}

void
rv_idtab_put(struct rv_idtab *t, uint64_t id, struct rv_stream *st)
{
	REEVE_ASSERT(id != 0 && 2 * (t->n + 1) <= t->cap);
	place(t, id, st);
	t->n++;
}

void
rv_idtab_del(struct rv_idtab *t, struct rv_arena *ar, uint64_t id)
{
	uint32_t mask = t->cap - 1, i = rv_idtab_slot(t, id), j, home;

	while (t->v[i].id != id) {
		REEVE_ASSERT(t->v[i].id != 0);
		i = (i + 1) & mask;
	}
	/* Knuth's algorithm R: move back what would no longer be found past the hole. */
	for (j = (i + 1) & mask; t->v[j].id != 0; j = (j + 1) & mask) {
		home = rv_idtab_slot(t, t->v[j].id);
		if (((j - home) & mask) >= ((j - i) & mask)) {
			t->v[i] = t->v[j];
			i = j;
		}
	}
	t->v[i].id = 0;
	t->v[i].st = NULL;
	t->n--;
	if (t->cap > 4 * RV_IDTAB_MIN && t->n < t->cap / 16)
		(void)resize(t, ar, t->cap / 4);
}
