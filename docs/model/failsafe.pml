/*
 * How a child outlasts the loss of the whole ensemble: docs/failsafe.md, checked by check.sh.
 *
 * This model takes for granted all that failover.pml checks: a claim, an inscription and a release are one step each, killing
 * and proving are one, and the number of claims says whether anybody has claimed since. A step that is lost or late is not
 * scheduled, or scheduled late.
 *
 * P1 and P3 are assertions, and so is P7: a child goes on if all is well but the ensemble is gone; P6 is the formula at the
 * end. The macros that begin with NO_ and BAD_ are mutations: each has to break the property that check.sh names.
 *
 * The mutations, by what each sabotages:
 *
 *   NO_ACK         continuing by promises before a list is acknowledged
 *   NO_UNION       counting on the acknowledged list alone, while a later one is being written
 *   BAD_DROP       counting on the later one alone, before it is acknowledged
 *   BAD_NOBODY     continuing with no node to ask
 *   BAD_ENLIST     the list is changed while the deadline is one by promises
 *   BAD_START      a program is started while the deadline is one by promises
 *   NO_UNANIMITY   one promise of several is enough
 *   BAD_COVER      a promise is counted on from its arrival, not from the asking
 *   BAD_PROMISE    a promise is counted on for as long as it binds
 *   BAD_SIGHT      promising with the ensemble in sight
 *   BAD_ENGAGED    promising while fencing
 *   NO_WAIT        a new node does not wait until its own promise ends
 *   NO_HEIR        a new node does not wait for its predecessor's promise
 *   BAD_HEIR       that promise counts from the supervisor's start, not from when its agent listens
 *   BAD_DELAY      a node that is not listed takes a delay for a proof
 *   NO_RETREAT     a node without a proof keeps the lock until the record goes
 *   BAD_LAPSE      the next session's lease counts before it has taken the lock again
 *   BAD_DEADLINE   once it has, a deadline by promises stays, although the list may change
 *   BAD_ASK        members are asked when the lease has ended
 *   BAD_AGAIN      members are asked again when their promises have ended
 */

#ifndef NODES
#define NODES 2
#endif
#ifndef FAULTS
#define FAULTS 3			/* how many faults the nemesis may cause; it repairs without limit */
#endif

#ifndef OLD
#define OLD 0				/* how many nodes are old ones without a service; the others join */
#endif

/* Time, in ticks: the arithmetic of leases and promises needs only "strictly shorter". */
#define LEASE   1			/* ticks left of a lease when a heartbeat is acknowledged */
#define SESSION (LEASE + 1)
#define COVER   2			/* how long a promise is counted on, from the request */
#ifdef BAD_PROMISE
#define PROMISE 2			/* how long it binds */
#else
#define PROMISE (COVER + 1)
#endif
#define LIVES   (LEASE + 1)		/* the delay when the former session lives */
#define NEVER   7			/* no delay is a proof */

/* Where a supervisor is. */
#define OFFLINE  0			/* no session, or one that is to be closed */
#define STANDBY  1
#define WON      2			/* the lock is ours */
#define FENCING  3			/* from now on we promise nothing; only then we looked at earlier promises */
#define FORK     4			/* the breadcrumb names us */
#define RUN      5
#define RELEASE  6			/* our tree is dead: give lock and breadcrumb back */
#define LAPSED   7			/* our session has expired, another is open, and promises cover our child: take the lock again */

/* A term's process tree. */
#define NONE  0				/* removed: nothing can be forked */
#define EMPTY 1
#define ALIVE 2

/* ZooKeeper. */
bit  up;				/* there is an ensemble */
byte lock, last;			/* the lock's owner; the last to claim, while that matters: 0 nobody, n+1 */
byte crumb;				/* the node that the breadcrumb names: 0 there is none, n+1 */
bit  ofTree;				/* it names its writer's present tree */
byte list;				/* the nodes that it lists, a bit each; none: it is not failsafe */
bit  session[NODES];			/* alive at the servers */
byte life[NODES];			/* ticks until it may expire; at the full number, ZooKeeper backs the lease */

/* Nodes. */
bit  down[NODES], cut[NODES];		/* the supervisor killed; the node cut off from the servers */
byte at[NODES];				/* where the supervisor is */
byte tree[NODES];
byte lease[NODES];			/* as the guardians know it */
byte wait[NODES];			/* ticks that a claimant still waits */
bit  resting[NODES];			/* backing off after a claim in vain */
bit  listening[NODES];			/* the agent's address is this supervisor's */
byte heir[NODES];			/* ticks that may be left of its predecessor's promise */
byte bound[NODES];			/* ticks left of the promise that was given in its name */
bit  known[NODES];			/* and this supervisor knows of it */

