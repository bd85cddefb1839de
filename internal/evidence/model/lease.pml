/*
 * The lease: why a session cannot end while the client's lease says that it lives.
 *
 * One client, the follower that it is connected to, and the leader of that follower. All that a client's proof goes through
 * is here: the follower's table of touches, the two streams between follower and leader, the leader's pings, its expirer, the
 * way a session is taken back, and the replacement of the leader. The adversary delays every message as long as it likes, cuts
 * each stream, ends connections, replaces leaders, loses touches, stops the leader and the expirer, and lets time pass;
 * nothing of that is bounded but by what is assumed below. Spin looks at every state and checks
 *
 *   when the leader begins to end the session, the client's lease has run out; and it is never revived after that.
 *
 * Time is discrete: clocks are exact, and things that happen in the same unit may happen in any order.
 *
 * What the client does is lease.go, with its names. Each Claim is one touch on its way through the steps; CLAIMS of them
 * overlap. What is known of the run (heard, since) and of the quorum (proven) is the client's. A client that is idle sends
 * nothing but touches and syncs for as long as it likes.
 *
 * Assumptions, each with the macro that takes it away and with which spin must find the error, and with its number in
 * docs/guarantees.md if it is not a guarantee of ZooKeeper's own:
 *   - A3: The tick that the client counts by is no shorter than that of any server that leads.             LONGTICK
 *   - Streams are ordered, and a follower answers a ping before it handles what comes behind it.           OUTOFLINE
 *   - A4: A leader that has answered a sync while a ping was due sends that ping within one unit. It may stand
 *     still for as long as it likes, and a sync may then overtake the ping; but not for a unit.            SLOWPING
 *   - A4: Of two touches in a row at most one is lost.                                                     TWOLOST
 *   - A5: The expirer marks a session as ending within SLOW units after it has taken the bucket with the session,
 *     and is not stopped in between for longer than that.                                                  SLOWEXPIRER
 *   - The leader refuses the transactions of a session that it has marked.                                 MARKEDWRITES
 *   - A new leader gives each session a full timeout, the one that the session was made with.              SHORTTERM
 *   - A deposed leader commits nothing. It answers syncs and takes sessions back.                          DEPOSEDWRITES
 *   - A server ends its clients' connections when it leaves its leader.                                    KEPTCLIENTS
 *   - A6: If servers negotiate different timeouts, none takes the session back with a shorter one without the
 *     client's hearing of it at once. (The leader counts by it from then on; an answer can be lost.)       LOSTATTACH
 *   - A1: The client's clock is not slower than the servers'.                                              SLOWCLOCK
 *
 * Simplifications, each of which leaves the worst case in:
 *   - The way between client and follower takes no time. A request that is late there is one that was sent later and is dated too
 *     early, and an answer that is late is a client that waits: both make the lease shorter, never longer.
 *   - A follower whose stream from the leader is cut is as good as no connection: nothing can be proven there.
 *   - A deposed leader never ends the session. It could not commit that.
 *   - Forwarded requests are no touches at the leader, only answers to pings and the session's being taken back.
 *   - Buckets: the expirer takes the session at any time after its timeout.
 *   - A session that is marked has ended: others are granted its locks a little later.
 *   - A sync stands for one claim. One that serves several is as many in a row.
 *   - At most UP and DOWN messages are on a stream at a time; who wants to send more waits.
 *   - What was sent on an earlier connection and is still under way is lost, but for the requests to take the session back
 *     and their answers. It would make the session live longer.
 *   - A touch that is older than the timeout is forgotten: whatever it is good for, what it follows from is so without it.
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
#define HALF 1          /* half the tick that the client counts by */
#endif
#ifndef SLOW
#define SLOW 1          /* how long the expirer takes at most */
#endif
#ifndef CLAIMS
#define CLAIMS 1        /* how many touches are on their way at a time */
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
#define SETTLING (SLOW + 1) /* what the expirer had taken is marked */
#endif

