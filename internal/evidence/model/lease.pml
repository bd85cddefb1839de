/*
 * The lease: why a session cannot end while the client's lease says that it lives.
 *
 * One client, the follower that it is connected to, and the leader of that follower. All that a client's proof goes through
 * is here: the follower's table of touches, the two streams between follower and leader, the leader's pings, its expirer, and
 * the replacement of the leader. The adversary delays every message as long as it likes, cuts each stream, replaces leaders,
 * loses touches, has the leader stand still, and lets time pass; nothing of that is bounded. Spin looks at every state and checks
 *
 *   when the leader ends the session, the client's lease has run out; and it is never revived after that.
 *
 * Time is discrete: clocks are exact, and things that happen in the same unit may happen in any order.
 *
 * What the client does is lease.go. Each Proof is one claim on its way through the steps; PROOFS of them overlap.
 *
 * Assumptions, each with the macro that takes it away and with which spin must find the error:
 *   - Streams are ordered, and a follower answers a ping before it handles what comes behind it.           OUTOFLINE
 *   - A leader that has answered a sync while a ping was due sends that ping within one unit. It may stand
 *     still for as long as it likes, and a sync may then overtake the ping; but not for a unit.            SLOWPING
 *   - Of two touches in a row at most one is lost.                                                         TWOLOST
 *   - The expirer closes a session within SLOW units after it has taken the bucket with the session, and
 *     does not stand still in between for longer than that.                                                SLOWEXPIRER
 *   - A new leader gives each session a full timeout, the one that the session was made with.              SHORTTERM
 *   - A deposed leader commits nothing. It answers syncs and takes sessions back.                          DEPOSEDWRITES
 *   - If servers negotiate different timeouts, none takes the session back with a shorter one without the
 *     client's hearing of it. (The leader counts by it from then on; an answer can be lost.)               LOSTATTACH
 *
 * A cold lease is not here: it assumes that pings are on time. But a full proof must not rest on it: while only a cold lease stands
 * the last proof has run out, and a second write must settle it. COLD takes that rule away.
 *
 * Simplifications, each of which leaves the worst case in:
 *   - The way between client and follower takes no time. A request that is late there is one that was sent later and is dated too
 *     early, and an answer that is late is a client that waits: both make the lease shorter, never longer.
 *   - A follower whose stream from the leader is cut is as good as no connection: nothing can be proven there.
 *   - A deposed leader never ends the session. It could not commit that.
 *   - Forwarded requests are no touches at the leader, only answers to pings and the session's being taken back.
 *   - Buckets: the expirer takes the session at any time after its timeout.
 *   - At most UP and DOWN messages are on a stream at a time; who wants to send more waits.
 *   - Touches of connections before that are still under way are lost. They would make the session live longer.
 */

#ifndef T
#define T 5             /* session timeout, in units of time */
#endif
#ifndef LONG
#define LONG T          /* another timeout that servers may negotiate */
#endif
#ifndef MADE
#define MADE T          /* the one that the session was made with */
#endif
#ifndef HALF
#define HALF 1          /* half a tick: the leader's ping is due every so often */
#endif
#ifndef SLOW
#define SLOW 1          /* how long the expirer takes at most */
#endif
#ifndef PROOFS
#define PROOFS 1        /* how many proofs are under way at a time */
#endif
#ifndef UP
#define UP 3
#endif
#ifndef DOWN
#define DOWN 3
#endif

/* The client's waits. */
#ifdef EARLYSYNC
#define LAG (HALF - 1)
#elif defined(ONESTEP)
#define LAG (HALF + 1)  /* even so */
#else
#define LAG HALF        /* a ping was due */
#endif
#ifdef NOPAUSE
#define PAUSE 0
#else
#define PAUSE 1         /* an overdue ping was sent */
#endif
#ifdef NOSETTLING
#define SETTLING 0
#else
#define SETTLING (SLOW + 1) /* what the expirer had taken is closed */
#endif

