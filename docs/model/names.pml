/*
 * What transactions check has a name that never comes again: see docs/protocol.md. check.sh checks it.
 *
 * An operator deletes any znode at any moment, or all of them, writes to the folder, and restores an older copy. Each d_step is one
 * request; a transaction comes as late as it likes. Time, leases and kills are in failover.pml. Here a node's program is dead when the
 * node says so, and all that is asked is whose lock and record its transactions delete and overwrite.
 *
 * The mutations, by what each sabotages:
 *
 *   BY_VERSION     the number of claims, which is the folder's version, in place of the claim's name
 *   NO_RECORD      a late removal checks only the record's version
 *   NO_SINCE       a late removal does not check that nobody has claimed since
 *   NO_ORPHANS     the name of a record that was deleted by hand stays when the next one is written
 *   NO_EMPTY       a claim that has seen no name does not check the folder's version
 */

#ifndef NODES
#define NODES 2
#endif
#ifndef FAULTS
#define FAULTS 3
#endif
#define CLAIMS 3			/* there may be, and as many records; in each run names begin with 1 */
#define is(x)	(1 << (x))

/* ZooKeeper. */
byte version;				/* of the service's folder: the number of claims */
byte lock;				/* the name of the claim that made it; 0: there is none */
bit  foreign;				/* made in another folder, or another copy, than its maker began with: it gives it back at once */
byte names;				/* which claim-<guid> there are, a bit each */
byte record, edition;			/* the name in the record, and the record's version; 0: there is none */
byte tags;				/* which record-<guid> there are */
byte birth;				/* of the folder, and of this copy of the data: whoever claims looks at both afterwards */

byte oldVersion, oldLock, oldNames, oldRecord, oldEdition, oldTags;	/* an older copy */
bit  copied, oldForeign;

byte claims, records;			/* names that were used: no copy gives one again */
byte faults = FAULTS;

byte claim[NODES];			/* our claim; 0: none */
byte number[NODES];			/* the folder's version as it left it */
byte wrote[NODES];			/* the name of our record; 0: the record is not ours */

#ifdef BY_VERSION			/* the number of claims, which begins anew with the folder, in place of the claim's name */
#define mine(n)		(version == number[n])
#define since(l, v)	(version == v)
#define seen(l, v)	(true)
#else
#define mine(n)		((names & is(claim[n])) != 0)
#define since(l, v)	(l != 0 && (names & l) == l || l == 0 && version == v)	/* nobody has claimed since that look */
#ifdef NO_EMPTY				/* a look that shows no claim's name is as good as one that does */
#define seen(l, v)	((names & l) == l)
#else
#define seen(l, v)	((names & l) == l && version == v)
#endif
#endif
#ifdef NO_SINCE
#undef since
#define since(l, v)	(true)
#endif
#ifdef NO_RECORD			/* the record's version alone */
#define tagged(r)	(true)
#else
#define tagged(r)	((tags & is(r)) != 0)
#endif
#ifdef NO_ORPHANS			/* the name of a record that was deleted by hand stays when the next one is written */
#define orphans		0
#else
#define orphans		tags
#endif

inline write() {			/* a new record, which names us; the transaction deletes the names that are no record's now */
	records++; record = records; tags = (tags & ~t) | is(record); wrote[n] = record
}

inline deleteRecord() {
	tags = tags & ~is(record); record = 0; edition = 0
}

#define room		(claims < CLAIMS && records < CLAIMS)

