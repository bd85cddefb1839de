/*
 * The race: why two connection requests for one session, under way on two servers at once, prove nothing wrongly.
 *
 * The client of internal/conn/race.go asks another server if one takes long. The first that replies becomes the connection's server,
 * and the other connections are closed. A request that was sent to a server may be executed at any time later, also after its
 * connection was closed. Each one moves the session: the leader knows which server owns it, and refuses the transactions of any other.
 *
 * Here are the client's attempts, the servers with their streams to the leader, the owner of the session, and the evidence of the lease:
 * the beat that begins with the connection request (TakenBack), and another one. Spin checks
 *
 *   when a touch is proven, the leader has renewed the session at that time or later;
 *   the client does not keep a connection that the servers have ended.
 *
 * The model lease.pml shows the rest with one connection at a time: how a touch comes upstream, gaps, and how sessions expire. So here
 * a touch is upstream when the server has answered a ping with it, and a session that was not renewed for T may end at any time.
 *
 * Assumptions:
 *   - Streams are ordered, and a server answers requests to take a session back by the session alone: the last one gets the answer.
 *   - A server that executes a connection request closes its other connections of the session.
 *   - A server may follow a deposed leader, which takes sessions back and commits nothing. When it finds the current one, it closes all
 *     connections.
 *
 * What is taken away, so that spin must find the error:
 *   - LASTSENT: the connection dates from the newest request, not from the one that was answered.
 *   - ANYRUN: answers on a connection that has lost, or that was replaced, count.
 *   - CONNECTPROVES: being taken back is a proof by itself.
 */

#ifndef N
#define N 3             /* how many connections the client opens in all */
#endif
#define MOST 4
#ifndef RACES
#define RACES 2         /* how many run at the same time */
#endif
#ifndef END
#define END 2           /* when the clock stops */
#endif
#ifndef DEPTH
#define DEPTH 2         /* messages on a stream */
#endif
#define T 2             /* session timeout */
#define none 255

mtype = { revalidate, touches, write, moved };

chan up0 = [DEPTH] of { mtype, byte };      /* server to leader; the byte is the connection */
chan up1 = [DEPTH] of { mtype, byte };
chan down0 = [DEPTH] of { mtype, byte };    /* leader to server */
chan down1 = [DEPTH] of { mtype, byte };

byte clock;

/* The leader. */
byte owner;             /* the server that owns the session */
byte renewed;           /* when the session was last renewed */
bool ended;

/* The servers. */
byte last[2] = none;    /* the connection whose request to take the session back was forwarded last, without an answer */
bool table[2];          /* there is a touch in its table */
bool stale[2];          /* it follows a deposed leader */

/* The connections. */
mtype = { unused, asked, racing, open, lost };
mtype state[MOST] = unused; /* asked: the request has not been executed, and the race waits for its answer */
bool late[MOST];           /* the race has ended, and the request may still be executed */
bit at[MOST];              /* the server */
byte sent[MOST];           /* when its request was sent */

/* The client. */
byte cur = none;        /* its connection */
byte running;           /* attempts of the race */
byte used;              /* connections that were opened */
bool over;              /* it was told that the session has ended */
byte proven;
byte date;              /* of the beat */
bit beat;               /* there is one */
bool upstream;          /* its touch is on the stream to the leader */
bool pending;           /* a transaction for it is under way */
byte i;

#define say(what) printf(what)

inline forget() { beat = 0; upstream = false; pending = false; date = 0 }

inline drain(stream) {
	do
	:: len(stream) > 0 -> stream?_, _
	:: else -> break
	od
}

/* drop ends the client's connection. */
inline drop() {
	state[cur] = lost; cur = none; forget()
}

/* closeOthers ends what server s has open for the session, when it executes the request of connection c. */
inline closeOthers(s, c) {
	for (i : 0 .. N - 1) {
		if
		:: i != c && at[i] == s && state[i] == open -> say("client    its connection ends\n"); drop()
		:: i != c && at[i] == s && state[i] == racing -> state[i] = lost; running--
		:: else
		fi
	}
	i = 0
}

/* wins makes c the client's connection. */
inline wins(c) {
	say("client    takes the first answer\n");
	running = 0; cur = c;
	for (i : 0 .. N - 1) {
		if
		:: state[i] == asked && i != c -> late[i] = true; state[i] = lost
		:: state[i] == racing && i != c -> state[i] = lost
		:: else
		fi
	}
	i = 0;
	state[c] = open; beat = 1; upstream = true; pending = false;
#ifdef LASTSENT
	date = sent[used - 1];
#else
	date = sent[c];
#endif
#ifdef CONNECTPROVES
	prove()
#endif
}

inline prove() {
	proven = (date > proven -> date : proven);
	say("client    the touch is proven\n");
	assert(renewed >= proven)
}