/* What is assumed of the servers. */
#ifdef OUTOFLINE
#define take ??
#else
#define take ?
#endif
#if defined(SLOWPING)
#define PINGED true
#elif defined(PUNCTUAL)         /* the leader never stands still, so that its pings are late on the stream only */
#define PINGED (link == none || unpinged < HALF)
#else
#define PINGED (!owes)
#endif
#ifdef TWOLOST
#define MAYMISS true
#else
#define MAYMISS (!missed)
#endif
#ifdef SLOWEXPIRER
#define CLOSED true
#else
#define CLOSED (taken <= SLOW)
#endif
#ifdef DEPOSEDWRITES
#define COMMITS true
#else
#define COMMITS (link == current)
#endif

mtype = { ping, touches, sync, write };
chan down = [DOWN] of { mtype, byte };  /* leader to follower; the byte is whose sync or write is answered */
chan up = [UP] of { mtype, byte };      /* follower to leader */

/* The connection. */
mtype = { none, current, deposed };
mtype link = current;   /* what the follower's leader is; none: the client is not connected */
bool cut;               /* what the follower sends does not arrive any more */
byte term = MADE;          /* the timeout negotiated on this connection */

/* The follower. */
bool table;             /* there is a touch in its table */
bool missed;            /* the last touch was lost */

/* The follower's leader. */
byte unpinged;          /* since when it has not pinged */
bool owes;              /* it has answered a sync while a ping was due */
bool proposed[PROOFS];  /* writes that are not committed yet */

/* The session, as the current leader has it. */
byte left = MADE;          /* until it may be ended */
byte taken;             /* its bucket was taken, since that long; 0: it was not */
bool ended;
bool replaced;          /* there is a deposed leader that knows the session */

/* The client's lease. */
byte shortest = MADE;      /* the smallest timeout that was ever negotiated */
byte proven;            /* age of the touch that the leader is known to have counted */

#ifdef COLD
byte guessed = T;       /* age of the touch that the leader has counted if its pings are on time; never believed here */
#endif

/* Its proofs. */
byte step[PROOFS];      /* how many steps were answered */
byte age[PROOFS];       /* since the older touch was sent */
byte rest[PROOFS];      /* since the last step was answered, as far as that matters */
bool busy[PROOFS];      /* a request is under way */
bool regained[PROOFS];  /* what is to be proven is that the session was taken back */

#define ONE     1       /* a touch was answered */
#define TWO     2       /* two */
#define SYNCED  3       /* the first sync */
#define SENT    4       /* the second: the touches are on the follower's stream */
#define LATE    5       /* a quorum has answered, but the last proof had run out */

byte i;                 /* for loops; always 0 in between */

#ifdef NEWESTTERM
#define valid   term
#else
#define valid   shortest
#endif
#define alive(a) ((a) < valid)
#ifdef COLD
#define UNBROKEN (alive(proven) || alive(guessed))
#else
#define UNBROKEN alive(proven)
#endif

#define say(what) printf(what)

inline drain(stream) {
	do
	:: len(stream) > 0 -> stream?_, _
	:: else -> break
	od
}

inline forget(p) { step[p] = 0; age[p] = 0; rest[p] = 0; busy[p] = false; regained[p] = false }

/* tidy forgets claims that tell nothing any more. */
inline tidy() {
	for (i : 0 .. PROOFS - 1) {
		if
		:: step[i] && !busy[i] && (age[i] >= valid || age[i] >= proven) -> forget(i)
		:: else
		fi
	}
	i = 0
}

inline prove(a) {
	proven = (a < proven -> a : proven);
	say("client    the touch is proven\n");
	assert(!(ended && alive(proven)))
}

/* conclude: a quorum has answered the write of a proof. */
inline conclude(p) {
	if
#ifndef REVIVE
	:: step[p] == SENT && !UNBROKEN ->
#ifdef COLD
		guessed = age[p];
#endif
		step[p] = LATE; rest[p] = 0; busy[p] = false;
		say("client    the write is answered, but the last proof has run out\n")
	:: else ->
#else
	:: true ->
#endif
#ifdef SEE
		assert(!(SEE));
#endif
#ifdef RECEIPT
		age[p] = 0;
#endif
		prove(age[p]);
		forget(p)
	fi;
	tidy()
}

inline send(what, p) {
	busy[p] = true; rest[p] = 0;
	if
	:: !cut -> up!what(p)
	:: else
	fi
}

