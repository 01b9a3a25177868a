/*
 * How nodes hand a service's child over: the protocol of docs/protocol.md, checked by check.sh.
 *
 * Every d_step is one request to ZooKeeper, one order to the kernel, or one look at either. A step that can come late
 * is scheduled late: between two steps only other processes act.
 *
 * P1, P2, P3, P5 and the order of the tokens are assertions; P6 is the formula at the end. The macros that begin with NO_
 * and BAD_ are mutations: each has to break the property that check.sh names.
 *
 * The mutations, by what each sabotages:
 *
 *   NO_CRUMB       the record is not written with the lock
 *   NO_OWNER       after a lost answer any lock is taken for ours
 *   NO_NAME        inscription checks that there is a lock, not that it is ours
 *   BAD_READ       the same, with a read of the lock by czxid after the writing
 *   NO_VERIFY      after a lost answer our record is trusted without reading the lock after it
 *   NO_FENCING     the previous active node is not waited for
 *   BAD_GRACE      a delay shorter than a lease although the previous session lives
 *   BAD_STRANGER   takes it that the lease ended before the session, even if an unauthorized client ended the session
 *   NO_DELAY       waiting for the previous session's end, however long it lives
 *   BAD_CONFIRMED  any change of the record counts as a confirmation
 *   BAD_CONFIRM    fence confirm refuses only while the session holds the lock
 *   BAD_OPERATOR   fence confirm of a node whose program lives
 *   NO_REMOVAL     an empty container is left there, so that the late fork succeeds
 *   NO_PROOF       the lock is released when the kill is ordered
 *   BAD_RELEASE    the release does not check the claim's name
 *   BAD_DISOWN     a record is removed at its version alone
 *   BAD_CLOSING    the session is closed while a death is unproved
 *   BAD_TICKET     guardians remove a record at its version alone
 *   BAD_LEASE      a lease as long as the session
 */

#ifndef NODES
#define NODES 2
#endif
#ifndef FAULTS
#define FAULTS 3			/* how many faults the nemesis may cause; it repairs without limit */
#endif

/* Time, in ticks. SESSION > LEASE is the whole of the lease arithmetic (P3). */
#define LEASE 1				/* ticks left of a lease when a heartbeat is acknowledged */
#ifdef BAD_LEASE
#define SESSION 1			/* a lease as long as the session */
#else
#define SESSION 2
#endif
#ifdef BAD_GRACE
#define GRACE 1				/* too short for a lease that has not ended */
#else
#define GRACE (LEASE + 1)		/* longer than a lease */
#endif

/* Where a supervisor is. */
#define OFFLINE  0			/* no session */
#define STANDBY  1			/* waiting for the lock */
#define CLAIMED  2			/* the lock is ours: read the breadcrumb */
#define FENCING  3			/* the breadcrumb names somebody else */
#define INSCRIBE 4			/* the former is dead: write our name */
#define VERIFY   7			/* the breadcrumb is ours already: is the lock still ours? */
#define CHECK    8			/* the last look at the lease */
#define FORK     9
#define RUN     10
#define ENDING  11			/* kill, and prove it */
#define RELEASE 12			/* give lock and breadcrumb back */
#define REREAD  13			/* lock, claim's name or breadcrumb is not as we expected */
#define LOST    15			/* the lock is not ours any more: is the breadcrumb ours? */
#define DISOWN  16			/* then remove it: our child is dead */

/* A term's process tree. */
#define NONE  0				/* no container: nothing lives, nothing can be forked */
#define EMPTY 1
#define ALIVE 2

/* ZooKeeper. All but the nemesis and the expiry write here in transactions only. */
byte lock;				/* its owner: 0 nobody, n+1 */
byte claims;				/* how many there have been: the token of the newest lock, and the name of its claim, which never comes again */
byte crumb;				/* the node that the breadcrumb names: 0 there is none, n+1 */
byte version;				/* of the breadcrumb; begins with 0 each time it is created */
bit  ofSession, ofTree;			/* the breadcrumb names that node's present session, its present tree */
bit  session[NODES];			/* alive at the servers */
byte ttl[NODES];			/* until it may expire */

