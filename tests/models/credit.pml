/*
 * credit.pml - Spin model of the credit rules between two actors that send to each other.
 *
 * Each side sends TOTAL bytes in frames of FRAME.  Data goes through a mailbox of CAP entries;
 * credit comes back merged in one counter per side, as a doorbell.  The rules: data needs credit,
 * and credit is granted for the window once; a sender uses whatever credit it has; the consumer
 * returns credit after it released the bytes, at half a window or before it waits with nothing
 * left to read.
 *
 * Checked: a sender with credit never meets a full mailbox; nobody holds more than a window; at
 * rest both sides got everything and have their whole credit back.
 *
 * BUG plants one mistake, which must be found:
 *	1  the mailbox has fewer entries than there are credits
 *	2  no credit: a sender blocks while the mailbox is full
 *	3  a sender waits for a whole frame of credit, which comes back at half a window only
 *	4  credit is returned when the bytes arrive instead of when they are released
 *	5  the merged credit is read and then cleared in two steps
 */
#ifndef BUG
#define BUG 0
#endif

#define WINDOW 4
#define FRAME  4
#define TOTAL  8

#if BUG == 1
#define CAP (WINDOW - 1)
#elif BUG == 2
#define CAP 2
#else
#define CAP WINDOW
#endif

chan mail[2] = [CAP] of { byte };
byte sent[2], got[2];
byte credit[2] = WINDOW; /* the side's own */
byte merged[2];          /* credit under way to the side */

inline give_back(n)
{
	atomic { merged[you] = merged[you] + n; n = 0 }
}

proctype side(byte me)
{
	byte you = 1 - me, left, n, held, used;

end:	do
#if BUG == 2
	:: sent[me] < TOTAL -> mail[you]!1; sent[me]++
#elif BUG == 3
	:: sent[me] < TOTAL && credit[me] >= FRAME ->
		mail[you]!FRAME;
		credit[me] = credit[me] - FRAME; sent[me] = sent[me] + FRAME
#else
	:: sent[me] < TOTAL && credit[me] > 0 ->
		/* a frame goes out in the pieces that credit cuts it into, or in single bytes */
		atomic {
			left = FRAME - sent[me] % FRAME;
			if
			:: n = (credit[me] < left -> credit[me] : left)
			:: n = 1
			fi;
			credit[me] = credit[me] - n; sent[me] = sent[me] + n;
			assert(len(mail[you]) < CAP);
			mail[you]!n;
			left = 0; n = 0
		}
#endif
	:: atomic {
		mail[me]?n ->
		held = held + n;
#if BUG == 4
		used = n;
		give_back(used);
#endif
#if BUG != 2
		assert(held <= WINDOW);
#endif
		n = 0
	   }
	:: atomic {
		held > 0 ->
		held--; got[me]++;
#if BUG != 4
		used++
#endif
	   }
#if BUG == 3
	:: used >= WINDOW / 2 -> give_back(used)
#else
	:: used >= WINDOW / 2 || (used > 0 && held == 0 && len(mail[me]) == 0) -> give_back(used)
#endif
#if BUG == 5
	:: merged[me] > 0 -> n = merged[me]; credit[me] = credit[me] + n; merged[me] = 0; n = 0
#else
	:: merged[me] > 0 -> atomic { credit[me] = credit[me] + merged[me]; merged[me] = 0 }
#endif
	od
}

init {
	atomic { run side(0); run side(1) }
}

active proctype monitor()
{
	timeout ->
		assert(got[0] == TOTAL && got[1] == TOTAL);
		assert(BUG == 2 || (credit[0] == WINDOW && credit[1] == WINDOW))
}
