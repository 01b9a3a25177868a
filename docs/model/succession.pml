/*
 * A silent node's lock is taken at its lease's end, not at its session's: see docs/protocol.md. docs/models.md has where this is stricter.
 *
 * A node's beat is a znode. Heartbeats raise its version, and a lease counts from the sending of one that this very znode acknowledged. A
 * standby that has seen it unchanged for longer than a lease vacates the lock, which is to delete it. A new node waits in the same way for
 * the node that the record gives, and then asks for a proof, which is one more transaction.
 *
 * Each d_step is one request, or one look, and comes as late as it likes. What a node knows of a beat may be of long ago. P1 and P2 are
 * assertions. A claim's number stands for its name and its record's, which never come again (names.pml).
 *
 * The mutations, by what each sabotages:
 *
 *   NO_CHECK       a vacate does not check the beat
 *   NO_CLAIM       nor that nobody has claimed since
 *   BY_RECORD      it goes by the record, not by the lock
 *   BY_PATH        it checks a version, whoever's it is
 *   SHORT          less than a lease
 *   FROM_SEND      the time counts from the question's sending
 *   KEEP           a beat that goes counts as unchanged
 *   SAME_WATCH     watching outlasts a connection
 *   REVIVE         a late answer revives a lease
 *   RECREATE       a beat is made again in its session
 *   OTHER_ZNODE    another znode's answer extends the lease
 *   NO_FIRST       a connection's first heartbeat checks nothing
 *   OLD_ANSWER     a late answer counts as that first one
 *   NO_FENCE       no proof, only looks
 *   OLD_PROOF      a proof from another connection
 *   NO_WARY        no wait after a restore
 */

#ifndef NODES
#define NODES 3				/* node 0 is active at first */
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define LEASE 2				/* ticks, from the sending of a heartbeat. Guardians kill when they are over */
#ifdef SHORT
#define WAIT (LEASE - 1)
#else
#define WAIT LEASE			/* as many ticks after a look: L/20 more, for the rates of two clocks, makes that true */
#endif
#define BEATS 2				/* heartbeats there may be */
#define CLAIMS 3			/* claims, the first included */
#define IDS 6				/* znodes that are beats, or in the place of one */
#define GONE 255			/* the beat is not there, or another znode is in its place */
#define NEVER 254			/* not looked at in this connection */

#define STANDBY 0
#define FENCING 1			/* it has the lock, and the record gives somebody else */
#define ASKED	2			/* the transaction that proves it is under way: it checks the beat's version */
#define PROVED	3			/* that lease is over, for good */
#define READY	4			/* the record gives us */
#define RUN	5

/* ZooKeeper. */
byte lock, cur, record;			/* claims: whose lock there is, the newest name, whose record there is; 0: none */
byte znode[NODES], version[NODES];	/* what is in the place of a node's beat */
byte by[CLAIMS + 1], its[CLAIMS + 1];	/* what lock and record say: the node of a claim, and its beat */
byte claims, ids, beats = BEATS, faults = FAULTS;

byte beat[NODES];			/* our session's beat */
byte claim[NODES], at[NODES];
byte lease[NODES];			/* of a node that has claimed. That of a standby is always whole */
bit  ended[NODES], runs[NODES];
byte flying[NODES];			/* a heartbeat: 1 sent, 2 acknowledged, 3 acknowledged by another znode, or refused */
byte left[NODES];			/* of a lease from its sending */
bit  fresh[NODES];			/* no heartbeat was acknowledged in this connection */
byte watched[NODES], saw[NODES], wait[NODES];	/* the claim whose beat we watch, its version, ticks until it is over */
byte wary[NODES];			/* the data was set back: ticks until we may claim */
byte vacating, expects, basis;		/* a vacate under way: its lock's claim, the version that it checks, and of whose beat */
bit  astray, lost[NODES];		/* the connection broke since that, or our proof, was asked for */