/* Of the active node; there is only one. */
byte wanted, counted;			/* the list that the breadcrumb should have; all nodes that may be in it */
bit  written, acked;			/* that list is acknowledged; a list with a node is acknowledged, and no empty one is wanted */
byte cover[NODES];			/* ticks left of their promises */
byte answer[NODES];			/* the same for a promise that is under way; 0: there is none */

/* History. */
bit  hollow[NODES];			/* the promise was given while the ensemble answered: only a mutation does that */
byte faults = FAULTS;
bit  begun;				/* somebody has claimed */

/* All nodes are alike, so the first to claim is number 0. */
#define mayclaim(n)	(linked(n) && at[n] == STANDBY && lock == 0 && !resting[n] && (begun || n == 0))

/* -DONLY=3 checks P3 alone, to see which property a mutation breaks. */
#ifndef ONLY
#define ONLY 0
#endif
#define P1(x)	assert(ONLY != 0 && ONLY != 1 || (x))
#define P3(x)	assert(ONLY != 0 && ONLY != 3 || (x))
#define P7(x)	assert(ONLY != 0 && ONLY != 7 || (x))

#define ME		(n + 1)
#define BIT(b)		(1 << (b))
#define linked(n)	(!down[n] && !cut[n] && up && session[n])	/* requests are answered */
#define holds(n)	(lock == n + 1 && last == n + 1)
#define named(n)	(crumb == n + 1 && ofTree)
#define dead		(!ofTree || tree[crumb - 1] == NONE)		/* the tree that the breadcrumb names is dead */
#define proof(n)	(crumb == 0 || !named(n) && dead)
#ifdef PROGRESS
#define provable(n)	(linked(n) && proof(n))		/* all is well: a node that can prove it is asked, and answers */
#else
#define provable(n)	(false)
#endif
#define backed(n)	(life[n] == SESSION)
#define plain(n)	(lease[n] == LEASE && backed(n))		/* no deadline but ZooKeeper's own */
#define living(n)	(at[n] == RUN && tree[n] == ALIVE && lease[n] > 0)
#define beating(n)	(linked(n) && at[n] != OFFLINE && lease[n] > 0)
#define blind(n)	(!backed(n) || !linked(n))
#define joined(b)	(session[b] && at[b] != OFFLINE)
#define own(n)		(known[n] -> bound[n] : 0)

#if NODES > 2
#define alone(n)	(tree[(n + 1) % 3] != ALIVE && tree[(n + 2) % 3] != ALIVE)
#define all(x)		(x(0) && x(1) && x(2))
#define any(x)		(x(0) || x(1) || x(2))
#else
#define alone(n)	(tree[1 - n] != ALIVE)
#define all(x)		(x(0) && x(1))
#define any(x)		(x(0) || x(1))
#endif
#define given(b)	(!(counted & BIT(b)) || cover[b] > 0)		/* as far as the active node knows */
#define kept(b)		(!(list & BIT(b)) || bound[b] > 0 && !hollow[b])	/* and in truth */
#ifdef NO_UNANIMITY
#define allGiven	(counted == 0 || (counted & 1) && cover[0] > 0 || (counted & 2) && cover[1] > 0 || (counted & 4) && cover[NODES - 1] > 0)
#else
#define allGiven	all(given)
#endif

#ifdef BAD_ENLIST
#define mayenlist(n)	(living(n) && linked(n))
#else
#define mayenlist(n)	(living(n) && linked(n) && plain(n))
#endif
#ifdef BAD_START
#define maystart(n)	(lease[n] > 0)
#else
#define maystart(n)	plain(n)
#endif
#ifdef BAD_ENGAGED
#define engaged(n)	(at[n] == RUN)
#else
#define engaged(n)	(at[n] >= FENCING && at[n] <= RUN || at[n] == LAPSED)
#endif
#ifdef BAD_LAPSE
#define lapsing(n)	false			/* the new session's lease counts before the lock is taken again */
#else
#define lapsing(n)	(at[n] == LAPSED)
#endif
#ifdef BAD_SIGHT
#define maypromise(n)	(!down[n] && !engaged(n))
#else
#define maypromise(n)	(!down[n] && !engaged(n) && blind(n))
#endif
#ifdef BAD_ASK
#define mayask(b)	false			/* not before the lease that ZooKeeper backs has ended, which is too late */
#elif defined(BAD_AGAIN)
#define mayask(b)	(cover[b] == 0)		/* not before the promise has ended */
#else
#define mayask(b)	(cover[b] <= COVER / 2)
#endif

