/*
 * mailbox.pml - Spin model of queues/mailbox.h and of the parking protocol of queues/park.h.
 *
 * POSTERS posters each post their one node TIMES times, again as soon as it was popped.  WORKERS
 * workers take the owner off a run queue, run a turn and sleep on one shared parking word.  Steps
 * are those of the C code; memory is sequentially consistent (mailbox_relacy.cc does the weak
 * orders).
 *
 * Checked: the owner is in the run queue at most once and runs on one worker at a time; no node is
 * popped that was not posted; at rest every post was popped.
 *
 * BUG plants one mistake, which must be found:
 *	1  idle is tested for, then stored (not one compare-and-swap)
 *	2  the idle bit is set before the mailbox is drained
 *	3  a worker goes to sleep without looking again
 *	4  a worker looks again before it announces itself
 *	5  a waker looks for sleepers before it publishes
 *	6  a popped node stays behind as the stub
 *	7  the last node is popped without regard to a half-done post
 *
 * What only the owner may touch is joined with the step before it: no other process could tell.
 */
#ifndef BUG
#define BUG 0
#endif
#define POSTERS 2
#define TIMES   2
#define WORKERS 2

#define STUB   0
#define NIL    255
#define BUDGET 2

byte next[POSTERS + 1];
byte head = STUB; /* with the idle bit: one word */
bit idle = 1;
byte tail = STUB;

byte runnable;          /* entries of the owner in the run queue */
byte running;           /* workers inside the owner */
byte done;              /* nodes popped */
bit posted[POSTERS + 1]; /* between the call of post and the pop */
byte word;              /* parking: 2 * wake-ups + armed */

inline wake_up()
{
	if
	:: seen & 1 -> atomic { if :: word == seen -> word = word + 1 :: else fi; seen = 0 }
	:: else -> seen = 0
	fi
}

inline schedule()
{
#if BUG == 5
	seen = word;
	atomic { runnable++; assert(runnable == 1) };
#else
	atomic { runnable++; assert(runnable == 1) };
	seen = word;
#endif
	wake_up()
}

proctype poster(byte me)
{
	byte i, prev, seen;
	bit was;

	do
	:: i < TIMES ->
		atomic { posted[me] == 0 -> posted[me] = 1; next[me] = NIL };
		atomic { prev = head; was = idle; head = me; idle = 0 };
		next[prev] = me;
		if :: was -> schedule() :: else fi;
		i++
	:: else -> break
	od
}

inline took(n)
{
	atomic { assert(n != STUB && posted[n]); posted[n] = 0; done++; got = 1 }
}

#if BUG == 6
/* The node that tail names was popped before and serves as the stub. */
inline pop()
{
	atomic {
		got = 0;
		nx = next[tail];
		if :: nx != NIL -> tail = nx; took(nx) :: else fi
	}
}
#else
inline pop()
{
	atomic {
		got = 0;
		old = tail;
		nx = next[old];
		if :: old == STUB && nx != NIL -> tail = nx; old = nx; goto again :: else fi;
		goto decide
	};
again:	nx = next[old];
decide:
	if
	:: old == STUB
	:: old != STUB && nx != NIL -> atomic { tail = nx; took(old) }
	:: old != STUB && nx == NIL ->
		next[STUB] = NIL;
#if BUG == 7
		atomic { head = STUB; tail = STUB; took(old) }
#else
		atomic {
			if
			:: head == old -> head = STUB; tail = STUB; took(old)
			:: else
			fi
		};
		if
		:: got
		:: else -> atomic {
			nx = next[old];
			if :: nx != NIL -> tail = nx; took(old) :: else fi
		}
		fi
#endif
	fi
}
#endif

/* Leaves rest at 1 when the owner went idle; it is not "running" from the compare-and-swap on. */
inline go_idle()
{
	rest = 0;
#if BUG == 1
	old = head;
	running--;
	if :: old == STUB -> idle = 1; rest = 1 :: else fi
#elif BUG == 6
	atomic { running--; if :: head == tail -> idle = 1; rest = 1 :: else fi }
#else
	atomic { running--; if :: head == STUB -> idle = 1; rest = 1 :: else fi }
#endif
}

proctype worker()
{
	byte old, nx, n, ticket, seen;
	bit got, rest;

end:	do
	:: atomic { runnable > 0 -> runnable--; running++; assert(running == 1); n = 0 };
#if BUG == 2
		idle = 1;
#endif
		do
		:: n < BUDGET -> pop(); atomic { n++; if :: got == 0 -> break :: else fi }
		:: else -> break
		od;
		if :: got == 0 -> go_idle() :: else -> running-- fi;
		/* not at rest: back into the queue; no wake-up, for this worker is awake and will
		 * look */
		if :: rest == 0 -> atomic { runnable++; assert(runnable == 1) } :: else fi;
		atomic { n = 0; old = 0; nx = 0; got = 0; rest = 0 }
	:: runnable == 0 ->
#if BUG == 4
		seen = runnable;
#endif
		atomic { word = word | 1; ticket = word };
#if BUG == 3
		seen = 0;
#elif BUG != 4
		seen = runnable;
#endif
		if
		:: seen > 0
		:: else ->
endsleep:		word != ticket
		fi;
		atomic { seen = 0; ticket = 0 }
	od
}

init {
	byte i;

	atomic {
		do :: i <= POSTERS -> next[i] = NIL; i++ :: else -> break od;
		i = 1;
		do :: i <= POSTERS -> run poster(i); i++ :: else -> break od;
		i = 0;
		do :: i < WORKERS -> run worker(); i++ :: else -> break od
	}
}

/* When nothing can move any more, everything must have arrived. */
active proctype monitor()
{
	timeout -> assert(done == POSTERS * TIMES)
}