/* Nodes. */
bit  down[NODES], frozen[NODES], cut[NODES];	/* the supervisor killed, stopped; the node without network */
byte at[NODES];				/* where the supervisor is */
byte lease[NODES];			/* the same for supervisor and guardians */
bit  ended[NODES];			/* the guardians have ended the lease */
byte tree[NODES];
bit  struck[NODES];			/* the tree's death is ordered */
byte token[NODES];			/* of our claim: its name, and the czxid of its lock */
byte seen[NODES];			/* the breadcrumb's version as last read or written */
byte former[NODES];			/* the node that the breadcrumb named: 0 there was none, n+1, ME this very tree, OWN an earlier one */
byte delay[NODES];			/* ticks left of the grace delay */
bit  unsigned_[NODES];			/* our breadcrumb was written before its token was known */
byte noted[NODES];			/* as the guardians read it: 0 not yet, 1 not our breadcrumb, else its version plus 2 */
byte counted[NODES];			/* the newest claim's name, as the guardians read it */

/* History. */
byte newest;				/* the highest token a child was started with */
byte faults = FAULTS;

/* -DONLY=5 checks P5 alone, to see which property a mutation breaks. */
#ifndef ONLY
#define ONLY 0
#endif
#define P1(x)	assert(ONLY != 0 && ONLY != 1 || (x))
#define P2(x)	assert(ONLY != 0 && ONLY != 2 || (x))
#define P3(x)	assert(ONLY != 0 && ONLY != 3 || (x))
#define P5(x)	assert(ONLY != 0 && ONLY != 5 || (x))
#define ORDER(x) assert(ONLY != 0 && ONLY != 7 || (x))	/* of the tokens */
#define BOUND(x) assert(ONLY != 0 || (x))		/* of the model: nothing is cut off */

/* -DTRACE has a simulation tell what shows in ZooKeeper, and of programs: supervisor/testbed/steps has to accept that. */
#ifdef TRACE
mtype = { connect, claim, both, inscribed, sign, start, dies, release, surrender, disown, bury, close, expire, meddle, strike, confirm };
#define TELL(what, m, k) printf("TELL %e %d %d\n", what, m, k)
#define OFTEN priority 6			/* than faults */
#else
#define OFTEN
#define TELL(what, m, k) skip
#endif

#define ME		(n + 1)
#define OWN		(NODES + 1)			/* an earlier tree of our own */
#define working(n)	(!down[n] && !frozen[n])
#define linked(n)	(working(n) && !cut[n] && session[n])	/* requests are answered */
#ifdef NO_OWNER
#define owns(n)		(lock != 0)
#else
#define owns(n)		(lock == n + 1)
#endif
#define holds(n)	(owns(n) && claims == token[n])	/* the very lock that was claimed */
#define current(n)	(claims == token[n])	/* our claim's name is there: nobody has claimed since */
#ifdef BAD_READ
#define WRITTEN		VERIFY		/* check the lock's owner after writing */
#else
#define WRITTEN		CHECK
#endif
#if defined(NO_NAME) || defined(BAD_READ)
#define maywrite(n)	(lock != 0)	/* check that there is a lock, of any owner */
#else
#define maywrite(n)	(lock != 0 && current(n))	/* and our claim's name */
#endif
#ifdef BAD_RELEASE
#define maydelete(n)	(lock != 0)
#else
#define maydelete(n)	(lock != 0 && current(n))
#endif
#ifdef BAD_DISOWN
#define maydisown(n)	(true)
#else
#define maydisown(n)	current(n)
#endif
#define named(n)	(crumb == n + 1 && ofTree)
#define leased(n)	(lease[n] > 0 && !ended[n])
/* All nodes are alike, so the first to claim is number 0. */
#define mayclaim(n)	(linked(n) && at[n] == STANDBY && lock == 0 && (claims > 0 || n == 0) && claims < 16)
#define beating(n)	(linked(n) && leased(n) && at[n] != OFFLINE)
#if defined(BAD_CLOSING)
#define proved(n)	(ended[n])			/* ordered is not dead */
#elif defined(NO_REMOVAL)
#define proved(n)	(ended[n] && tree[n] != ALIVE)	/* empty is not removed */
#else
#define proved(n)	(ended[n] && tree[n] == NONE)
#endif
#if NODES > 2
#define alone(n)	(tree[(n + 1) % 3] != ALIVE && tree[(n + 2) % 3] != ALIVE)
#else
#define alone(n)	(tree[1 - n] != ALIVE)
#endif
#if defined(NO_FENCING)
#define past(n)		(true)
#elif defined(NO_DELAY)
#define past(n)		(false)				/* wait until the session ends, however long that takes */
#else
#define past(n)		(delay[n] == 0)
#endif
#if defined(TRUSTED) || defined(BAD_STRANGER) || defined(NO_DELAY)
#define gone(n)		(crumb == former[n] && version == seen[n] && !(session[former[n] - 1] && ofSession))
#else
#define gone(n)		(false)		/* anybody may have ended a session, so its end says nothing of its lease */
#endif
#define starting(n)	(at[n] == CHECK || at[n] == FORK || at[n] == RUN)