#ifndef ONLY
#define ONLY 0
#endif
#define P1(x)	assert(ONLY != 0 && ONLY != 1 || (x))
#define P2(x)	assert(ONLY != 0 && ONLY != 2 || (x))

#define state(k)	(znode[by[k]] == its[k] -> version[by[k]] : GONE)
#define leased(n)	(claim[n] != 0 && !ended[n])
#define standing(n)	(at[n] == STANDBY && !ended[n] && claims < CLAIMS)
#define lasts(k)	(claim[by[k]] == k && !ended[by[k]])	/* that claim's lease */
#define alone		(runs[0] + runs[1] + (NODES > 2 && runs[NODES - 1]) == 1)
#ifdef BY_PATH				/* the check of a transaction knows the version in a place, and not whose it is */
#define still(k, v)	(v == GONE || znode[by[k]] != 0 && version[by[k]] == v)
#else
#define still(k, v)	(v == GONE || state(k) == v)
#endif
#ifdef NO_CHECK				/* a vacate does not check the beat */
#define unchanged	(true)
#else
#define unchanged	still(basis, expects)
#endif
#ifdef NO_CLAIM				/* nor the claim's name */
#define unclaimed	(lock != 0)
#else
#define unclaimed	(lock != 0 && cur == vacating)
#endif
#ifdef NO_FENCE				/* a node knows by its looks that the lease is over, however old they are */
#define fenced(n)	(true)
#else
#define fenced(n)	still(watched[n], saw[n])
#endif
#ifdef BY_RECORD			/* a standby watches the beat that the record gives, not the lock's */
#define holder		record
#else
#define holder		lock
#endif
#ifdef NO_FIRST				/* a connection's first heartbeat does not check that the lock is still ours */
#define refused(n)	(false)
#else
#define refused(n)	(fresh[n] && lock != claim[n])
#endif

inline unwatch() { watched[n] = 0; saw[n] = 0; wait[n] = 0 }
inline forget() { unwatch(); lost[n] = 0; flying[n] = 0; left[n] = 0 }

inline end() {
	ended[n] = 1; runs[n] = 0; lease[n] = 0;
#ifndef REVIVE
	forget(); at[n] = STANDBY
#endif
}

inline start() {
	runs[n] = 1; at[n] = RUN;
	P1(alone)
}

inline place(z) { ids++; znode[z] = ids; version[z] = 0 }

#ifdef FROM_SEND			/* the time counts from the sending of the question */
byte asked[NODES];
#define early	(asked[n] - 1)
#else
#define early	0
#endif

inline look(k) {			/* it shows another state than before */
#ifdef KEEP				/* a beat that goes is taken for unchanged */
	if :: watched[n] == k && saw[n] < NEVER && state(k) == GONE :: else -> wait[n] = WAIT - early fi;
#else
	wait[n] = WAIT - early;
#endif
	watched[n] = k; saw[n] = state(k)
}

#define wanted(n)	(standing(n) && holder != 0 && lock != 0 && by[lock] != n -> holder : \
			(at[n] == FENCING && record != 0 && by[record] != n -> record : 0))
#define looks(n)	(!ended[n] && wanted(n) != 0 && (watched[n] != wanted(n) || saw[n] != state(wanted(n))))
#define over(n, k)	(watched[n] == k && saw[n] != NEVER && wait[n] == 0)

#define vacates(n)	(standing(n) && vacating == 0 && lock != 0 && by[lock] != n && holder != 0 && over(n, holder))

inline vacate() {
	if
	:: unclaimed && unchanged ->
		P2(astray || !lasts(lock));	/* after a restore it may be wrong: that is why the next node watches anew */
		lock = 0
	:: else
	fi;
	vacating = 0; expects = 0; basis = 0; astray = 0
}

