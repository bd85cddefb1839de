/*
 * The recipe with its lease: N clients queue for one lock, each takes it once.
 *
 * The adversary lets time pass, expires sessions, loses replies with their connection, cancels waits and delays every
 * message; all within a budget, so that a run ends. Then spin looks at every state there is for
 *
 *   exclusion          two clients never hold at the same time                  (assert in grant)
 *   no lost wake-up    every run ends with every client through                 (no invalid end state)
 *   no ghost           a client that is through has no node left in the queue   (assert at the end of Client)
 *
 * That the lease itself is sound is assumed here (second assumption) and is what lease.pml is about.
 *
 * Assumptions, each the weakest that the code relies on:
 *   - Clocks run at one rate: a tick is a tick for all (the code takes a share off T for drift). The holder's timer fires
 *     with the tick that ends the lease; a process that was stopped is covered by Check and by tokens, not here.
 *   - The server never expires a session earlier than T after the last quorum operation reached it, but as much later as it likes.
 *   - Reads and pings come from a follower that may be cut off: they touch no session, and their answers may be old when they arrive.
 *   - A request is served when it is sent and its answer takes as long as it likes: a slow way there would only make the
 *     session live longer than the client thinks. Answers and events of one connection arrive in order.
 *   - A broken connection loses everything on its way. A write on its way is either done or never will be.
 *   - One request is under way at a time. (The code sends create and list together; here the list follows at once.)
 *   - Not here: third parties that delete nodes, an exhausted counter, changes of the leader (they restart every session with a full T, which only helps).
 *
 * Each macro in the list of the script check takes one rule out, and spin must then find the error.
 */

#ifndef N
#define N 3             /* clients */
#endif
#ifndef T
#define T 1             /* session timeout, in ticks */
#endif
#ifndef TICKS
#define TICKS 2         /* how long faults may last */
#endif
#ifndef DROPS
#define DROPS 1         /* connections broken, over all clients */
#endif
#ifndef EXPIRIES
#define EXPIRIES 1      /* sessions expired, over all clients */
#endif
#ifndef CANCELS
#define CANCELS 1       /* waits canceled, over all clients */
#endif
#define NODES (N + EXPIRIES + DROPS)

mtype = { create, list, getw, remove, probe, find };    /* requests */
mtype = { done, gone, listing, event };                 /* answers; an event has no request */

chan down[N] = [3] of { mtype, byte, bool, bool };

/* The server. A node is known by its number, and numbers grow: their order is the queue's. */
byte owner[NODES + 1];  /* whose node it is, plus one; 0: there is none */
byte last;              /* the last number given */
bool alive[N];          /* the client's session */
byte left[N];           /* ticks until it may expire */
byte watch[N];          /* the node that the client's connection watches */

/* The clients, as far as the clock and the checks look at them. */
bool conn[N];           /* the connection is up */
byte lease[N];          /* ticks for which the client knows that its session lives */
bool waits[N];          /* a request of its is under way */
byte age[N];            /* since so many ticks */
bool holding[N];

byte ticks = TICKS, drops = DROPS, expiries = EXPIRIES, cancels = CANCELS;

byte began;             /* how many clients have begun */

hidden byte i, w, s, n, p;      /* for loops; no state */

inline unlink(node) {
	owner[node] = 0;
	for (w : 0 .. N - 1) {
		if
		:: watch[w] == node -> watch[w] = 0; down[w]!event(0, 0, 0)
		:: else
		fi
	}
}

/* Where a node stands: listing(predecessor, it is there, the predecessor is the first of all). */
inline look(c, node) {
	p = 0; n = 0;
	for (i : 1 .. NODES) {
		if
		:: owner[i] && i < node -> p = i; n++
		:: else
		fi
	}
	down[c]!listing(p, node != 0 && owner[node] == c + 1, n == 1)
}

inline search(c) {
	p = 0;
	for (i : 1 .. NODES) {
		if
		:: owner[i] == c + 1 -> p = i
		:: else
		fi
	}
	down[c]!done(p, 0, 0)
}