/* P2: we take neither lock nor breadcrumb from a child that could be alive. */
inline giveBackLock() {
	P2(lock == 0 || tree[lock - 1] != ALIVE);
	lock = 0
}
inline giveBackCrumb() {
	P2(crumb == 0 || !ofTree || tree[crumb - 1] != ALIVE);
	crumb = 0; version = 0; ofSession = 0; ofTree = 0
}

inline count() {
	claims++;
	BOUND(claims < 16)
}

inline inscribe() {			/* the breadcrumb names us from now on */
	crumb = ME; ofSession = 1; ofTree = 1
}

inline forget() {			/* all that a term remembers */
	token[n] = 0; seen[n] = 0; former[n] = 0; delay[n] = 0; unsigned_[n] = 0
}

inline newTree() {			/* a container of a name never used before */
	tree[n] = EMPTY; struck[n] = 0;
	if :: crumb == ME -> ofTree = 0 :: else fi
}

inline overSession() {			/* closed or expired: its lock goes with it */
	session[n] = 0; ttl[n] = 0; noted[n] = 0; counted[n] = 0;
	if :: lock == ME -> lock = 0 :: else fi
}

inline look() {				/* read the breadcrumb */
	seen[n] = version;
	if
	:: named(n) -> former[n] = ME
	:: else -> former[n] = crumb;
		if :: crumb == ME -> former[n] = OWN :: else fi
	fi
}