/* What is assumed of the servers. */
#ifdef LONGTICK
#define DUE (HALF + 1)
#else
#define DUE HALF        /* half the leader's tick: its ping is due every so often */
#endif
#ifdef OUTOFLINE
#define take ??
#else
#define take ?
#endif
#if defined(SLOWPING)
#define PINGED true
#elif defined(PUNCTUAL)         /* the leader never stands still, so that its pings are late on the stream only */
#define PINGED (link == none || unpinged < DUE)
#else
#define PINGED (!owes)
#endif
#ifdef TWOLOST
#define MAYMISS true
#else
#define MAYMISS (!missed)
#endif
#ifdef SLOWEXPIRER
#define MARKED true
#else
#define MARKED (taken <= SLOW)
#endif
#ifdef MARKEDWRITES
#define REFUSES false
#else
#define REFUSES (ended && link == current)
#endif
#ifdef DEPOSEDWRITES
#define COMMITS true
#else
#define COMMITS (link == current)
#endif
#ifdef LOSTATTACH
#define TOLD true
#else
#define TOLD (conn != asking || term >= shortest)
#endif

mtype = { ping, touches, sync, write, revalidate };
chan down = [DOWN] of { mtype, byte };  /* leader to follower; the byte is whose sync or write is answered */
chan up = [UP] of { mtype, byte };      /* follower to leader; of revalidate, the timeout negotiated */

/* The follower. */
mtype = { none, current, deposed };
mtype link = current;   /* what its leader is; none: the client is not connected to any */
bool cut;               /* what the follower sends does not arrive any more */
bool table;             /* there is a touch in its table */
bool missed;            /* the last touch was lost */

/* The client's connection to it. */
mtype = { off, asking, on };
mtype conn = on;        /* asking: the follower has asked its leader whether the session lives */
byte term = MADE;       /* the timeout negotiated on this connection */

/* The follower's leader. */
byte unpinged;          /* since when it has not pinged */
bool owes;              /* it has answered a sync while a ping was due */
bool proposed[CLAIMS];  /* writes that are not committed yet */

/* The session, as the current leader has it. */
byte left = MADE;       /* until it may be ended */
byte taken;             /* its bucket was taken, since that long; 0: it was not */
bool ended;             /* it is marked, and will be closed */
bool replaced;          /* there is a deposed leader that knows the session */

/* The client's lease. */
byte shortest = MADE;   /* the smallest timeout that was ever negotiated */
byte proven;            /* age of the touch from which the session lives for a whole timeout */

/* Its run, of the present connection. */
byte heard;             /* age of the newest touch that the leader has counted */
byte since;             /* how long it is known that the first touch of the run was heard, up to SETTLING */
bool joins = true;      /* it was known before the last proof ran out */

/* Its claims. */
byte step[CLAIMS];      /* how many steps were answered */
byte age[CLAIMS];       /* since the older touch was sent */
byte rest[CLAIMS];      /* since the last step was answered, as far as that matters */
bool busy[CLAIMS];      /* a request is under way */
bool settled[CLAIMS];   /* a write is under way that was sent when the run had settled */
bool regained[CLAIMS];  /* the touch is that of being taken back */
#ifdef SEEIDLE
bool goes;              /* the run has more than one touch */
#endif
#ifdef GAPSENT
bool intime[CLAIMS];    /* the request under way was sent before the last touch that was heard ran out */
#endif

#define ASKED   1       /* the request to be taken back is not answered */
#define ONE     2       /* a touch was answered */
#define TWO     3       /* two */
#define SYNCED  4       /* the first sync */
#define ONWAY   5       /* the second: the touch is upstream, which is on the follower's stream */

byte i, n;              /* for loops; always 0 in between */
mtype m;                /* when messages are sorted; always 0 in between */

#if defined(NEWESTTERM)
#define valid   term
#elif defined(SLOWCLOCK)
#define valid   (shortest + 1)
#else
#define valid   shortest
#endif
#define alive(a) ((a) < valid)

/* What is looked for when it is asked what can be proven at all. */
#if defined(SEETOUCH)
#define SEE (!regained[p])
#elif defined(SEEBACK)
#define SEE (regained[p])
#elif defined(SEEIDLE)
#define SEE (goes && !joins)
#endif

#define say(what) printf(what)

