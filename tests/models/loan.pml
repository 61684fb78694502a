/*
 * loan.pml - Spin model of queues/loan.h: threads that run a sleeping worker's turn themselves.
 *
 * POSTERS threads post TIMES messages each and then either wake the worker or borrow its turn.  Who has borrowed it may
 * lead: sleep in the poller in the worker's stead, while that sleeps there too.  Descriptors become ready EVENTS times;
 * either of the sleepers may get such an event, and the edge of the worker's bell.  Steps are those of the C code; memory
 * is sequentially consistent.
 *
 * Checked: nobody runs while another does; at rest every message and every event was handled.
 *
 * BUG plants one mistake, which must be found:
 *	1  a worker that comes back does not look whether its turn is lent
 *	2  a borrower gives the turn back without looking at the inbox again
 *	3  a borrower looks at the inbox before it gives the turn back
 *	4  a borrower does not tell a worker that waits for its turn
 *	5  a worker goes to sleep without looking again
 *	6  a borrower leaves what it did not finish to nobody
 *	7  a leader goes to sleep without looking again
 *	8  a worker that wants its turn does not ring for a leader
 *	9  who posts takes a leader for somebody awake
 */
#ifndef BUG
#define BUG 0
#endif
#define POSTERS 2
#define TIMES   2
#define EVENTS  1

#define AWAKE  0
#define ASLEEP 1
#define LENT   2
#define WANTED 3
#define LED    4

byte word = AWAKE;
byte inbox;    /* messages that nobody took */
byte left;     /* taken and not handled: whoever has the turn */
byte handled;
byte running;  /* inside the turn */
bit edge;      /* the bell's, in the poller */
byte ready;    /* events in the poller */
byte seen_events; /* handled */
byte spurious = 2; /* waits that end by themselves */

inline enter()
{
	atomic { running++; assert(running == 1); left = left + inbox; inbox = 0 }
}

proctype worker()
{
	bit look;
	byte have; /* events taken out of the poller */

end:	do
	:: enter();
		atomic { handled = handled + left; left = 0; seen_events = seen_events + have; have = 0 };
		running--;
		word = ASLEEP;
#if BUG == 5
		look = 0;
#else
		look = inbox > 0;
#endif
		if
		:: look
		:: else ->
endwait:		if
			:: atomic { edge -> edge = 0 }
			:: atomic { ready > 0 -> ready--; have++ }
			:: atomic { spurious > 0 -> spurious-- } /* a timer */
			fi
		fi;
#if BUG == 1
		word = AWAKE
#else
back:		if
		:: atomic { word == ASLEEP -> word = AWAKE }
		:: atomic { word == AWAKE -> skip }
		:: atomic { (word == LENT || word == LED) -> word = WANTED };
#if BUG != 8
			edge = 1;
#endif
endwant:		word != WANTED; goto back
		fi
#endif
	od
}

/* Sets mine if the caller may ring. */
inline claim(to)
{
	mine = 0;
	seen = word;
	if
	:: seen == ASLEEP -> atomic { if :: word == ASLEEP -> word = to; mine = 1 :: else fi }
#if BUG != 9
	:: seen == LED -> atomic { if :: word == LED -> word = LENT; led = 1 :: else fi };
		if :: led -> edge = 1; led = 0 :: else fi
#endif
	:: else
	fi
}

/* Whoever has the turn: at most one message. */
inline run_some()
{
	enter();
	atomic { if :: left > 0 -> handled++; left-- :: else fi; seen_events = seen_events + have; have = 0 };
	running--
}

/* The turn goes to the worker, whether it sleeps or waits. */
inline hand()
{
	atomic { seen = word; word = AWAKE };
	if :: seen != WANTED -> edge = 1 :: else fi
}

proctype poster()
{
	byte i, seen, have;
	bit mine, look, led;

	do
	:: i < TIMES ->
		inbox++;
		if
		:: claim(AWAKE); if :: mine -> edge = 1 :: else fi
		:: true ->
retry:			skip;
			claim(LENT);
			if :: mine == 0 -> goto over :: else fi;
turn:			skip;
			run_some();
#if BUG == 3
			look = inbox > 0;
#endif
			if
			:: left > 0 ->
				/* Not finished: the worker has to. */
#if BUG == 6
				atomic { if :: word == LENT -> word = ASLEEP :: else -> word = AWAKE fi }
#else
				hand()
#endif
			:: left == 0 -> goto give
			:: left == 0 -> /* lead */
				atomic { if :: word == LENT -> word = LED; mine = 1 :: else -> mine = 0 fi };
				if :: mine == 0 -> hand(); goto over :: else fi;
#if BUG == 7
				look = 0;
#else
				look = inbox > 0;
#endif
				if
				:: look
				:: else ->
endlead:				if
					:: atomic { edge -> edge = 0 }
					:: atomic { ready > 0 -> ready--; have++ }
					:: atomic { spurious > 0 -> spurious-- } /* its deadline */
					fi
				fi;
				atomic {
					if
					:: word == LED || word == LENT -> word = LENT; mine = 1
					:: else -> mine = 0
					fi
				};
				if
				:: mine -> goto turn
				:: else -> run_some(); hand(); goto over
				fi
			fi;
			goto over;
give:			atomic {
				if
				:: word == LENT -> word = ASLEEP; mine = 1
				:: else -> mine = 0;
#if BUG != 4
					word = AWAKE
#endif
				fi
			};
#if BUG != 3
			look = inbox > 0;
#endif
#if BUG == 2
			look = 0;
#endif
			if :: mine && look -> goto retry :: else fi
		fi;
over:		atomic { i++; seen = 0; look = 0; mine = 0 }
	:: else -> break
	od
}

proctype descriptors()
{
	byte i;

	do :: i < EVENTS -> ready++; i++ :: else -> break od
}

init {
	byte i;

	atomic {
		run worker();
		run descriptors();
		do :: i < POSTERS -> run poster(); i++ :: else -> break od
	}
}

/* When nothing can move any more, everything must have arrived that was posted. */
active proctype monitor()
{
	timeout -> assert(inbox == 0 && left == 0 && ready == 0 && seen_events == EVENTS)
}