proctype supervisor(byte n) {
	do
	/* systemd restarts it; its session waits until this node's former one is over. */
	:: d_step { down[n] && (ended[n] || tree[n] == NONE) -> down[n] = 0 }
	:: d_step { working(n) && !cut[n] && at[n] == OFFLINE && !session[n] && tree[n] == NONE ->
		session[n] = 1; ttl[n] = SESSION; lease[n] = LEASE; ended[n] = 0; noted[n] = 0; counted[n] = 0;
		if :: crumb == ME -> ofSession = 0 :: else fi;
		newTree(); at[n] = STANDBY; TELL(connect, n, 0) }

	/* One transaction: the lock, the claim's name, and our breadcrumb when there is none. */
	:: d_step { mayclaim(n) && crumb == 0 ->
		lock = ME; count(); token[n] = claims;
#ifndef NO_CRUMB
		inscribe(); unsigned_[n] = 1; TELL(both, n, claims);
#else
		TELL(claim, n, claims);
#endif
		former[n] = ME; at[n] = CHECK }
	/* There is a breadcrumb, or there was at our last look: take the lock alone. */
	:: d_step { mayclaim(n) ->
		lock = ME; count(); token[n] = claims; unsigned_[n] = 1; at[n] = CLAIMED; TELL(claim, n, claims) }
	/* The same two steps, with a lost answer. */
	:: d_step { mayclaim(n) && crumb == 0 && faults > 0 ->
		faults--; lock = ME; count(); inscribe(); TELL(both, n, claims) }
	:: d_step { mayclaim(n) && faults > 0 ->
		faults--; lock = ME; count(); TELL(claim, n, claims) }
	/* A lock exists, and its owner is our session. */
	:: d_step { linked(n) && at[n] == STANDBY && lock == ME ->
		token[n] = claims; unsigned_[n] = 1; at[n] = CLAIMED }
#ifdef NO_OWNER
	:: d_step { linked(n) && at[n] == STANDBY && lock != 0 && faults > 0 ->	/* after a lost answer, treat any lock as ours */
		faults--; token[n] = claims; unsigned_[n] = 1; at[n] = CLAIMED }
#endif

	:: d_step { linked(n) && at[n] == CLAIMED ->
		look();
		if
		:: former[n] == ME -> at[n] = VERIFY
		:: former[n] == 0 -> at[n] = INSCRIBE
		:: else -> at[n] = FENCING; delay[n] = GRACE
		fi }

	/* P5. Our own former tree: this machine knows. */
	:: d_step { working(n) && at[n] == FENCING && former[n] == OWN -> delay[n] = 0; at[n] = INSCRIBE }
	/*
	 * Time: a session that lives may have a whole lease left, and so may one that a stranger has ended. A trusted network
	 * (-DTRUSTED) has no strangers: the lease of a session that is over has ended before it.
	 */
	:: d_step { working(n) && at[n] == FENCING && former[n] != OWN && (past(n) || gone(n)) -> delay[n] = 0; at[n] = INSCRIBE }
	/* The breadcrumb has changed or gone while we waited. */
	:: d_step { linked(n) && at[n] == FENCING && (crumb == 0 || version != seen[n]) && holds(n) ->
		if
#ifdef BAD_CONFIRMED
		:: true -> seen[n] = version; delay[n] = 0; at[n] = INSCRIBE;	/* treat any change as a confirmation */
			if :: crumb == 0 -> former[n] = 0 :: else fi
#else
		:: crumb == former[n] -> seen[n] = version	/* its own late signature */
		:: crumb != former[n] -> delay[n] = 0; at[n] = CLAIMED
#endif
		fi }

	/* One transaction: our lock (there is one, and no claim since ours), the breadcrumb that was fenced, now it is ours. */
	:: d_step { linked(n) && at[n] == INSCRIBE ->
		if
		:: !maywrite(n) -> at[n] = ENDING
		:: maywrite(n) && former[n] == 0 && crumb == 0 ->
			inscribe(); version = 0; seen[n] = 0; former[n] = ME; unsigned_[n] = 0; at[n] = WRITTEN;
			TELL(inscribed, n, token[n])
		:: maywrite(n) && former[n] != 0 && crumb != 0 && version == seen[n] ->
			inscribe(); version++; seen[n] = version; former[n] = ME; unsigned_[n] = 0; at[n] = WRITTEN;
			TELL(inscribed, n, token[n])
		:: else -> at[n] = CLAIMED
		fi }
	/* The same, with a lost answer: read. */
	:: d_step { linked(n) && at[n] == INSCRIBE && faults > 0 && maywrite(n) &&
		(former[n] == 0 && crumb == 0 || former[n] != 0 && crumb != 0 && version == seen[n]) ->
		faults--; inscribe(); unsigned_[n] = 0; TELL(inscribed, n, token[n]);
		if :: former[n] == 0 -> version = 0 :: else -> version++ fi;
		at[n] = CLAIMED }

	/* After a lost answer: the lock's czxid, read after the breadcrumb, says whether it is ours. */
	:: d_step { linked(n) && at[n] == VERIFY ->
		if
#ifdef NO_VERIFY
		:: true -> at[n] = CHECK
#else
		:: holds(n) -> at[n] = CHECK
		:: else -> at[n] = ENDING
#endif
		fi }

	:: d_step { working(n) && at[n] == CHECK && leased(n) -> at[n] = FORK }
	:: d_step { working(n) && at[n] == FORK ->
		if
		:: tree[n] == EMPTY ->
			tree[n] = ALIVE; at[n] = RUN; TELL(start, n, token[n]);
			P1(alone(n));
			P5(named(n));
			ORDER(token[n] > newest);
			newest = token[n]
		:: else -> at[n] = ENDING			/* P1: the container is gone */
		fi }

	/* Add our token to a breadcrumb that was written before the token was known; only the breadcrumb's version guards that. */
	:: d_step { linked(n) && starting(n) && unsigned_[n] ->
		unsigned_[n] = 0;
		if :: crumb != 0 && version == seen[n] -> version++; seen[n] = version; TELL(sign, n, token[n]) :: else fi }
	/* A watch says that the lock or the breadcrumb is not ours any more. */
	:: d_step { linked(n) && (starting(n) || at[n] == FENCING) && !holds(n) -> delay[n] = 0; at[n] = ENDING }
	:: d_step { linked(n) && starting(n) && !named(n) -> at[n] = ENDING }
	/* Asked to stop, or its child has given up. */
	:: d_step { working(n) && (at[n] == RUN || at[n] == FENCING) && faults > 0 -> faults--; delay[n] = 0; at[n] = ENDING }
	/* The lease has ended by our own clock, or a server has said that the session is over. */
	:: d_step { working(n) && at[n] != OFFLINE && at[n] < ENDING && (!leased(n) || !session[n] && !cut[n]) ->
		delay[n] = 0; at[n] = ENDING }

	/* P2: kill, wait, prove, remove; only then give back. */
	:: d_step { working(n) && at[n] == ENDING && !struck[n] ->
		struck[n] = 1;
#ifdef NO_PROOF
		at[n] = RELEASE
#endif
		}
	:: d_step { working(n) && at[n] == ENDING && struck[n] && tree[n] != ALIVE ->
		tree[n] = NONE;
		at[n] = RELEASE }
	/* One transaction: no claim since ours, the breadcrumb as we know it, the lock. Then the same, with the answer lost. */
	:: d_step { linked(n) && at[n] == RELEASE && leased(n) ->
		if
		:: maydelete(n) && former[n] != ME -> TELL(release, n, token[n]); giveBackLock(); forget(); newTree(); at[n] = STANDBY
		:: maydelete(n) && former[n] == ME && crumb != 0 && version == seen[n] ->
			TELL(surrender, n, token[n]); giveBackCrumb(); giveBackLock(); forget(); newTree(); at[n] = STANDBY
		:: else -> at[n] = REREAD
		fi }
	:: d_step { linked(n) && at[n] == RELEASE && leased(n) && faults > 0 &&
		maydelete(n) && former[n] == ME && crumb != 0 && version == seen[n] ->
		faults--; TELL(surrender, n, token[n]); giveBackCrumb(); giveBackLock(); at[n] = REREAD }
	:: d_step { linked(n) && at[n] == REREAD && leased(n) ->
		if
		:: holds(n) -> look(); at[n] = RELEASE
		:: else -> at[n] = LOST		/* by the call whose answer was lost, or by hand */
		fi }
	/* Read the newest claim's name before the breadcrumb; delete the breadcrumb only if both are unchanged. */
	:: d_step { linked(n) && at[n] == LOST && leased(n) ->
		if
		:: named(n) -> token[n] = claims; seen[n] = version; at[n] = DISOWN
		:: else -> forget(); newTree(); at[n] = STANDBY
		fi }
	:: d_step { linked(n) && at[n] == DISOWN && leased(n) ->
		if
		:: crumb != 0 && version == seen[n] && maydisown(n) ->
			TELL(disown, n, token[n]); giveBackCrumb(); forget(); newTree(); at[n] = STANDBY
		:: else -> at[n] = LOST
		fi }
	/* No lease: close the session as guardians() does, and then open a new one. */
	:: d_step { working(n) && !cut[n] && at[n] >= RELEASE && !leased(n) && !session[n] ->
		forget(); lease[n] = 0; at[n] = OFFLINE }
	od
}