inline drain(stream) {
	do
	:: len(stream) > 0 -> stream?_, _
	:: else -> break
	od
}

/* strip takes the syncs and writes of a connection that has ended off a stream. */
inline strip(stream) {
	n = len(stream);
	do
	:: n > 0 ->
		stream?m, i;
		if
		:: m == sync || m == write
		:: else -> stream!m, i
		fi;
		n--
	:: else -> break
	od;
	i = 0; m = 0
}

inline forget(p) { step[p] = 0; age[p] = 0; rest[p] = 0; busy[p] = false; settled[p] = false; regained[p] = false }

/* tidy forgets claims that no longer matter. */
inline tidy() {
	for (i : 0 .. CLAIMS - 1) {
		if
		:: step[i] > ASKED && !busy[i] && (age[i] >= valid || age[i] >= proven && age[i] >= heard) -> forget(i)
		:: else
		fi
	}
	i = 0
}

inline prove(a) {
	proven = (a < proven -> a : proven);
	joins = (alive(proven) -> true : joins);
	say("client    the touch is proven\n");
	assert(!(ended && alive(proven)))
}

/* hear: the answer to a sync or a write that was sent when the touch was upstream. */
inline hear(p) {
	if
	:: age[p] < heard ->
#ifdef SEEIDLE
		goes = alive(heard);
#endif
		if
#if defined(NOGAP)
		:: false ->
#elif defined(GAPSENT)
		:: !intime[p] ->
#else
		:: !alive(heard) ->
#endif
			say("client    the touch counts: the first of a run\n");
#ifdef SINCESENT
			since = (age[p] < SETTLING -> age[p] : SETTLING);
#else
			since = 0;
#endif
			joins = alive(proven);
			for (i : 0 .. CLAIMS - 1) { settled[i] = false }
			i = 0
		:: else -> say("client    the touch counts\n")
		fi;
		heard = age[p]
	:: else
	fi
}

/* conclude: a quorum has answered the write of a claim. */
inline conclude(p) {
	if
#if defined(LATESETTLED)
	:: joins || since >= SETTLING ->
#elif defined(IGNORESINCE)
	:: true ->
#else
	:: joins || settled[p] ->
#endif
#ifdef SEE
		assert(!(SEE));
#endif
#ifdef RECEIPT
		age[p] = 0;
#endif
		prove(age[p])
	:: else -> say("client    the write is answered, and proves nothing\n")
	fi
}

inline send(what, p) {
	busy[p] = true; rest[p] = 0;
#ifdef GAPSENT
	intime[p] = alive(heard);
#endif
	if
	:: !cut -> up!what(p)
	:: else
	fi
}

inline sendWrite(p) {
	settled[p] = (since >= SETTLING);
	send(write, p)
}

#define FREE    (conn == on && !step[_pid] && (!_pid || step[0]))
#define CANSEND (!busy[_pid] && (cut || nfull(up)))

