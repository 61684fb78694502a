/*
 * loan.pml - Spin model of queues/loan.h: threads that run a sleeping worker's turn themselves.
 *
 * POSTERS threads post TIMES messages each and then either wake the worker or borrow its turn; the worker also
 * wakes by itself (a descriptor, a timer).  Steps are those of the C code; memory is sequentially consistent.
 *
 * Checked: nobody runs while another does; at rest every message was handled and the worker sleeps.
 *
 * BUG plants one mistake, which must be found:
 *	1  a worker that comes back does not look whether its turn is lent
 *	2  a borrower gives the turn back without looking at the inbox again
 *	3  a borrower looks at the inbox before it gives the turn back
 *	4  a borrower does not tell a worker that waits for its turn
 *	5  a worker goes to sleep without looking again
 *	6  a borrower leaves what it did not finish to nobody
 */
#ifndef BUG
#define BUG 0
#endif
#define POSTERS 2
#define TIMES   2

#define AWAKE  0
#define ASLEEP 1
#define LENT   2
#define WANTED 3

byte word = AWAKE;
byte inbox;   /* messages that nobody took */
byte left;    /* taken and not handled: whoever has the turn */
byte handled;
byte running; /* inside the turn */
byte edges;   /* on the worker's descriptor */
byte finished; /* posters that are through */

inline run_all()
{
	atomic { running++; assert(running == 1) };
	atomic { left = left + inbox; inbox = 0 };
	handled = handled + left;
	left = 0;
	running--
}

/* At most one message: a borrower's turn is bounded. */
inline run_some()
{
	atomic { running++; assert(running == 1) };
	atomic { left = left + inbox; inbox = 0 };
	if :: left > 0 -> handled++; left-- :: else fi;
	running--
}

proctype worker()
{
	bit look;

end:	do
	:: run_all();
		word = ASLEEP;
#if BUG == 5
		look = 0;
#else
		look = inbox > 0;
#endif
		if
		:: look
		:: else ->
			/* Others may make it ready at any time, while there is still something to come. */
endwait:		if
			:: edges > 0 -> edges = 0
			:: finished < POSTERS -> skip
			fi
		fi;
#if BUG == 1
		word = AWAKE
#else
back:		if
		:: atomic { word == ASLEEP -> word = AWAKE }
		:: atomic { word == AWAKE -> skip }
		:: atomic { word == LENT -> word = WANTED };
endwant:		word != WANTED; goto back
		fi
#endif
	od
}

inline wake_up()
{
	seen = word;
	if
	:: seen == ASLEEP -> atomic { if :: word == ASLEEP -> word = AWAKE; mine = 1 :: else fi };
		if :: mine -> edges = 1; mine = 0 :: else fi
	:: else
	fi
}

proctype poster()
{
	byte i, seen;
	bit mine, look, again;

	do
	:: i < TIMES ->
		inbox++;
		if
		:: wake_up()
		:: again = 1;
			do
			:: again == 0 -> break
			:: else ->
				again = 0;
				seen = word;
				if
				:: seen == ASLEEP ->
					atomic { if :: word == ASLEEP -> word = LENT; mine = 1 :: else fi };
					if
					:: mine ->
						mine = 0;
						run_some();
#if BUG == 3
						look = inbox > 0;
#endif
						if
						:: left > 0 ->
							/* Not finished: the worker has to. */
#if BUG != 6
							atomic { seen = word; word = AWAKE };
							if :: seen == LENT -> edges = 1 :: else fi
#else
							atomic { if :: word == LENT -> word = ASLEEP :: else -> word = AWAKE fi }
#endif
						:: else ->
							atomic {
								if
								:: word == LENT -> word = ASLEEP; again = 1
								:: else ->
#if BUG != 4
									word = AWAKE
#else
									skip
#endif
								fi
							};
#if BUG != 3
							look = inbox > 0;
#endif
#if BUG == 2
							look = 0;
#endif
							if :: look == 0 -> again = 0 :: else fi
						fi
					:: else
					fi
				:: else
				fi
			od
		fi;
		atomic { i++; seen = 0; look = 0 }
	:: else -> break
	od;
	finished++
}

init {
	byte i;

	atomic {
		run worker();
		do :: i < POSTERS -> run poster(); i++ :: else -> break od
	}
}

/* When nothing can move any more, everything must have arrived. */
active proctype monitor()
{
	timeout -> assert(handled == POSTERS * TIMES && inbox == 0 && left == 0)
}
