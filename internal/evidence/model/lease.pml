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
 * The client is internal/lease/lease.go. Functions and variables have the names that they have there: witness judges an answer as
 * Run.Witness does, with hear, conclude, take and forget. heard and since belong to the Run, proven to the Lease, and sent, steps,
 * from and pending are arrays with an element for each beat. A past time is kept as its age. A future time is kept as the units
 * until then.
 *
 * internal/lease/schedule.go is not in the model: the client sends each request when it likes, or not at all. So the result holds for
 * every schedule.
 *
 * Assumptions, each with the macro that takes it away and with which spin must find the error, and with its number in
 * docs/promises.md if it is not a guarantee of ZooKeeper's own:
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
 *   - A4 (only with STILL): the leader's machine may stop together with its clock, and continues as if no time had passed. Between
 *     two pings it stops for STILL units at most, and not while it owes a ping. NOSTANDSTILL takes away the rule of the client that allows for it.
 *   - A5: The expirer marks a session in time also if the leader stops in between.                         STILLEXPIRER
 *
 * Simplifications, each of which leaves the worst case in:
 *   - The way between client and follower takes no time. A request that is late there is one that was sent later and is dated too
 *     early, and an answer that is late is a client that waits: both make the lease shorter, never longer.
 *   - A follower whose stream from the leader is cut is as good as no connection: nothing can be proven there.
 *   - A deposed leader never ends the session. It could not commit that.
 *   - Forwarded requests are no touches at the leader, only answers to pings and the session's being taken back.
 *   - Buckets: the expirer takes the session at any time after its timeout.
 *   - A session that is marked has ended: others are granted its locks a little later.
 *   - A request serves one beat. One request that serves several beats is modeled by several in a row.
 *   - The client sends only requests that count. The code decides that when the answer arrives, by the time at which the request was
 *     sent. It compares that time with one that it knew by then, so the model decides it when the request is sent. A beat has one
 *     request under way at a time, the one that the code would count. (With two beats a sync and a transaction can be under way
 *     together.)
 *   - A sync or a transaction counts for any beat that was upstream when it was sent. In the code it counts only for the newest one.
 *   - At most BEATS beats are under way at a time. The client may drop any beat that has no request under way.
 *   - Options.TickTime does not change, except with NEIGHBOR: then clients of the connection that count by a tick that is a unit
 *     longer come and go, as in Lease.SetTick. What is sent for a beat that this drops counts for nothing when it is answered, so it
 *     is taken from the streams. The longer tick is right with LONGTICK, the shorter one without. Spin checks that a proof
 *     that counts for the longer tick is true in both cases; another one is true only without LONGTICK.
 *   - At most UP and DOWN messages are on a stream at a time; who wants to send more waits.
 *   - What was sent on an earlier connection and is still under way is lost, but for the requests to take the session back
 *     and their answers. It would make the session live longer.
 *   - A beat whose touch is neither newer than heard nor newer than proven is dropped. It would change nothing.
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
#ifndef STILL
#define STILL 0         /* how long the leader stands still together with its clock, at most, between two pings */
#endif
#ifndef BEATS
#define BEATS 1         /* how many beats are under way at a time */
#endif
#ifndef UP
#define UP 3
#endif
#ifndef DOWN
#define DOWN 3
#endif

/* The client's steps. */
#ifdef ONETOUCH
#define TOUCHED 1
#else
#define TOUCHED 2       /* both touches were answered */
#endif
#define SYNCED (TOUCHED + 1) /* and the first sync */
#if defined(ONESTEP)
#define UPSTREAM TOUCHED
#elif defined(ONESYNC)
#define UPSTREAM SYNCED
#else
#define UPSTREAM (TOUCHED + 2) /* and the second: the touch is on the follower's stream to its leader */
#endif

/* Its waits. */
#ifdef EARLYSYNC
#define LAG (HALF - 1)
#elif defined(ONESTEP)
#define LAG (HALF + 1)  /* even so */
#elif defined(NEIGHBOR)
#define LAG (HALF + longer)
#elif defined(NOSTANDSTILL)
#define LAG HALF
#else
#define LAG (HALF + STILL) /* a ping was due; in the code: lag and standstill */
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
#define reads ??
#else
#define reads ?
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
#ifdef STILLEXPIRER
#define STILLMARKED (MARKED || link == current)
#else
#define STILLMARKED MARKED
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