/* The steps of lease.go, each after the one before was answered. */
active [CLAIMS] proctype Claim() {
	do
	:: d_step { FREE -> say("client    first touch\n"); table = true; missed = false; step[_pid] = ONE;
#ifdef TOUCHPROVES
		prove(0);
#endif
#ifdef ONETOUCH
		step[_pid] = TWO
#endif
		}
	:: d_step { FREE && MAYMISS -> say("client    first touch: lost\n"); missed = true; step[_pid] = ONE;
#ifdef ONETOUCH
		step[_pid] = TWO
#endif
		}
	:: d_step { conn == on && step[_pid] == ONE -> say("client    second touch\n"); table = true; missed = false; step[_pid] = TWO; rest[_pid] = 0;
#ifdef NEWERTOUCH
		age[_pid] = 0
#endif
		}
	:: d_step { conn == on && step[_pid] == ONE && MAYMISS -> say("client    second touch: lost\n"); missed = true; step[_pid] = TWO; rest[_pid] = 0;
#ifdef NEWERTOUCH
		age[_pid] = 0
#endif
		}
#ifdef ONESTEP
	:: d_step { conn == on && step[_pid] == TWO && CANSEND && rest[_pid] >= LAG -> say("client    write\n"); step[_pid] = ONWAY; sendWrite(_pid) }
#endif
	:: d_step { conn == on && step[_pid] == TWO && CANSEND && rest[_pid] >= LAG -> say("client    first sync\n"); send(sync, _pid) }
	:: d_step { conn == on && step[_pid] == SYNCED && CANSEND && rest[_pid] >= PAUSE -> say("client    second sync\n"); send(sync, _pid) }
#ifdef ONESYNC
	:: d_step { conn == on && step[_pid] == SYNCED && CANSEND -> say("client    write\n"); step[_pid] = ONWAY; sendWrite(_pid) }
	:: d_step { conn == on && step[_pid] == SYNCED && CANSEND -> say("client    third sync\n"); step[_pid] = ONWAY; send(sync, _pid) }
#endif
#ifdef EARLYWRITE
	:: d_step { conn == on && step[_pid] == SYNCED && busy[_pid] && (cut || nfull(up)) ->
		say("client    write, before the second sync is answered\n"); step[_pid] = ONWAY; sendWrite(_pid) }
#endif
	:: d_step { conn == on && step[_pid] == ONWAY && CANSEND -> say("client    third sync\n"); send(sync, _pid) }
	:: d_step { conn == on && step[_pid] == ONWAY && CANSEND -> say("client    write\n"); sendWrite(_pid) }
	:: d_step { step[_pid] > ASKED && !busy[_pid] -> forget(_pid) } /* another one, sooner */
	od
}

/* hangup ends the client's connection. What is known of its run, and of touches, does not count on another one. */
inline hangup() {
	conn = off; table = false; missed = false;
	for (i : 0 .. CLAIMS - 1) {
		proposed[i] = false;
#ifdef TWOCONNECTIONS
		busy[i] = false; rest[i] = 0; settled[i] = false;
		if
		:: step[i] == ASKED -> forget(i)
		:: else
		fi
#else
		forget(i)
#endif
	}
	i = 0;
#if !defined(ACROSS)
	heard = valid; since = 0; joins = false;
#endif
#ifdef SEEIDLE
	goes = false;
#endif
}

/* attached: the answer to a request to be taken back. It is that to the newest, or to an earlier one. */
inline attached() {
	conn = on;
	shortest = (term < shortest -> term : shortest);
	for (i : 0 .. CLAIMS - 1) {
		if
		:: step[i] == ASKED -> step[i] = ONWAY; n = i
		:: else
		fi
	}
	i = n; n = 0;
#ifdef ATTACHPROVES
	prove(age[i]);
#endif
#ifdef HEARDATCONNECT
	hear(i);
#endif
	i = 0
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
		busy[p] = false; rest[p] = 0;
		if
		:: step[p] == TWO -> step[p] = SYNCED; say("client    the first sync is answered\n")
		:: step[p] == SYNCED -> step[p] = ONWAY; say("client    the second sync is answered\n")
#ifdef EARLYHEAR
			; hear(p)
#endif
		:: else ->
			hear(p)
#ifdef NOQUORUM
			; conclude(p)
#endif
		fi;
		tidy(); p = 0 }
	:: d_step { down take write(p) -> busy[p] = false; say("follower  the write is committed\n"); hear(p); conclude(p); settled[p] = false; tidy(); p = 0 }
	:: d_step { down take revalidate(_) ->
		if
		:: conn == asking -> say("client    is taken back\n"); attached()
		:: else -> say("follower  hears of a session that it does not wait for\n")
		fi }
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
	:: d_step { up?[revalidate] && nfull(down) -> up?revalidate(p);
		if
		:: link == current && ended ->
			say("leader    does not know the session\n");
			if
			:: conn == asking -> hangup() /* told at once */
			:: else
			fi
		:: link == current && !ended -> left = (taken -> left : p); down!revalidate(0); say("leader    takes the session back\n")
		:: else -> down!revalidate(0); say("leader    was deposed, and takes the session back\n")
		fi; p = 0 }
	:: d_step { up?[sync] && nfull(down) -> up?sync(p); down!sync(p); owes = (unpinged >= DUE); say("leader    answers the sync\n"); p = 0 }
	:: d_step { up?[write] -> up?write(p);
		if
		:: !REFUSES -> proposed[p] = true; say("leader    proposes the write\n")
		:: else -> say("leader    refuses the write\n")
		fi; p = 0 }
	:: d_step { link != none && proposed[0] && nfull(down) && COMMITS -> proposed[0] = false; down!write(0); say("leader    commits the write\n") }
