/* filter.c - what every filter has: parts that wait to be parsed, blocks that wait to be written.  See filter.h. */
#include <config.h>

#include "lib/upgrade/filter.h"

#include "lib/check.h"

#include <string.h>

void
rv_filter_init(struct rv_filter *f, const struct rv_filter_ops *ops, uint32_t message)
{
	memset(f, 0, sizeof(*f));
	f->ops = ops;
	f->message = message;
	f->id = "";
	f->out_tail = &f->out;
}

static void
out_pop(struct rv_filter *f)
{
	struct rv_slab *s = rv_slab_of(f->out);

	f->out = f->out->next;
	f->out_off = 0;
	if (f->out == NULL)
		f->out_tail = &f->out;
	rv_slab_unref(s);
}

void
rv_filter_fini(struct rv_filter *f)
{
	while (f->nparts > 0)
		rv_slab_unref(f->part[--f->nparts].slab);
	f->nready = 0;
	while (f->out != NULL)
		out_pop(f);
	f->out_left = 0;
}

bool
rv_filter_pop(struct rv_filter *f, struct rv_part *part)
{
	if (f->nready == 0)
		return false;
	*part = f->part[0];
	f->nready--;
	f->nparts--;
	memmove(&f->part[0], &f->part[1], f->nparts * sizeof(f->part[0]));
	return true;
}

int
rv_filter_push(struct rv_filter *f, struct rv_slab *s, uint32_t off, uint32_t len)
{
	struct rv_part *last = f->nparts > f->nready ? &f->part[f->nparts - 1] : NULL;

	if (last != NULL && last->slab == s && last->off + last->len == off) {
		last->len += len;
		return 0;
	}
	REEVE_REQUIRE(f->nparts < RV_FILTER_PARTS, REEVE_ELIMIT);
	rv_slab_ref(s);
	f->part[f->nparts++] = (struct rv_part){s, off, len};
	return 0;
}

void
rv_filter_prove(struct rv_filter *f)
{
	struct rv_part *a, *b;

	/* What follows a proven part in its block is one with it. */
	if (f->nready > 0 && f->nready < f->nparts) {
		a = &f->part[f->nready - 1];
		b = &f->part[f->nready];
		if (a->slab == b->slab && a->off + a->len == b->off) {
			a->len += b->len;
			rv_slab_unref(b->slab);
			f->nparts--;
			memmove(b, b + 1, (f->nparts - f->nready) * sizeof(*b));
		}
	}
	f->nready = f->nparts;
}

void
rv_filter_out(struct rv_filter *f, struct rv_slab *s)
{
	s->link.next = NULL;
	*f->out_tail = &s->link;
	f->out_tail = &s->link.next;
	f->out_left += s->used;
}

int
rv_filter_iov(const struct rv_filter *f, struct iovec *v)
{
	uint32_t off = f->out_off;
	struct rvq_link *l;
	int n = 0;

	for (l = f->out; l != NULL && n < RV_FILTER_IOV; l = l->next, off = 0) {
		v[n].iov_base = rv_slab_of(l)->data + off;
		v[n++].iov_len = rv_slab_of(l)->used - off;
	}
	return n;
}

void
rv_filter_sent(struct rv_filter *f, size_t n)
{
	size_t left;

	REEVE_ASSERT(n <= f->out_left);
	f->out_left -= n;
	while (n > 0) {
		left = rv_slab_of(f->out)->used - f->out_off;
		if (n < left) {
			f->out_off += (uint32_t)n;
			break;
		}
		n -= left;
		out_pop(f);
	}
}