/* The steps of lease.go, each after the one before was answered. */
active [PROOFS] proctype Proof() {
	do
	:: d_step { link != none && !step[_pid] && !busy[_pid] -> say("client    first touch\n"); table = true; missed = false; step[_pid] = ONE;
#ifdef ONETOUCH
		step[_pid] = TWO
#endif
		}
	:: d_step { link != none && !step[_pid] && !busy[_pid] && MAYMISS -> say("client    first touch: lost\n"); missed = true; step[_pid] = ONE;
#ifdef ONETOUCH
		step[_pid] = TWO
#endif
		}
	:: d_step { link != none && step[_pid] == ONE -> say("client    second touch\n"); table = true; missed = false; step[_pid] = TWO; rest[_pid] = 0 }
	:: d_step { link != none && step[_pid] == ONE && MAYMISS -> say("client    second touch: lost\n"); missed = true; step[_pid] = TWO; rest[_pid] = 0 }
#ifdef ONESTEP
	:: d_step { link != none && step[_pid] == TWO && !busy[_pid] && rest[_pid] >= LAG && (cut || nfull(up)) ->
		say("client    write\n"); step[_pid] = SENT; send(write, _pid) }
#endif
	:: d_step { link != none && step[_pid] == TWO && !busy[_pid] && rest[_pid] >= LAG && (cut || nfull(up)) ->
		say("client    first sync\n"); send(sync, _pid) }
	:: d_step { link != none && step[_pid] == SYNCED && !busy[_pid] && rest[_pid] >= PAUSE && (cut || nfull(up)) ->
		say("client    second sync\n"); send(sync, _pid) }
#ifdef ONESYNC
	:: d_step { link != none && step[_pid] == SYNCED && !busy[_pid] && (cut || nfull(up)) ->
		say("client    write\n"); step[_pid] = SENT; send(write, _pid) }
#endif
#ifdef EARLYWRITE
	:: d_step { link != none && step[_pid] == SYNCED && busy[_pid] && (cut || nfull(up)) ->
		say("client    write, before the second sync is answered\n"); step[_pid] = SENT; send(write, _pid) }
#endif
	:: d_step { link != none && step[_pid] == SENT && !busy[_pid] && (cut || nfull(up)) ->
		say("client    write\n"); send(write, _pid) }
	:: d_step { link != none && step[_pid] == LATE && !busy[_pid] && rest[_pid] >= SETTLING && (cut || nfull(up)) ->
		say("client    second write\n"); send(write, _pid) }
#ifdef COLD
	:: d_step { link != none && step[_pid] == LATE && !regained[_pid] && !busy[_pid] && alive(guessed) && (cut || nfull(up)) ->
		say("client    second write, while a guess says that the session lives\n"); send(write, _pid) }
#endif
	:: d_step { step[_pid] && !busy[_pid] -> forget(_pid) } /* another one, sooner */
	od
}

active proctype Follower() {
	byte p;
	do
	:: d_step { down?[ping, 0] && (cut || !table || nfull(up)) ->
		down?ping(p);
		if
		:: table && !cut -> up!touches(0); say("follower  answers the ping with a touch\n")
		:: table && cut -> say("follower  answers the ping with a touch, which does not arrive\n")
		:: else -> say("follower  answers the ping\n")
		fi;
		table = false; p = 0 }
	:: d_step { down take sync(p) ->
		if
		:: step[p] == TWO -> step[p] = SYNCED; rest[p] = 0; busy[p] = false; say("client    the first sync is answered\n")
		:: step[p] == SYNCED -> step[p] = SENT; rest[p] = 0; busy[p] = false; say("client    the second sync is answered\n")
#ifdef NOQUORUM
			; conclude(p)
#endif
		:: else
		fi;
		tidy(); p = 0 }
	:: d_step { down take write(p) -> say("follower  the write is committed\n"); conclude(p); p = 0 }
	od
}