proctype node(byte n) {
	byte k;
	do
#ifdef FROM_SEND
	:: d_step { asked[n] == 0 && !ended[n] && wanted(n) != 0 -> asked[n] = 1 }
	:: d_step { asked[n] != 0 && looks(n) -> k = wanted(n); look(k); k = 0; asked[n] = 0 }
	:: d_step { asked[n] != 0 && !looks(n) -> asked[n] = 0 }
#else
	:: d_step { looks(n) -> k = wanted(n); look(k); k = 0 }
#endif
	/* Vacating: at once, or late, whatever has become of this node by then. */
	:: d_step { vacates(n) -> vacating = lock; expects = saw[n]; basis = watched[n]; astray = 0 }
	:: d_step { vacates(n) -> vacating = lock; expects = saw[n]; basis = watched[n]; vacate() }
	/* A lock of our own that we do not know, or of our previous session: whatever ran is dead. */
	:: d_step { at[n] == STANDBY && !ended[n] && lock != 0 && by[lock] == n -> lock = 0 }

	:: d_step { standing(n) && lock == 0 && wary[n] == 0 && (claims > 1 || n < 2) ->	/* nodes 1 and 2 are alike */
		claims++; claim[n] = claims; lock = claims; cur = claims; by[claims] = n; its[claims] = beat[n];
		lease[n] = LEASE;
		if :: record == 0 -> record = claims; at[n] = READY :: else -> at[n] = FENCING fi }

	/* The record is gone, or our own: a proof. */
	:: d_step { at[n] == FENCING && leased(n) && lock == claim[n] && (record == 0 || by[record] == n) ->
		record = claim[n]; at[n] = READY }
	/* Time. The proof is a transaction that only checks, answered in the connection of the looks. The inscription may come late. */
	:: d_step { at[n] == FENCING && leased(n) && record != 0 && over(n, record) -> at[n] = ASKED }
	:: d_step { at[n] == ASKED && leased(n) ->
		if
		:: !lost[n] && fenced(n) -> at[n] = PROVED
		:: else -> at[n] = FENCING; unwatch()
		fi;
		lost[n] = 0 }
	:: d_step { at[n] == PROVED && leased(n) ->
		if
		:: lock == claim[n] && record == watched[n] -> record = claim[n]; at[n] = READY
		:: else -> at[n] = FENCING
		fi;
		unwatch() }
	:: d_step { at[n] == READY && leased(n) -> start() }

	/* A heartbeat. */
	:: d_step { leased(n) && flying[n] == 0 && beats > 0 -> beats--; flying[n] = 1; left[n] = LEASE }
	:: d_step { flying[n] == 1 ->
		if
		:: znode[n] != 0 && !refused(n) ->
			version[n]++;
#ifdef OTHER_ZNODE
			flying[n] = 2
#else
			flying[n] = (znode[n] == beat[n] -> 2 : 3)
#endif
		:: else -> flying[n] = 3
		fi }
	:: d_step { flying[n] == 2 ->
#ifdef REVIVE
		if :: ended[n] && left[n] > 0 -> ended[n] = 0; lease[n] = left[n]; if :: at[n] == RUN -> start() :: else fi :: else fi;
#endif
		if :: leased(n) -> fresh[n] = 0; if :: left[n] > lease[n] -> lease[n] = left[n] :: else fi :: else fi;
		flying[n] = 0; left[n] = 0 }
	:: d_step { flying[n] == 3 ->
#ifdef RECREATE
		if :: leased(n) && znode[n] == 0 && ids < IDS -> place(n); beat[n] = ids :: else -> end() fi;
#else
		end();				/* and the programs with it */
#endif
		flying[n] = 0; left[n] = 0 }
	:: d_step { flying[n] != 0 -> flying[n] = 0; left[n] = 0 }		/* its answer is lost */

	/* A release, the end of a session, a late removal of the record, the next session. */
	:: d_step { leased(n) && lock == claim[n] && (at[n] < READY || record == claim[n]) ->
		runs[n] = 0; lock = 0; lease[n] = 0; at[n] = STANDBY; forget();
		if :: record == claim[n] -> record = 0 :: else fi; claim[n] = 0 }
	:: d_step { leased(n) && lock != claim[n] -> end() }			/* it has read that */
	:: d_step { ended[n] && claim[n] != 0 && record == claim[n] -> record = 0 }
#ifdef SESSIONS
	:: d_step { ended[n] && ids < IDS && claims < CLAIMS -> place(n); beat[n] = ids; ended[n] = 0; claim[n] = 0; fresh[n] = 0 }
#endif
	od
}