inline inscribe() {
	crumb = ME; ofTree = 1; list = 0
}

inline erase() {
	crumb = 0; ofTree = 0; list = 0
}

inline unlock() {
	if :: lock == ME -> lock = 0 :: else fi;
	if :: last == ME -> last = 0 :: else fi
}

inline overSession() {			/* closed or expired: its lock goes with it */
	session[n] = 0; life[n] = 0;
	if :: lock == ME -> lock = 0 :: else fi
}

inline newTree() {
	tree[n] = EMPTY;
	if :: crumb == ME -> ofTree = 0 :: else fi
}

inline unlearn() {			/* forget all that the active node knows of its members */
	wanted = 0; counted = 0; written = 1; acked = 0;
	for (b : 0 .. NODES - 1) { cover[b] = 0; answer[b] = 0 }
	b = 0
}

inline kill() {				/* and prove it, and remove the container */
	if :: tree[n] == ALIVE -> unlearn() :: else fi;
	tree[n] = NONE
}

inline enlist(members) {
	if
	:: wanted == (members)
	:: else ->
		wanted = members; written = 0;
#ifdef BAD_DROP
		counted = wanted;		/* count no more on nodes that are only in the former list */
#elif !defined(NO_UNION)
		counted = counted | wanted;
#endif
#ifndef BAD_NOBODY
		if :: wanted == 0 -> acked = 0 :: else fi;
#endif
#ifdef NO_ACK
		acked = 1
#endif
	fi
}

inline look() {				/* read the breadcrumb: how long to wait? */
#ifdef NO_WAIT
	wait[n] = 0;
#else
	wait[n] = own(n);
#endif
	if
	:: crumb == 0 || crumb == ME
	:: else ->
		if
		:: list == 0
#ifdef BAD_HEIR
		:: list & BIT(n) ->
#else
		:: (list & BIT(n)) && listening[n] ->
#endif
			if :: heir[n] > wait[n] -> wait[n] = heir[n] :: else fi
#ifdef BAD_DELAY
		:: else
#else
		:: else -> wait[n] = NEVER
#endif
		fi;
		if :: session[crumb - 1] && wait[n] < LIVES -> wait[n] = LIVES :: else fi
	fi
}