#if CLAIMS > 1
	:: d_step { link != none && proposed[1] && nfull(down) && COMMITS -> proposed[1] = false; down!write(1); say("leader    commits the write\n") }
#endif
	od
}

/* The current leader's. */
active proctype Expirer() {
	do
	:: d_step { !left && !taken && !ended -> taken = 1; say("leader    the expirer takes the session's bucket\n") }
	:: d_step { taken && !ended -> ended = true; taken = 0; say("leader    MARKS THE SESSION AS ENDING\n"); assert(!alive(proven)) }
	od
}

inline unlink() { drain(up); drain(down); link = none; cut = false; owes = false; unpinged = 0; hangup() }

/* ask: the client sends a request to be taken back to the follower that it is connected to by now. */
inline ask() {
	conn = asking; forget(0); step[0] = ASKED; regained[0] = true;
	if
	:: !cut -> up!revalidate(term)
	:: else
	fi
}

inline negotiated() {
	if
	:: term = T
	:: LONG != T -> term = LONG
	fi
}

/* passes lets a unit of time pass. */
inline passes() {
	left = (left -> left - 1 : 0);
	taken = (taken && taken <= SLOW -> taken + 1 : taken);
	unpinged = (link != none && unpinged < DUE -> unpinged + 1 : unpinged);
	proven = (alive(proven) -> proven + 1 : proven);
	heard = (alive(heard) -> heard + 1 : heard);
	since = (alive(heard) && since < SETTLING -> since + 1 : since);
	for (i : 0 .. CLAIMS - 1) {
		age[i] = (step[i] && alive(age[i]) -> age[i] + 1 : age[i]);
		rest[i] = ((step[i] == TWO && rest[i] < LAG || step[i] == SYNCED && rest[i] < PAUSE) && !busy[i] -> rest[i] + 1 : rest[i])
	}
	tidy()
}

active proctype World() {
	do
	:: d_step { PINGED && MARKED && TOLD -> passes(); say("-\n") }
	:: d_step { link != none && !cut && TOLD -> say("world     cuts the stream from the follower to the leader\n"); drain(up); cut = true }
	:: d_step { link != none && TOLD -> say("world     cuts the client off, and the follower\n"); unlink() } /* or the stream from the leader to the follower */
	:: d_step { conn != off && TOLD -> say("world     ends the connection\n"); hangup(); strip(up); strip(down) }
	:: d_step { !ended -> say("world     a new leader, and the old one does not know it\n");
		left = MADE; taken = 0; replaced = true;
		if
		:: link == current -> link = deposed
		:: else
		fi;
#ifdef SHORTTERM
		left = 1;
#endif
		for (i : 0 .. CLAIMS - 1) { proposed[i] = (link == deposed && proposed[i]) }
		i = 0 }
	:: atomic { link == none && !ended -> negotiated(); select(unpinged : 0 .. DUE); d_step { link = current; say("client    asks to be taken back\n"); ask() } }
	:: atomic { link == none && replaced -> negotiated(); select(unpinged : 0 .. DUE); d_step { link = deposed; say("client    asks a follower of a deposed leader to be taken back\n"); ask() } }
	:: atomic { link != none && conn == off && (cut && LONG == T || !cut && nfull(up)) -> negotiated(); d_step { say("client    asks again to be taken back\n"); ask() } }
#ifdef KEPTCLIENTS
	:: d_step { link == deposed && conn == on && !ended -> say("follower  has found the new leader, and keeps its client\n"); drain(up); drain(down); link = current; cut = false; owes = false; unpinged = 0;
		left = (taken -> left : term);
		for (i : 0 .. CLAIMS - 1) { proposed[i] = false; busy[i] = false; settled[i] = false }
		i = 0 }
#endif
	od
}
