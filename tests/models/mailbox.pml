/*
 * mailbox.pml - Spin model of queues/mailbox.h and of the parking protocol of queues/park.h.
 *
 * POSTERS posters each post their one node from afar TIMES times, again as soon as it was popped.
 * With one worker, that is the owner's home and posts a node of its own near, NEARS times, in turns and between
 * them.  With two (-DWORKERS=2), which share a run queue and post nothing, the owner changes hands.  A
 * worker takes the owner off the run queue, runs a turn and sleeps on a parking word.  Steps are those of
 * the C code; memory is sequentially consistent (mailbox_relacy.cc does the weak orders).
 *
 * Checked: the owner is in the run queue at most once and runs on one worker at a time; no node is
 * popped that was not posted; a post that was over when another began, from whatever lane, is popped first; at
 * rest every post was popped.
 *
 * BUG plants one mistake, which must be found:
 *	1  idle is tested for, then stored (not one compare-and-swap)
 *	2  the mailbox goes idle while the near lane has nodes
 *	3  a worker goes to sleep without looking again
 *	4  a worker looks again before it announces itself
 *	5  a waker looks for sleepers before it publishes
 *	6  a near post does not take the far lane first
 *	7  taking the far lane is a load and a store
 *	8  a near post claims an idle mailbox by a store
 *	9  a far post stores the word that it has made (not one compare-and-swap)
 *	10 what was taken goes before the near lane
 *
 * What only the owner may touch is joined with the step before it: no other process could tell.
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#define POSTERS 2
#define TIMES   2
#if WORKERS == 1
#define NEARS 2
#else
#define NEARS 0
#endif

#define NEAR   (POSTERS + 1) /* the home's node */
#define NODES  (POSTERS + 2)
#define NIL    0
#define IDLE   255
#define BUDGET 2

byte next[NODES];
byte far = IDLE;
byte first = NIL, last = NIL;

byte runnable;         /* entries of the owner in the run queue */
byte running;          /* workers inside the owner */
byte done;             /* nodes popped */
byte posted[NODES];    /* 1 from the call of post on, 2 when it is over, 0 after the pop */
byte before_me[NODES]; /* bits of the nodes whose posts were over when this one's began */
byte word;             /* parking: 2 * wake-ups + armed */

#define OVER(n) ((posted[n] == 2) << (n))

inline begins(n)
{
	posted[n] = 1;
	before_me[n] = OVER(1) | OVER(2) | OVER(NEAR)
}

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
	byte i, was, seen;
	bit ok;

	do
	:: i < TIMES ->
		atomic { posted[me] == 0 -> begins(me); was = far };
		do
		:: next[me] = (was == IDLE -> NIL : was);
#if BUG == 9
			atomic { far = me; posted[me] = 2 };
			break
#else
			atomic {
				if
				:: far == was -> far = me; posted[me] = 2; ok = 1
				:: else -> was = far
				fi
			};
			if :: ok -> break :: else fi
#endif
		od;
		if :: was == IDLE -> schedule() :: else fi;
		atomic { ok = 0; was = 0; i++ }
	:: else -> break
	od
}

/* The far lane, taken as `newest`, turned and put behind the near one. */
inline append_taken()
{
	n = newest; rev = NIL;
	do
	:: n != NIL -> nx = next[n]; next[n] = rev; rev = n; n = nx
	:: else -> break
	od;
#if BUG == 10
	if :: first != NIL -> next[newest] = first :: else -> last = newest fi;
	first = rev;
#else
	if :: first == NIL -> first = rev :: else -> next[last] = rev fi;
	last = newest;
#endif
	newest = NIL; rev = NIL; nx = NIL
}

inline take()
{
#if BUG == 7
	newest = far;
	atomic { far = NIL; append_taken() }
#else
	atomic { newest = far; far = NIL; append_taken() }
#endif
}

inline post_near()
{
	atomic { begins(NEAR); was = far };
#if BUG != 6
	if :: was != NIL && was != IDLE -> take() :: else fi;
#endif
	atomic {
		next[NEAR] = NIL;
		if :: first == NIL -> first = NEAR :: else -> next[last] = NEAR fi;
		last = NEAR;
		posted[NEAR] = 2
	};
	if
	:: was == IDLE ->
#if BUG == 8
		atomic { far = NIL; runnable++; assert(runnable == 1) }
#else
		atomic {
			if
			:: far == IDLE -> far = NIL; runnable++; assert(runnable == 1)
			:: else
			fi
		}
#endif
	:: else
	fi;
	atomic { was = 0; nears++ }
}

inline took(k)
{
	assert(posted[k] == 2 && before_me[k] == 0);
	posted[k] = 0;
	before_me[1] = before_me[1] & ~(1 << k);
	before_me[2] = before_me[2] & ~(1 << k);
	before_me[NEAR] = before_me[NEAR] & ~(1 << k);
	done++;
	got = 1
}

inline pop()
{
	got = 0;
	if
	:: first == NIL ->
		was = far;
		if :: was != NIL && was != IDLE -> take() :: else fi;
		was = 0
	:: else
	fi;
	atomic {
		if
		:: first != NIL -> n = first; first = next[n]; took(n); n = NIL
		:: else
		fi
	}
}

/* Leaves rest at 1 when the owner went idle; it is not "running" from the compare-and-swap on. */
inline go_idle()
{
	rest = 0;
#if BUG == 1
	was = far;
	running--;
	if :: first == NIL && was == NIL -> far = IDLE; rest = 1 :: else fi;
	was = 0
#elif BUG == 2
	atomic { running--; if :: far == NIL -> far = IDLE; rest = 1 :: else fi }
#else
	atomic { running--; if :: first == NIL && far == NIL -> far = IDLE; rest = 1 :: else fi }
#endif
}

proctype worker()
{
	byte n, nx, rev, newest, was, turns, nears, ticket, seen;
	bit got, rest;

end:	do
	:: atomic { runnable > 0 -> runnable--; running++; assert(running == 1); turns = 0 };
		do
		:: turns < BUDGET -> pop(); atomic { turns++; if :: got == 0 -> break :: else fi }
		:: nears < NEARS && posted[NEAR] == 0 -> post_near()
		:: turns == BUDGET -> break
		od;
#if BUG == 2
		go_idle();
#else
		if :: got == 0 -> go_idle() :: else -> running-- fi;
#endif
		/* not at rest: back into the queue; no wake-up, for this worker is awake and will
		 * look */
		if :: rest == 0 -> atomic { runnable++; assert(runnable == 1) } :: else fi;
		atomic { turns = 0; n = 0; got = 0; rest = 0 }
	:: nears < NEARS && posted[NEAR] == 0 -> post_near() /* another actor's turn */
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
		i = 1;
		do :: i <= POSTERS -> run poster(i); i++ :: else -> break od;
		i = 0;
		do :: i < WORKERS -> run worker(); i++ :: else -> break od
	}
}

/* When nothing can move any more, everything must have arrived.  (A home may sleep with posts of its own unsaid.) */
active proctype monitor()
{
	timeout -> assert(posted[1] == 0 && posted[2] == 0 && posted[NEAR] == 0 && done >= POSTERS * TIMES)
}