active proctype Leader() {
	byte p;
	do
	:: d_step { link != none && unpinged && nfull(down) -> down!ping(0); unpinged = 0; owes = false; say("leader    pings\n") }
	:: d_step { up?[touches] -> up?touches(_);
		if
		:: link == current && !taken && !ended -> left = term; say("leader    counts the touch\n")
		:: else -> say("leader    hears of a touch, in vain\n")
		fi }
	:: d_step { up?[sync] && nfull(down) -> up?sync(p); down!sync(p); owes = (unpinged >= HALF); say("leader    answers the sync\n"); p = 0 }
	:: d_step { up?[write] -> up?write(p);
		if
		:: !ended || link == deposed -> proposed[p] = true; say("leader    proposes the write\n")
		:: else -> say("leader    refuses the write\n")
		fi; p = 0 }
	:: d_step { link != none && proposed[0] && nfull(down) && COMMITS -> proposed[0] = false; down!write(0); say("leader    commits the write\n") }
#if PROOFS > 1
	:: d_step { link != none && proposed[1] && nfull(down) && COMMITS -> proposed[1] = false; down!write(1); say("leader    commits the write\n") }
#endif
	od
}

/* The current leader's. */
active proctype Expirer() {
	do
	:: d_step { !left && !taken && !ended -> taken = 1; say("leader    the expirer takes the session's bucket\n") }
	:: d_step { taken && !ended -> ended = true; taken = 0; say("leader    THE SESSION ENDS\n"); assert(!alive(proven)) }
	od
}

/* unlink ends the connection. What is half proven does not count on another one. */
inline unlink() {
	drain(up); drain(down);
	link = none; cut = false; table = false; missed = false; owes = false; unpinged = 0;
	for (i : 0 .. PROOFS - 1) {
		proposed[i] = false;
		if
#ifdef TWOCONNECTIONS
		:: step[i] -> busy[i] = false; rest[i] = 0
#else
		:: step[i] == LATE -> busy[i] = false; rest[i] = 0
#endif
		:: else -> forget(i)
		fi
	}
	i = 0
}

/* attached to a leader of this kind. */
inline attached(leader) {
	link = leader;
#ifdef ATTACHPROVES
	prove(0);
#endif
	if
	:: !step[0] -> step[0] = SENT; regained[0] = true
#if PROOFS > 1
	:: step[0] && !step[1] -> step[1] = SENT; regained[1] = true
#endif
	:: else
	fi
}

inline negotiated() {
	if
	:: term = T
	:: LONG != T -> term = LONG
	fi;
	shortest = (term < shortest -> term : shortest)
}

/* passes lets a unit of time pass. */
inline passes() {
	left = (left -> left - 1 : 0);
	taken = (taken && taken <= SLOW -> taken + 1 : taken);
	unpinged = (link != none && unpinged < HALF -> unpinged + 1 : unpinged);
	proven = (alive(proven) -> proven + 1 : proven);
#ifdef COLD
	guessed = (alive(guessed) -> guessed + 1 : guessed);
#endif
	for (i : 0 .. PROOFS - 1) {
		age[i] = (step[i] && alive(age[i]) -> age[i] + 1 : age[i]);
		rest[i] = ((step[i] == TWO && rest[i] < LAG || step[i] == SYNCED && rest[i] < PAUSE || step[i] == LATE && rest[i] < SETTLING) && !busy[i]
			-> rest[i] + 1 : rest[i])
	}
	tidy()
}

active proctype World() {
	do
	:: d_step { PINGED && CLOSED -> passes(); say("-\n") }
	:: d_step { link != none && !cut -> say("world     cuts the stream from the follower to the leader\n"); drain(up); cut = true }
	:: d_step { link != none -> say("world     cuts the client off\n"); unlink() } /* or the stream from the leader to the follower */
	:: d_step { !ended -> say("world     a new leader, and the old one does not know it\n");
		left = MADE; taken = 0; replaced = true;
		if
		:: link == current -> link = deposed
		:: else
		fi;
#ifdef SHORTTERM
		left = 1;
#endif
		for (i : 0 .. PROOFS - 1) { proposed[i] = (link == deposed && proposed[i]) }
		i = 0 }
	:: atomic { link == none && !ended -> negotiated(); select(unpinged : 0 .. HALF);
		d_step { say("client    is taken back\n"); left = (taken -> left : term); attached(current) } }
	:: atomic { link == none && replaced -> negotiated(); select(unpinged : 0 .. HALF);
		d_step { say("client    is taken back by a leader that was deposed\n"); attached(deposed) } }
#ifdef LOSTATTACH
	:: d_step { link == none && !ended && !taken -> left = T; say("client    is taken back, but the answer is lost\n") }
#endif
	od
}