proctype clock() {
	byte n;
	do
	:: d_step {
		for (n : 0 .. NODES - 1) {
			if :: leased(n) -> lease[n]--; if :: lease[n] == 0 -> end() :: else fi :: else fi;
			if :: left[n] > 0 -> left[n]-- :: else fi;
			if :: wait[n] > 0 && saw[n] != NEVER -> wait[n]-- :: else fi;
			if :: wary[n] > 0 -> wary[n]-- :: else fi;
#ifdef FROM_SEND
			if :: asked[n] != 0 && asked[n] <= WAIT -> asked[n]++ :: else fi;
#endif
		}
		n = 0 }
	od
}

inline disconnect() {			/* a server that goes down drops its clients */
	astray = (vacating != 0);
	for (n : 0 .. NODES - 1) {
#ifdef OLD_ANSWER
		if :: flying[n] == 1 -> flying[n] = 0; left[n] = 0 :: else fi;
#else
		flying[n] = 0; left[n] = 0;	/* an answer was read before, or does not count */
#endif
		fresh[n] = leased(n);
#ifndef OLD_PROOF
		lost[n] = (at[n] == ASKED);
#endif
#ifndef SAME_WATCH
		if :: watched[n] != 0 && at[n] < ASKED -> saw[n] = NEVER; wait[n] = 0 :: else fi
#endif
	}
}

inline restore(c) {
	faults--; restores++; lock = c; cur = c; record = c;
	for (n : 0 .. NODES - 1) {
		znode[n] = n + 1; version[n] = 0;
#ifndef NO_WARY
		wary[n] = WAIT
#endif
	}
	disconnect(); n = 0
}

proctype nemesis() {			/* whatever has two lines may happen to node 0 or 1 */
	byte n, restores;
	do
	:: d_step { vacating != 0 -> vacate() }		/* the one that came late */
	:: d_step { faults > 0 && lock != 0 -> faults--; lock = 0 }		/* by hand, or its session is ended */
	:: d_step { faults > 0 && record != 0 && !lasts(record) -> faults--; record = 0 }	/* `understudy fence confirm`, in truth */
	:: d_step { faults > 0 && znode[0] != 0 -> faults--; znode[0] = 0; version[0] = 0 }
	:: d_step { faults > 0 && znode[1] != 0 -> faults--; znode[1] = 0; version[1] = 0 }
	:: d_step { faults > 0 && znode[0] == 0 && ids < IDS -> faults--; place(0) }
	:: d_step { faults > 0 && znode[1] == 0 && ids < IDS -> faults--; place(1) }
	/* Servers lose the last heartbeat, which was acknowledged. Nobody notices. */
	:: d_step { faults > 0 && version[0] > 0 -> faults--; version[0]--; disconnect(); n = 0 }
	:: d_step { faults > 0 && version[1] > 0 -> faults--; version[1]--; disconnect(); n = 0 }
	/* A restore of a copy from the beginning, or from before the first claim, which every node notices. */
	:: d_step { faults > 0 && restores < 1 -> restore(1) }
	:: d_step { faults > 0 && restores < 1 -> restore(0) }
	od
}

init {
	atomic {
		byte i;
		for (i : 0 .. NODES - 1) { place(i); beat[i] = ids; run node(i) }
		claims = 1; claim[0] = 1; lock = 1; cur = 1; record = 1; its[1] = beat[0]; lease[0] = LEASE; at[0] = RUN; runs[0] = 1;
		run clock(); run nemesis()
	}
}