proctype supervisor(byte n) {
	byte b;
	do
	/* Started: it owns its address somewhat later. */
	:: d_step { down[n] && tree[n] == NONE -> down[n] = 0;
#ifdef BAD_HEIR
		heir[n] = PROMISE
#endif
		}
	:: d_step { !down[n] && !listening[n] -> listening[n] = 1;
#if !defined(NO_HEIR) && !defined(BAD_HEIR)
		heir[n] = PROMISE
#endif
		}
	:: d_step { !down[n] && !cut[n] && up && at[n] == OFFLINE && !session[n] && tree[n] == NONE ->
		session[n] = 1; life[n] = SESSION; lease[n] = LEASE;
		newTree(); at[n] = STANDBY }

	/* Claim, and write our breadcrumb with it when there is none. */
	:: d_step { mayclaim(n) ->
		lock = ME; last = ME; at[n] = WON; begun = 1;
		if :: crumb == 0 -> inscribe() :: else fi }
	/* From now on we promise nothing; then we look at our earlier promises. */
	:: d_step { linked(n) && at[n] == WON && holds(n) -> look(); at[n] = FENCING }
	/* A proof, by any method. */
#ifdef NO_RETREAT
	:: d_step { linked(n) && at[n] == FENCING && wait[n] > 0 && crumb == 0 -> wait[n] = 0 }
#else
	:: d_step { linked(n) && at[n] == FENCING && wait[n] > 0 && proof(n) -> wait[n] = 0 }
	/* No proof: leave it to another node. */
	:: d_step { !down[n] && at[n] == FENCING && wait[n] == NEVER && !provable(n) -> kill(); wait[n] = 0; resting[n] = 1; at[n] = RELEASE }
#endif
	:: d_step { linked(n) && at[n] == FENCING && wait[n] == 0 && holds(n) ->
		if :: !named(n) -> inscribe() :: else fi;
		at[n] = FORK }
	:: d_step { !down[n] && at[n] == FORK && maystart(n) && tree[n] == EMPTY ->
		tree[n] = ALIVE; at[n] = RUN; unlearn();
		P1(alone(n)) }

	/* Members join; a member that has gone still counts for a while. */
	:: d_step { mayenlist(n) && joined(0) && n != 0 -> enlist(wanted | 1) }
	:: d_step { mayenlist(n) && joined(1) && n != 1 -> enlist(wanted | 2) }
	:: d_step { mayenlist(n) && !joined(0) && (wanted & 1) -> enlist(wanted & 6) }
	:: d_step { mayenlist(n) && !joined(1) && (wanted & 2) -> enlist(wanted & 5) }
#if NODES > 2
	:: d_step { mayenlist(n) && joined(2) && n != 2 -> enlist(wanted | 4) }
	:: d_step { mayenlist(n) && !joined(2) && (wanted & 4) -> enlist(wanted & 3) }
#endif
	/* Write the list, if the claim's number is ours. Then the same, carried out at any time, with a lost answer. */
	:: d_step { living(n) && linked(n) && !written && named(n) && last == ME ->
		list = wanted; written = 1; counted = wanted;
#ifdef BAD_NOBODY
		acked = 1
#else
		acked = (wanted != 0)
#endif
		}
	:: d_step { living(n) && up && session[n] && named(n) && last == ME && list != wanted -> list = wanted }

	/* The session has expired while promises cover the child. The next one takes the lock again if nobody has claimed it since. */
	:: d_step { !down[n] && !cut[n] && up && !session[n] && at[n] == RUN && tree[n] == ALIVE && lease[n] > 0 ->
		session[n] = 1; life[n] = SESSION; unlearn(); at[n] = LAPSED;
#ifndef BAD_DEADLINE
		if :: lease[n] > LEASE -> lease[n] = LEASE :: else fi		/* the new session's, or what is left of the promises if that is sooner */
#endif
		}
	:: d_step { linked(n) && at[n] == LAPSED && tree[n] == ALIVE && lease[n] > 0 && lock == 0 && last == ME && named(n) ->
		lock = ME; at[n] = RUN }
	:: d_step { linked(n) && at[n] == LAPSED && (lock != 0 || last != ME || !named(n)) -> kill(); at[n] = RELEASE }

	/* The lock or the breadcrumb is not ours any more. */
	:: d_step { linked(n) && at[n] >= WON && at[n] <= RUN && (!holds(n) || at[n] >= FORK && !named(n)) ->
		kill(); wait[n] = 0; at[n] = RELEASE }
	/* Asked to stop. */
	:: d_step { !down[n] && at[n] == RUN && faults > 0 -> faults--; kill(); at[n] = RELEASE }
	:: d_step { linked(n) && at[n] == RELEASE && lease[n] > 0 ->
		if :: named(n) -> erase() :: else fi;
		unlock(); newTree(); at[n] = STANDBY }
	/* The lease has ended, or the session is known to be over. */
	:: d_step { at[n] != OFFLINE && (lease[n] == 0 && tree[n] == NONE || up && !cut[n] && !session[n]) ->
		kill(); wait[n] = 0; lease[n] = 0; at[n] = OFFLINE;
		if :: last == ME -> last = 0 :: else fi }
	od
}

/*
 * The active node asks for promises as long as no ensemble answers, and goes on by them. A late question binds for longer,
 * so only answers are late here.
 */
inline ask(m) {
	answer[m] = COVER; bound[m] = PROMISE;
	hollow[m] = listening[m] && !blind(m);
	known[m] = listening[m]		/* else a former supervisor of that name answered, just before its end */
}

inline hear(m) {
#ifdef BAD_COVER
	cover[m] = COVER;		/* counted from the answer */
#else
	cover[m] = answer[m];
#endif
	answer[m] = 0
}

#define asks(b)		(living(n) && acked && blind(n) && (counted & BIT(b)) && answer[b] == 0 && mayask(b) && \
			 (!listening[b] || maypromise(b)))

proctype hold(byte n) {
	byte b, least;
	do
	:: d_step { asks(0) -> ask(0) }
	:: d_step { asks(1) -> ask(1) }
	:: d_step { living(n) && answer[0] > 0 -> hear(0) }
	:: d_step { living(n) && answer[1] > 0 -> hear(1) }
#if NODES > 2
	:: d_step { asks(2) -> ask(2) }
	:: d_step { living(n) && answer[2] > 0 -> hear(2) }
#endif
	:: d_step { living(n) && acked && blind(n) && allGiven ->
		least = COVER;
		for (b : 0 .. NODES - 1) {
			if :: (counted & BIT(b)) && cover[b] > 0 && cover[b] < least -> least = cover[b] :: else fi
		}
		if :: least > lease[n] -> lease[n] = least :: else fi;
		b = 0; least = 0 }
	od
}