/* What the answer to a read, a sync or a transaction proves. */
#define OfServer 0
#define OfLeader 1
#define OfQuorum 2

mtype = { ping, touches, sync, write, revalidate };
chan down = [DOWN] of { mtype, byte };  /* leader to follower; the byte is whose sync or transaction is answered */
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
byte asked;             /* age of the connection request, while asking */
byte term = MADE;       /* the timeout negotiated on this connection */

/* The follower's leader. */
byte unpinged;          /* since when it has not pinged */
bool owes;              /* it has answered a sync while a ping was due */
#if STILL
byte stood;             /* how long it has stood still since it pinged */
#define pinged unpinged = 0; owes = false; stood = 0
#else
#define pinged unpinged = 0; owes = false
#endif
bool proposed[BEATS];   /* transactions that are not committed yet */

/* The session, as the current leader has it. */
byte left = MADE;       /* until it may be ended */
byte taken;             /* its bucket was taken, since that long; 0: it was not */
bool ended;             /* it is marked, and will be closed */
bool replaced;          /* there is a deposed leader that knows the session */

/* The client's Lease. */
byte shortest = MADE;   /* the smallest timeout that was ever negotiated; in the code: timeout */
byte proven;            /* age of the newest touch from which the session lives for a whole timeout */
#ifdef NEIGHBOR
bool longer;              /* a client counts by the longer tick */
bool under = true;      /* the proof counts for the longer tick */
#endif

/* Its Run, of the present connection. */
byte heard;             /* age of the newest touch that the leader has counted */
byte since;             /* how long it is known that the first touch of the run was heard, up to SETTLING */
bool joins = true;      /* the run began before the last proof ran out */

/* The Run's beats. */
byte steps[BEATS];      /* how many of the answers have come; 0: there is no beat */
byte sent[BEATS];       /* age of the older touch */
byte from[BEATS];       /* how long until a request counts for the next step */
byte pending[BEATS];    /* requests that are not answered */
bool settled[BEATS];    /* the transaction under way was sent when the run had settled */
#if defined(SEETOUCH) || defined(SEEBACK)
bool back[BEATS];       /* the touch is that of being taken back */
#endif
#ifdef SEEIDLE
bool goes;              /* the run has more than one touch */
#endif
#ifdef GAPSENT
bool intime[BEATS];     /* the request under way was sent before the last touch that was heard ran out */
#endif

byte i, n;              /* for loops; always 0 in between */
mtype m;                /* when messages are sorted; always 0 in between */

#if defined(NEWESTTERM)
#define valid   term
#elif defined(SLOWCLOCK)
#define valid   (shortest + 1)
#else
#define valid   shortest
#endif
#define alive(a) ((a) < valid) /* in the code: leftOf is positive */

/* What is looked for when it is asked what can be proven at all. */
#if defined(SEETOUCH)
#define SEE (!back[b])
#elif defined(SEEBACK)
#define SEE (back[b])
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

/* strip removes the syncs and writes of a connection that has ended from a stream. */
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

inline drop(b) {
	steps[b] = 0; sent[b] = 0; from[b] = 0; pending[b] = 0; settled[b] = false;
#if defined(SEETOUCH) || defined(SEEBACK)
	back[b] = false;
#endif
}

/* forget drops beats whose touches have run out, and beats that would change nothing. */
inline forget() {
	for (i : 0 .. BEATS - 1) {
		if
		:: steps[i] && !pending[i] && (!alive(sent[i]) || sent[i] >= proven && sent[i] >= heard) -> drop(i)
		:: else
		fi
	}
	i = 0
}

/* What a proof must be true for. */
#if defined(NEIGHBOR) && defined(LONGTICK)
#define COUNTED under
#else
#define COUNTED true
#endif

#ifdef NEIGHBOR
#ifdef INHERITED
#define JOINED true             /* a proof of a run that joins counts for the longer tick */
#else
#define JOINED under
#endif
#define SHOWS(touch, is) under = (touch < proven -> (is) : under)
#else
#define SHOWS(touch, is) skip
#endif

inline prove(touch, settles) {
	SHOWS(touch, longer && (settles || JOINED));
	proven = (touch < proven -> touch : proven);
	joins = (alive(proven) -> true : joins);
	say("client    the touch is proven\n");
	assert(!(ended && alive(proven) && COUNTED))
}