inline execute(s, u, c) {
	say("server    executes a connection request\n");
	late[c] = false;
	state[c] = (state[c] == asked -> racing : state[c]);
	closeOthers(s, c);
	last[s] = c;
	u!revalidate(c)
}

#ifdef ANYRUN
#define COUNTS(c) (cur != none)
#else
#define COUNTS(c) ((c) == cur)
#endif

#define READY(s, c) (at[c] == s && (state[c] == asked || late[c]))

proctype Server(bit s; chan u; chan d) {
	byte c;
	do
	/* A connection request, in time or late. */
	:: d_step { nfull(u) && READY(s, 0) -> execute(s, u, 0) }
	:: d_step { nfull(u) && READY(s, 1) -> execute(s, u, 1) }
	:: d_step { nfull(u) && READY(s, 2) -> execute(s, u, 2) }
	:: d_step { nfull(u) && READY(s, 3) -> execute(s, u, 3) }
	/* The answer to a ping. */
	:: d_step { table[s] && nfull(u) -> u!touches(0); table[s] = false; say("server    answers a ping with a touch\n");
		if
		:: cur != none && at[cur] == s && beat -> upstream = true
		:: else
		fi }
	:: d_step { d?[revalidate] -> d?revalidate(c); c = last[s]; last[s] = none;
		if
		:: c != none && state[c] == racing -> wins(c)
		:: else -> say("server    nobody waits for the session\n")
		fi; c = 0 }
	:: d_step { d?[write] -> d?write(c);
		if
		:: COUNTS(c) && beat && pending -> pending = false; prove(); forget()
		:: else
		fi; c = 0 }
	:: d_step { d?[moved] -> d?moved(c);
		if
		:: cur == c -> say("client    its server has lost the session\n"); drop()
		:: else
		fi; c = 0 }
	:: d_step { stale[s] && empty(u) -> say("server    finds the current leader\n"); stale[s] = false; table[s] = false; last[s] = none;
		drain(d);
		for (i : 0 .. N - 1) {
			if
			:: at[i] == s && state[i] == open -> drop()
			:: at[i] == s && state[i] == racing -> state[i] = lost; running--
			:: else
			fi
		}
		i = 0 }
	od
}

proctype Leader(bit s; chan u; chan d) {
	byte c;
	do
	:: d_step { u?[touches] -> u?touches(_);
		if
		:: !stale[s] && !ended -> renewed = clock; say("leader    counts the touch\n")
		:: else
		fi }
	:: d_step { u?[revalidate] && nfull(d) -> u?revalidate(c);
		if
		:: stale[s] -> d!revalidate(c)
		:: !stale[s] && !ended -> owner = s; renewed = clock; say("leader    the server owns the session\n"); d!revalidate(c)
		:: else -> over = true; say("leader    the session has ended\n")
		fi; c = 0 }
	:: d_step { u?[write] && nfull(d) && !stale[s] -> u?write(c);
		if
		:: !ended && owner == s -> say("leader    commits the transaction\n"); d!write(c)
		:: else -> say("leader    refuses the transaction\n"); d!moved(c)
		fi; c = 0 }
	:: d_step { u?[write] && stale[s] -> u?write(_) } /* it has no quorum */
	od
}

active proctype World() {
	do
	:: d_step { clock < END -> clock++; say("-\n") }
	:: d_step { !ended && clock - renewed >= T -> ended = true; say("leader    ENDS THE SESSION\n"); assert(!(clock - proven < T)) }
	/* Another leader, and server s does not know it. */
	:: d_step { !ended && !stale[0] && !stale[1] -> stale[0] = true; renewed = clock; say("world     a new leader, which the first server does not know\n") }
	:: d_step { !ended && !stale[0] && !stale[1] -> stale[1] = true; renewed = clock; say("world     a new leader, which the second server does not know\n") }
	:: d_step { cur != none -> say("world     ends the connection\n"); drop() }
	od
}

#define CONNECTS (cur == none && !over && used < N && running < RACES)

active proctype Client() {
	do
	:: d_step { CONNECTS -> say("client    asks the first server\n"); state[used] = asked; at[used] = 0; sent[used] = clock; running++; used++ }
	:: d_step { CONNECTS -> say("client    asks the second server\n"); state[used] = asked; at[used] = 1; sent[used] = clock; running++; used++ }
	:: d_step { cur != none && !beat -> say("client    a touch\n"); beat = 1; date = clock; upstream = false; table[at[cur]] = true }
	:: d_step { cur != none && beat && upstream && !pending && at[cur] == 0 && nfull(up0) -> say("client    a transaction\n"); pending = true; up0!write(cur) }
	:: d_step { cur != none && beat && upstream && !pending && at[cur] == 1 && nfull(up1) -> say("client    a transaction\n"); pending = true; up1!write(cur) }
	:: d_step { cur != none && beat && !pending -> forget() }
	od
}

init { atomic { run Server(0, up0, down0); run Server(1, up1, down1); run Leader(0, up0, down0); run Leader(1, up1, down1) } }