/* The pair of guardians of a node. */
proctype guardians(byte n) {
	byte b;
	do
	:: d_step { tree[n] != NONE && (down[n] || lease[n] == 0) ->
#ifdef CALM
		P7(tree[n] != ALIVE || !acked);
#endif
		kill() }
	:: d_step { at[n] == OFFLINE && tree[n] == NONE && session[n] && up && !cut[n] ->
		if :: named(n) -> erase() :: else fi;
		overSession() }
	od
}

/* The servers expire a session that has been silent for long enough, or later. */
inline expire(s) {
	n = s;
	P3(tree[n] != ALIVE || named(n) && list != 0 && all(kept));
	overSession(); n = 0
}

proctype servers() {
	byte n;
	do
	:: d_step { up && session[0] && life[0] == 0 -> expire(0) }
	:: d_step { up && session[1] && life[1] == 0 -> expire(1) }
#if NODES > 2
	:: d_step { up && session[2] && life[2] == 0 -> expire(2) }
#endif
	od
}

/* Time passes when nothing is overdue, as in failover.pml. */
#define due(n)	(tree[n] != NONE && (down[n] || lease[n] == 0) || \
		 beating(n) && (at[n] == FORK && (plain(n) || !holds(n)) || at[n] == RUN && !holds(n)) || tardy(n))
#ifdef CALM			/* and nobody is slow to ask, to answer, or to continue */
#define silent(b)	((counted & BIT(b)) && (answer[b] > 0 || mayask(b) && maypromise(b)))
#define covered(b)	(!(counted & BIT(b)) || cover[b] == COVER)
#define tardy(n)	(living(n) && acked && blind(n) && (any(silent) || all(covered) && lease[n] < COVER))
#else
#define tardy(n)	(false)
#endif
#if NODES > 2
#define nothingDue	(!due(0) && !due(1) && !due(2))
#else
#define nothingDue	(!due(0) && !due(1))
#endif

#define pass(x)		if :: x > 0 -> x-- :: else fi

proctype clock() {
	byte n;
	do
	:: d_step { nothingDue ->
		for (n : 0 .. NODES - 1) {
			if
			:: beating(n) && lapsing(n) -> lease[n]--; life[n] = SESSION
			:: beating(n) && !lapsing(n) -> lease[n] = (lease[n] > LEASE + 1 -> lease[n] - 1 : LEASE); life[n] = SESSION
			:: else ->
				pass(lease[n]);
				/* without an ensemble nothing expires */
				if :: life[n] > 0 && (up || backed(n)) -> life[n]-- :: else fi
			fi;
			if :: wait[n] > 0 && wait[n] != NEVER -> wait[n]-- :: else fi;
			pass(heir[n]); pass(bound[n]); pass(cover[n]); pass(answer[n]);
			if :: bound[n] == 0 -> known[n] = 0; hollow[n] = 0 :: else fi;
			resting[n] = 0
		}
		n = 0 }
	od
}

inline amnesia() {
	heir[n] = 0; known[n] = 0; listening[n] = 0
}

proctype nemesis(byte n) {
	byte b;
	do
	:: d_step { cut[n] -> cut[n] = 0 }
	:: d_step { faults > 0 && !cut[n] -> faults--; cut[n] = 1 }
	:: d_step { faults > 0 && !down[n] ->			/* kill -9 */
		faults--; amnesia(); wait[n] = 0; resting[n] = 0; down[n] = 1; at[n] = OFFLINE; lease[n] = 0;
		if :: last == ME -> last = 0 :: else fi }
	:: d_step { faults > 0 && !down[n] && (at[n] == STANDBY || at[n] == RUN && plain(n)) ->	/* another image of its process */
		faults--; amnesia();
		if :: tree[n] == ALIVE -> unlearn() :: else fi }
	:: d_step { faults > 0 && lock == ME -> faults--; lock = 0 }	/* an operator deletes the lock by hand */
	od
}

proctype outage() {
	do
	:: d_step { !up -> up = 1 }
#ifdef CALM
	:: d_step { up && acked && written -> up = 0 }		/* again and again, once the list is known */
#else
	:: d_step { faults > 0 && up -> faults--; up = 0 }
#endif
	od
}

init {
	atomic {
		byte i;
		up = 1; written = 1;
		for (i : 0 .. NODES - 1) {
			if
			:: i < OLD -> listening[i] = 1
			:: else -> down[i] = 1
			fi;
#ifndef CALM
			run nemesis(i);
#endif
			run supervisor(i); run hold(i); run guardians(i)
		}
		run servers(); run clock(); run outage()
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