proctype node(byte n) {
	byte l, v, r, e, t;		/* a look: the names of claims, the folder's version, the record with its version, the names of records */
	byte b;				/* the birth at the candidate's beginning */
standby:
	skip;
	d_step { claim[n] = 0; number[n] = 0; wrote[n] = 0; l = 0; v = 0; r = 0; e = 0; t = 0; b = birth }
look:
	skip;
	d_step { r = record }
	d_step { l = names; v = version; t = 0; if :: r == 0 -> t = orphans :: else fi }
	if
	:: d_step { lock == 0 && seen(l, v) && (tags & t) == t && (r != 0 || record == 0) && room ->
		claims++; claim[n] = claims; lock = claims; foreign = (birth != b);
		names = (names & ~l) | is(claims); version++; number[n] = version;
		if :: r == 0 -> write(); edition = 0 :: else fi;
		l = 0; v = 0; r = 0; t = 0 }
	:: d_step { lock == 0 && record == 0 && r != 0 && room && seen(l, v) ->	/* the watch has told that the record is gone */
		claims++; claim[n] = claims; lock = claims; foreign = (birth != b);
		names = (names & ~l) | is(claims); version++; number[n] = version;
		t = 0; write(); edition = 0; l = 0; v = 0; r = 0 }
	:: d_step { birth != b -> l = 0 } -> goto standby
	:: goto look
	fi;
	if
	:: foreign && lock == claim[n] -> goto release
	:: else
	fi;
	if
	:: wrote[n] != 0 -> goto named
	:: wrote[n] == 0
	fi;
fence:					/* whoever the record names is dead by then */
	skip;
	d_step { r = record; e = edition; t = 0 }
	if
	:: d_step { r == 0 -> t = orphans }
	:: d_step { r != 0 }
	fi;
	if
	/* One transaction: a lock, our claim's name, the record that was fenced, or none. */
	:: d_step { lock != 0 && mine(n) && r == 0 && record == 0 && (tags & t) == t && records < CLAIMS ->
		assert(lock == claim[n] || foreign);
		write(); edition = 0; r = 0; e = 0; t = 0 }
	:: d_step { lock != 0 && mine(n) && r != 0 && record != 0 && tagged(r) && edition == e && records < CLAIMS ->
		assert((lock == claim[n] || foreign) && record == r);
		t = is(r); write(); edition++; r = 0; e = 0; t = 0 }
	:: d_step { mine(n) && r != 0 && record != 0 && edition == e && !tagged(r) ->	/* deleted by hand: make it again, and look again */
		tags = tags | is(r); r = 0; e = 0 } -> goto fence
	:: goto fence
	:: d_step { r = 0; e = 0; t = 0 } -> goto release
	fi;
named:
	skip;
	if
	:: d_step { record == 0 -> wrote[n] = 0 } -> goto fence		/* deleted by hand: it is written again */
	:: goto release
	fi;
release:				/* its program is dead */
	skip;
	if
	/* That the record is ours follows from the claim: nobody else writes one. */
	:: d_step { lock != 0 && mine(n) && (wrote[n] == 0 || record != 0 && record == wrote[n]) ->
		assert(lock == claim[n] || foreign);
		if :: wrote[n] != 0 -> deleteRecord() :: else fi;
		lock = 0; foreign = 0 } -> goto standby
	:: true
	fi;
	/* It failed: look. */
	d_step { l = names & is(claim[n]) }
	d_step { r = record; if :: r != wrote[n] -> wrote[n] = 0 :: else fi; r = 0 }
	if
	:: d_step { lock == claim[n] && l != 0 -> l = 0 } -> goto release
	:: d_step { lock == claim[n] && l == 0 -> lock = 0; foreign = 0 }	/* its name is gone, the lock is not: the session ends */
	:: d_step { lock != claim[n] -> l = 0 }
	fi;
withdraw:				/* the lock is not ours, but the record may be */
	skip;
	d_step { l = names; v = version; t = tags }
	d_step { r = record; e = edition; t = t & is(r) }
	if
	:: d_step { wrote[n] == 0 || r != wrote[n] -> r = 0 } -> goto standby
	:: d_step { r != 0 && r == wrote[n] && t == 0 && since(l, v) && record != 0 && edition == e -> tags = tags | is(r) }	/* make the name again */
#ifdef NO_RECORD
	:: d_step { r != 0 && r == wrote[n] && since(l, v) && record != 0 && edition == e ->
#else
	:: d_step { r != 0 && r == wrote[n] && t != 0 && since(l, v) && record != 0 && tagged(r) && edition == e ->
#endif
		assert(record == r);
		deleteRecord(); r = 0 } -> goto standby
	:: true
	fi;
	d_step { l = 0; v = 0; r = 0; e = 0; t = 0 }
	goto withdraw
}

proctype nemesis() {
	do
	:: d_step { faults > 0 && lock != 0 -> faults--; lock = 0; foreign = 0 }		/* or its session expires */
	:: d_step { faults > 0 && names != 0 -> faults--; names = 0 }
	:: d_step { faults > 0 && record != 0 -> faults--; record = 0; edition = 0 }
	:: d_step { faults > 0 && record != 0 && tagged(record) -> faults--; deleteRecord() }	/* `understudy fence confirm` */
	:: d_step { faults > 0 && tags != 0 -> faults--; tags = 0 }
	:: d_step { faults > 0 -> faults--; version++ }
	:: d_step { faults > 0 && record != 0 -> faults--; edition++ }		/* a note, or a late signature */
	:: d_step { faults > 0 ->						/* all is deleted, and made again */
		faults--; birth++; version = 0; lock = 0; foreign = 0; names = 0; record = 0; edition = 0; tags = 0 }
	:: d_step { !copied ->
		copied = 1; oldVersion = version; oldLock = lock; oldForeign = foreign; oldNames = names; oldRecord = record;
		oldEdition = edition; oldTags = tags }
	:: d_step { faults > 0 && copied ->
		faults--; birth++; version = oldVersion; lock = oldLock; foreign = oldForeign; names = oldNames; record = oldRecord;
		edition = oldEdition; tags = oldTags }
	od
}

init {
	atomic {
		byte i;
		for (i : 0 .. NODES - 1) { run node(i) }
		run nemesis()
	}
}