/* serve answers one request of c. Only what the quorum decides touches the session. */
inline serve(c, req, arg) {
	if
	:: req == create && alive[c] ->
		left[c] = T; last++; owner[last] = c + 1; down[c]!done(last, 0, 0)
	:: req == remove && alive[c] ->
		left[c] = T;
		if
		:: owner[arg] == c + 1 -> unlink(arg)
		:: else
		fi;
		down[c]!done(0, 0, 0)
	:: req == probe && alive[c] ->
		left[c] = T;
		if
		:: owner[arg] == c + 1 -> down[c]!done(0, 0, 0)
		:: else -> down[c]!gone(0, 0, 0)
		fi
	:: req == list -> look(c, arg)
	:: req == getw && owner[arg] -> watch[c] = arg; down[c]!done(0, 0, 0)
	:: req == getw && !owner[arg] -> down[c]!gone(0, 0, 0)
	:: req == find -> search(c)
	:: else /* a write of a dead session: the connection will be closed */
	fi;
	i = 0
}

inline cut(c) {
	conn[c] = false; watch[c] = 0;
	do
	:: len(down[c]) > 0 -> down[c]?_, _, _, _
	:: else -> break
	od;
	skip
}

inline expire(c) {
	expiries--; alive[c] = false; left[c] = 0;
	for (s : 1 .. NODES) {
		if
		:: owner[s] == c + 1 -> unlink(s)
		:: else
		fi
	}
	s = 0
}

inline tick() {
	ticks--;
	for (w : 0 .. N - 1) {
		left[w] = (left[w] -> left[w] - 1 : 0);
		lease[w] = (lease[w] -> lease[w] - 1 : 0);
		age[w] = (waits[w] && age[w] < T -> age[w] + 1 : age[w]);
		holding[w] = holding[w] && lease[w]
	}
	w = 0
}

/* World is the clock and all that goes wrong. */
active proctype World() {
end:
	do
	:: d_step { drops && conn[0] -> drops--; cut(0) }
	:: d_step { drops && conn[1] -> drops--; cut(1) }
	:: d_step { expiries && alive[0] && !left[0] -> expire(0) }
	:: d_step { expiries && alive[1] && !left[1] -> expire(1) }
	:: d_step { conn[0] && !alive[0] -> cut(0) }   /* at last the follower knows, too */
	:: d_step { conn[1] && !alive[1] -> cut(1) }
#if N > 2
	:: d_step { drops && conn[2] -> drops--; cut(2) }
	:: d_step { expiries && alive[2] && !left[2] -> expire(2) }
	:: d_step { conn[2] && !alive[2] -> cut(2) }
#endif
	:: d_step { ticks -> tick() }
	od
}

/* ask sends a request: it arrives, or it is lost with the connection. Only answers of the quorum are evidence, so only their way is timed. */
inline ask(req, arg) {
	if
	:: d_step { conn[me] -> waits[me] = (req == create || req == probe); age[me] = 0; serve(me, req, arg) }
	:: d_step { conn[me] && drops -> drops--; cut(me) }
	:: !conn[me]
	fi
}

inline answered() { waits[me] = false; age[me] = 0 }

/* evidence: the quorum has answered what was sent age ticks ago, so the session lives for T from then on. */
inline evidence() {
#ifdef RECEIPT
	lease[me] = T;
#else
	lease[me] = T - age[me];
#endif
	answered()
}

/* connect attaches to the session again, or begins a new one: then whatever was held or queued is gone. */
inline connect() {
	!conn[me] -> conn[me] = true; answered();
	if
	:: alive[me] -> left[me] = T
	:: else ->
		alive[me] = true; left[me] = T; fresh = true; lease[me] = 0; holding[me] = false
	fi
}

inline grant() {
	holding[me] = true;
	assert(holding[0] + holding[1]
#if N > 2
		+ holding[2]
#endif
		<= 1)
}