/*
 * The pair of guardians of a node: one that cannot die as long as its supervisor or its twin lives. A supervisor that
 * outlives its lease closes its session in the same way, so these steps are its own too.
 */
proctype guardians(byte n) {
	do
	:: d_step { !ended[n] && (down[n] || lease[n] == 0) -> ended[n] = 1; struck[n] = 1 }
#ifndef NO_REMOVAL
	:: d_step { ended[n] && tree[n] == EMPTY -> tree[n] = NONE }
#endif
	/* P2: after proof, read the breadcrumb, and the newest claim's name before it. */
	:: d_step { proved(n) && session[n] && !cut[n] && noted[n] == 0 ->
		noted[n] = 1;
		if
#ifdef BAD_TICKET
		:: crumb == ME && ofSession -> noted[n] = version + 2
#else
		:: crumb == ME && ofSession -> noted[n] = version + 2; counted[n] = claims
#endif
		:: else
		fi }
	/* Delete it if it is still the same, and the lock with the session. */
	:: d_step { proved(n) && session[n] && !cut[n] && noted[n] > 0 ->
		if
#ifdef BAD_TICKET
		:: noted[n] == version + 2 && crumb != 0 -> TELL(bury, n, counted[n]); giveBackCrumb()
#else
		:: noted[n] == version + 2 && crumb != 0 && counted[n] == claims -> TELL(bury, n, counted[n]); giveBackCrumb()
#endif
		:: else
		fi;
		P2(tree[n] != ALIVE); TELL(close, n, 0);
		overSession() }
	od
}

/* The kernel carries out an order to kill, some time before the next tick. */
proctype kernel() {
	do
	:: d_step { tree[0] == ALIVE && struck[0] -> tree[0] = EMPTY; TELL(dies, 0, 0) }
	:: d_step { tree[1] == ALIVE && struck[1] -> tree[1] = EMPTY; TELL(dies, 1, 0) }
#if NODES > 2
	:: d_step { tree[2] == ALIVE && struck[2] -> tree[2] = EMPTY; TELL(dies, 2, 0) }
#endif
	od
}