/* hear takes the answer to a sync or a transaction that was sent when the beat was upstream. */
inline hear(b) {
	if
	:: sent[b] < heard ->
#ifdef SEEIDLE
		goes = alive(heard);
#endif
		if
#if defined(NOGAP)
		:: false ->
#elif defined(GAPSENT)
		:: !intime[b] ->
#else
		:: !alive(heard) ->
#endif
			say("client    the touch counts: the first of a run\n");
#ifdef SINCESENT
			since = (sent[b] < SETTLING -> sent[b] : SETTLING);
#else
			since = 0;
#endif
			joins = alive(proven);
			for (i : 0 .. BEATS - 1) { settled[i] = false }
			i = 0
		:: else -> say("client    the touch counts\n")
		fi;
		heard = sent[b]
	:: else
	fi
}

/* conclude takes the answer to a transaction that was sent when the beat was upstream. */
inline conclude(b) {
	if
#if defined(LATESETTLED)
	:: joins || since >= SETTLING ->
#elif defined(IGNORESINCE)
	:: true ->
#else
	:: joins || settled[b] ->
#endif
#ifdef SEE
		assert(!(SEE));
#endif
#ifdef RECEIPT
		prove(0, false)
#else
		prove(sent[b], settled[b])
#endif
	:: else -> say("client    the transaction is answered, and proves nothing\n")
	fi
}

/* take takes an answer to a request that was sent at from or later, if that is the beat's next step. */
inline take(b, evidence) {
	if
#ifdef WRITESTEP /* the model assumes A4 for syncs only */
	:: steps[b] >= TOUCHED && evidence == OfServer
#else
	:: steps[b] >= TOUCHED && evidence != OfLeader
#endif
	:: steps[b] == UPSTREAM
	:: else ->
		steps[b]++;
		if
		:: steps[b] == 1 && TOUCHED > 1 -> sent[b] = 0 /* it was sent in this unit */
		:: steps[b] == TOUCHED ->
			from[b] = LAG;
#ifdef NEWERTOUCH
			sent[b] = 0
#endif
		:: steps[b] == SYNCED && SYNCED < UPSTREAM ->
#ifndef PAUSESENT
			from[b] = PAUSE;
#endif
			say("client    the first sync is answered\n")
		:: else -> from[b] = 0; say("client    the touch is upstream\n")
		fi
	fi
}

/* witness takes the answer to a request. */
inline witness(b, evidence) {
#ifdef EARLYHEAR
	take(b, evidence);
#endif
	if
	:: evidence != OfServer && steps[b] == UPSTREAM -> hear(b)
	:: else
	fi;
	if
#ifdef NOQUORUM
	:: evidence != OfServer && steps[b] == UPSTREAM -> conclude(b)
#else
	:: evidence == OfQuorum && steps[b] == UPSTREAM -> conclude(b)
#endif
	:: else
	fi;
#ifndef EARLYHEAR
	take(b, evidence);
#endif
#ifdef TOUCHPROVES
	if
	:: evidence == OfServer -> prove(0, false)
	:: else
	fi;
#endif
	settled[b] = (evidence == OfQuorum -> false : settled[b])
}

/* takenBack takes the answer to a connection request: to the newest, or to an earlier one. */
inline takenBack() {
	conn = on;
	shortest = (term < shortest -> term : shortest);
	steps[0] = UPSTREAM; sent[0] = asked; from[0] = 0; pending[0] = 0; settled[0] = false; asked = 0;
#if defined(SEETOUCH) || defined(SEEBACK)
	back[0] = true;
#endif
#ifdef ATTACHPROVES
	prove(sent[0], false);
#endif
#ifdef HEARDATCONNECT
	hear(0);
#endif
}