proctype Client(byte me) {
	byte mine, pred;        /* our node and the one before it */
	bool here, first, fresh;

	began == me;            /* clients are alike: let them begin in order */
join:	atomic { fresh = false; mine = 0; ask(create, 0); began = (began == me -> began + 1 : began) }
	if
	:: atomic { down[me]?done(mine, _, _) -> evidence(); goto check }
	:: atomic { connect();  /* was it done or not? */
#ifdef NOFIND
		goto join
#else
		goto undecided
#endif
		}
	:: atomic { cancels -> cancels--; goto clean }  /* the caller leaves; the node, if any, is the janitor's */
	fi;

undecided:
	atomic { ask(find, 0) }
	if
	:: atomic { down[me]?done(mine, _, _) -> answered();
		if
		:: mine -> goto check
		:: else -> goto join
		fi }
	:: atomic { connect(); goto undecided }
	fi;

check:	/* where do we stand? */
	atomic { ask(list, mine) }
	if
	:: atomic { down[me]?listing(pred, here, first) -> answered();
		if
#ifndef NOOWN
		:: !here -> pred = 0; first = false; goto join
		:: here && !pred -> here = false; goto front
		:: here && pred -> here = false; goto wait
#else
		:: !pred -> here = false; goto front
		:: pred -> here = false; goto wait
#endif
		fi }
	:: atomic { connect(); goto recheck }
	fi;

recheck: /* after a break: on the same session our place is still ours, on a new one there is none */
	atomic {
		pred = 0; first = false;
		if
#ifndef NOOWN
		:: fresh -> goto join
#endif
		:: else -> goto check
		fi }

wait:	atomic { ask(getw, pred) }
	if
	:: atomic { down[me]?gone(_, _, _) -> answered(); goto handOff }
	:: atomic { down[me]?done(_, _, _) -> answered() }
	:: atomic { connect(); goto recheck }
	fi;
asleep:
	if
	:: atomic { down[me]?event(_, _, _) -> goto handOff }
	:: atomic { cancels -> cancels--; goto clean }
	:: atomic { connect();  /* the watch went with the connection */
#ifdef NORECHECK
		goto asleep
#endif
#ifdef NOREQUEUE
		if
		:: fresh -> goto asleep
		:: else
		fi;
#endif
		goto recheck }
	fi;

handOff: /* the contender behind the first is the first now */
	atomic {
		pred = 0;
#ifndef HANDOFFANY
		if
		:: !first -> goto check
		:: else
		fi;
#endif
		first = false; goto front }

front:	/* first in line, as of some time ago: only fresh evidence makes it a grant */
	atomic {
		if
#ifdef NOLEASE
		:: lease[me] = T; grant(); goto hold
#else
		:: lease[me] -> grant(); goto hold
		:: else
#endif
		fi;
		ask(probe, mine) }
	if
	:: atomic { down[me]?done(_, _, _) -> evidence(); goto front }
	:: atomic { down[me]?gone(_, _, _) -> answered(); goto join }
	:: atomic { cancels -> cancels--; goto clean }
	:: atomic { connect(); goto recheck }
	fi;

hold:
	if
	:: atomic { holding[me] -> holding[me] = false; goto clean }    /* released */
	:: atomic { !holding[me] -> goto clean }                        /* lost */
#ifdef PING
	:: atomic { holding[me] && conn[me] && lease[me] < T -> lease[me] = T; goto hold }
#endif
	:: atomic { holding[me] && conn[me] && lease[me] < T -> ask(probe, mine) }
	:: atomic { connect(); goto hold }
	fi;
heartbeat:
	if
	:: atomic { down[me]?done(_, _, _) ->
		if
		:: holding[me] -> evidence()
		:: else -> answered()
		fi;
		goto hold }
	:: atomic { down[me]?gone(_, _, _) -> answered(); holding[me] = false; goto clean }
	:: atomic { holding[me] -> holding[me] = false; goto clean }
	:: atomic { connect(); goto hold }
	fi;

clean:	/* detached from the caller, until nothing of ours is left */
#ifdef NOCLEAN
	if
	:: !cancels -> goto over
	:: else
	fi;
#endif
	atomic {
		pred = 0; first = false; fresh = false; mine = 0; lease[me] = 0;
		/* the answers to what we gave up come first: let them pass */
		do
		:: len(down[me]) > 0 -> down[me]?_, _, _, _
		:: else -> break
		od;
		watch[me] = 0;
		ask(find, 0) }
	if
	:: atomic { down[me]?done(mine, _, _) -> answered() }
	:: atomic { connect(); goto clean }
	fi;
	atomic {
		if
		:: !mine -> goto over
		:: else
		fi;
		ask(remove, mine) }
	if
	:: atomic { down[me]?done(_, _, _) -> answered(); goto clean }
	:: atomic { connect(); goto clean }
	fi;

over:	atomic {
		mine = 0; fresh = false;
		for (i : 1 .. NODES) {
			assert(owner[i] != me + 1)
		}
	}
}

init {
	atomic {
		for (s : 0 .. N - 1) {
			conn[s] = true; alive[s] = true; left[s] = T
		}
		for (s : 0 .. N - 1) {
			run Client(s)
		}
	}
}