/* The servers expire a session that has been silent for long enough, or later. */
proctype servers() {
	byte n;
	do
	:: d_step { session[0] && ttl[0] == 0 -> n = 0; P3(tree[n] != ALIVE); TELL(expire, n, 0); overSession() }
	:: d_step { session[1] && ttl[1] == 0 -> n = 1; P3(tree[n] != ALIVE); TELL(expire, n, 0); overSession(); n = 0 }
#if NODES > 2
	:: d_step { session[2] && ttl[2] == 0 -> n = 2; P3(tree[n] != ALIVE); TELL(expire, n, 0); overSession(); n = 0 }
#endif
	od
}

/*
 * Time passes when nothing is overdue: a tree whose lease has ended, or whose death is ordered, is dead within a tick; and
 * a node whose heartbeat was acknowledged has read the events before it, and acted on them.
 */
#ifdef NO_REMOVAL
#define overdue(n)	(tree[n] == ALIVE && struck[n] || tree[n] != NONE && lease[n] == 0 && !ended[n])
#else
#define overdue(n)	(tree[n] == ALIVE && struck[n] || tree[n] != NONE && lease[n] == 0)
#endif
#define due(n)	(overdue(n) || \
		 beating(n) && (at[n] == CHECK || at[n] == FORK || at[n] == RUN && !holds(n) || at[n] == ENDING && !struck[n]))

#if NODES > 2
#define nothingDue	(!due(0) && !due(1) && !due(2))
#else
#define nothingDue	(!due(0) && !due(1))
#endif

proctype clock() {
	byte n;
	do
	:: d_step { nothingDue ->
		for (n : 0 .. NODES - 1) {
			if
			:: beating(n) -> lease[n] = LEASE; ttl[n] = SESSION
			:: else ->
				if :: lease[n] > 0 -> lease[n]-- :: else fi;
				if :: ttl[n] > 0 -> ttl[n]-- :: else fi
			fi;
			if :: delay[n] > 0 -> delay[n]-- :: else fi
		}
		n = 0 }
	od
}

#ifdef BAD_OPERATOR
#define sworn(n)	(true)
#elif defined(BAD_CONFIRM)
#define sworn(n)	((!ofTree || tree[n] == NONE) && lock != n + 1)	/* refused only while that session holds the lock */
#else
#define sworn(n)	((!ofTree || tree[n] == NONE) && !(session[n] && ofSession))	/* true, and its session is over */
#endif

proctype nemesis(byte n) {
	do
	:: d_step { faults > 0 && !down[n] ->			/* kill -9 */
		faults--; down[n] = 1; frozen[n] = 0; at[n] = OFFLINE; forget() }
	:: d_step { faults > 0 && working(n) -> faults--; frozen[n] = 1 }
	:: d_step { frozen[n] -> frozen[n] = 0 }
	:: d_step { faults > 0 && !cut[n] -> faults--; cut[n] = 1 }
	:: d_step { cut[n] -> cut[n] = 0 }
	:: d_step { faults > 0 && lock == ME -> faults--; lock = 0; TELL(strike, n, 0) }	/* an operator deletes the lock by hand */
#ifndef TRUSTED
	:: d_step { faults > 0 && session[n] -> faults--; TELL(meddle, n, 0); overSession() } /* a stranger does: P3 cannot hold */
#endif
	:: d_step { faults > 0 && crumb == ME && sworn(n) ->	/* `understudy fence confirm` */
		faults--; crumb = 0; version = 0; ofSession = 0; ofTree = 0; TELL(confirm, n, 0) }
	od
}

init {
	atomic {
		byte i;
		for (i : 0 .. NODES - 1) {
			session[i] = 1; ttl[i] = SESSION; lease[i] = LEASE; tree[i] = EMPTY; at[i] = STANDBY;
			run supervisor(i) OFTEN; run guardians(i) OFTEN; run nemesis(i)
		}
		run kernel() OFTEN; run servers(); run clock() OFTEN
	}
}

#ifdef PROGRESS
#if NODES > 2
#define active (tree[0] == ALIVE || tree[1] == ALIVE || tree[2] == ALIVE)
#else
#define active (tree[0] == ALIVE || tree[1] == ALIVE)
#endif
ltl progress { [] <> active }
#endif