/* lost ends the connection, and with it the Run. (The code drops the Run in TakenBack. In between it has no answers to judge.) */
inline lost() {
	conn = off; asked = 0; table = false; missed = false;
	for (i : 0 .. BEATS - 1) {
		proposed[i] = false;
#ifdef KEPTBEATS
		pending[i] = 0; settled[i] = false
#else
		drop(i)
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

inline send(what, b) {
	pending[b]++;
	settled[b] = (what == write && since >= SETTLING);
#ifdef NOQUORUM
	settled[b] = (since >= SETTLING);
#endif
#ifdef GAPSENT
	intime[b] = alive(heard);
#endif
#ifdef PAUSESENT
	from[b] = (steps[b] == TOUCHED -> PAUSE : from[b]);
#endif
	if
	:: !cut -> up!what(b)
	:: else
	fi
}

#define ROOM    (cut || nfull(up))
#define COUNTS  (conn == on && !from[_pid] && !pending[_pid]) /* a request that is sent now counts for the beat's next step */
#ifdef LAGSENT
#define NOTE    skip    /* the touch is sent, and arrives with the first sync */
#else
#define NOTE    table = true; missed = false
#endif

/* Each process is one beat after another. */
active [BEATS] proctype Beat() {
	do
	:: d_step { COUNTS && steps[_pid] < TOUCHED && (steps[_pid] || !_pid || steps[0]) -> say("client    a touch\n"); NOTE; witness(_pid, OfServer) }
	:: d_step { COUNTS && steps[_pid] < TOUCHED && (steps[_pid] || !_pid || steps[0]) && MAYMISS -> say("client    a touch, which is lost\n"); missed = true; witness(_pid, OfServer) }
	:: d_step { COUNTS && steps[_pid] >= TOUCHED && ROOM -> say("client    a sync\n");
#ifdef LAGSENT
		if
		:: steps[_pid] == TOUCHED -> table = true; missed = false
		:: else
		fi;
#endif
		send(sync, _pid) }
	:: d_step { COUNTS && steps[_pid] == UPSTREAM && ROOM -> say("client    a transaction\n"); send(write, _pid) }
#ifdef WRITESTEP
	:: d_step { COUNTS && steps[_pid] >= TOUCHED && ROOM -> say("client    a transaction for a sync\n"); send(write, _pid) }
#endif
#ifdef OTHERSYNC
	:: d_step { COUNTS && steps[_pid] >= TOUCHED && link != none -> say("client    a sync on another connection, and its answer\n"); owes = (unpinged >= DUE); take(_pid, OfLeader) }
#endif
#ifdef PAUSESENT
	:: d_step { conn == on && steps[_pid] == TOUCHED && pending[_pid] == 1 && !from[_pid] && ROOM -> say("client    the second sync\n"); send(sync, _pid) }
#endif
#ifdef EARLYWRITE
	:: d_step { conn == on && steps[_pid] == SYNCED && pending[_pid] == 1 && ROOM -> say("client    a transaction, before the second sync is answered\n"); send(write, _pid) }
#endif
	:: d_step { steps[_pid] && !pending[_pid] -> drop(_pid) } /* another one, sooner */
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
	:: d_step { down reads sync(p) -> pending[p]--; say("client    the sync is answered\n"); witness(p, OfLeader); forget(); p = 0 }
	:: d_step { down reads write(p) -> pending[p]--; say("client    the transaction is committed, and answered\n"); witness(p, OfQuorum); forget(); p = 0 }
	:: d_step { down reads revalidate(_) ->
		if
		:: conn == asking -> say("client    is taken back\n"); takenBack()
		:: else -> say("follower  hears of a session that it does not wait for\n")
		fi }
	od
}

active proctype Leader() {
	byte p;
	do
	:: d_step { link != none && unpinged && nfull(down) -> down!ping(0); pinged; say("leader    pings\n") }
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
			:: conn == asking -> lost() /* told at once */
			:: else
			fi
		:: link == current && !ended -> left = (taken -> left : p); down!revalidate(0); say("leader    takes the session back\n")
		:: else -> down!revalidate(0); say("leader    was deposed, and takes the session back\n")
		fi; p = 0 }
	:: d_step { up?[sync] && nfull(down) -> up?sync(p); down!sync(p); owes = (unpinged >= DUE); say("leader    answers the sync\n"); p = 0 }
	:: d_step { up?[write] -> up?write(p);
		if
		:: !REFUSES -> proposed[p] = true; say("leader    proposes the transaction\n")
		:: else -> say("leader    refuses the transaction\n")
		fi; p = 0 }
	:: d_step { link != none && proposed[0] && nfull(down) && COMMITS -> proposed[0] = false; down!write(0); say("leader    commits the transaction\n") }
#if BEATS > 1
	:: d_step { link != none && proposed[1] && nfull(down) && COMMITS -> proposed[1] = false; down!write(1); say("leader    commits the transaction\n") }
#endif
	od
}

/* The current leader's. */
active proctype Expirer() {
	do
	:: d_step { !left && !taken && !ended -> taken = 1; say("leader    the expirer takes the session's bucket\n") }
	:: d_step { taken && !ended -> ended = true; taken = 0; say("leader    MARKS THE SESSION AS ENDING\n"); assert(!(alive(proven) && COUNTED)) }
	od
}

inline unlink() { drain(up); drain(down); link = none; cut = false; pinged; lost() }

/* ask: the client sends a request to be taken back to the follower that it is connected to by now. */
inline ask() {
	conn = asking; asked = 0;
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
	passesAtClient()
}

#if STILL
/* stands lets a unit of time pass in which the client's leader stands still together with its clock. */
inline stands() {
	stood++;
	left = (left && link != current -> left - 1 : left);
#ifdef STILLEXPIRER
	taken = (taken && taken <= SLOW && link != current -> taken + 1 : taken);
#else
	taken = (taken && taken <= SLOW -> taken + 1 : taken);
#endif
	passesAtClient()
}
#endif

inline passesAtClient() {
	proven = (alive(proven) -> proven + 1 : proven);
	heard = (alive(heard) -> heard + 1 : heard);
	since = (alive(heard) && since < SETTLING -> since + 1 : since);
	asked = (conn == asking && alive(asked) -> asked + 1 : asked);
	for (i : 0 .. BEATS - 1) {
		sent[i] = (steps[i] && alive(sent[i]) -> sent[i] + 1 : sent[i]);
		from[i] = (from[i] -> from[i] - 1 : 0)
	}
	forget()
}

#ifdef NEIGHBOR
/* setTick is called when a client with a longer tick has joined. */
inline setTick() {
	longer = true; strip(up); strip(down);
	for (i : 0 .. BEATS - 1) {
		proposed[i] = false;
#ifdef KEPTSTEPS
		pending[i] = 0; settled[i] = false
#else
		drop(i)
#endif
	}
	i = 0;
#ifndef KEPTRUN
	heard = valid; since = 0; joins = false
#endif
}
#endif

active proctype World() {
	do
#ifdef NEIGHBOR
	:: d_step { !longer -> say("client    another client joins, with a longer tick\n"); setTick() }
	:: d_step { longer -> say("client    the client with the longer tick leaves\n"); longer = false }
#endif
	:: d_step { PINGED && MARKED && TOLD -> passes(); say("-\n") }
#if STILL
	:: d_step { link != none && stood < STILL && PINGED && STILLMARKED && TOLD -> say("world     stops the leader and its clock\n"); stands(); say("-\n") }
#endif
	:: d_step { link != none && !cut && TOLD -> say("world     cuts the stream from the follower to the leader\n"); drain(up); cut = true }
	:: d_step { link != none && TOLD -> say("world     cuts the client off, and the follower\n"); unlink() } /* or the stream from the leader to the follower */
	:: d_step { conn != off && TOLD -> say("world     ends the connection\n"); lost(); strip(up); strip(down) }
	:: d_step { !ended -> say("world     a new leader, and the old one does not know it\n");
		left = MADE; taken = 0; replaced = true;
		if
		:: link == current -> link = deposed
		:: else
		fi;
#ifdef SHORTTERM
		left = 1;
#endif
		for (i : 0 .. BEATS - 1) { proposed[i] = (link == deposed && proposed[i]) }
		i = 0 }
	:: atomic { link == none && !ended -> negotiated(); select(unpinged : 0 .. DUE); d_step { link = current; say("client    asks to be taken back\n"); ask() } }
	:: atomic { link == none && replaced -> negotiated(); select(unpinged : 0 .. DUE); d_step { link = deposed; say("client    asks a follower of a deposed leader to be taken back\n"); ask() } }
	:: atomic { link != none && conn == off && (cut && LONG == T || !cut && nfull(up)) -> negotiated(); d_step { say("client    asks again to be taken back\n"); ask() } }
#ifdef KEPTCLIENTS
	:: d_step { link == deposed && conn == on && !ended -> say("follower  has found the new leader, and keeps its client\n"); drain(up); drain(down); link = current; cut = false; pinged;
		left = (taken -> left : term);
		for (i : 0 .. BEATS - 1) { proposed[i] = false; pending[i] = 0; settled[i] = false }
		i = 0 }
#endif
	od
}
