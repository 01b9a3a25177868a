package sim

// reachable is every pair of a role and an event that a supervisor of the simulation can come to, and what follows. Of what
// supervisor.step knows, these are not in it:
//
//   - active + program ran once: no program of the simulation is to run once.
//   - fencing, active + session over: a term ends in order whatever ends it, so it is in stopping by then.
//   - offline + session over: the role stays what it is.
//   - stopping + tree dead: the role stays what it is; lock released follows, or session over when that fails.
//
// Every other pair is stale by the machine's own word, and changes nothing.
var reachable = []Pair{
	{"offline", "session opened", "standby"},
	{"offline", "session opened", "failed"},
	{"standby", "service paused", "paused"},
	{"paused", "service resumed", "standby"},
	{"standby", "lock free", "claiming"},
	{"claiming", "lock taken", "standby"},
	{"claiming", "lock won", "fencing"},
	{"fencing", "no other node runs it", "active"},
	{"fencing", "the previous node's program may be alive", "stopping"},
	{"fencing", "another copy may be newer", "stopping"},
	{"fencing", "watchdog not armed", "stopping"},
	{"fencing", "lock lost", "stopping"},
	{"fencing", "lease ending", "stopping"},
	{"fencing", "session expired", "stopping"},
	{"fencing", "service paused", "stopping"},
	{"fencing", "stop asked", "stopping"},
	{"active", "program done", "stopping"},
	{"active", "program failed", "stopping"},
	{"active", "on_active failed", "stopping"},
	{"active", "undo failed", "stopping"},
	{"active", "preferred node back", "stopping"},
	{"active", "switchover", "stopping"},
	{"active", "stopped", "stopping"},
	{"active", "not reachable", "stopping"},
	{"active", "lock lost", "stopping"},
	{"active", "lease ending", "stopping"},
	{"active", "session expired", "stopping"},
	{"active", "stop asked", "stopping"},
	{"active", "given to the next version", "offline"},
	{"offline", "taken over", "active"},
	{"stopping", "tree may be alive", "stopping"},
	{"stopping", "lock released", "standby"},
	{"stopping", "lock released", "failed"},
	{"stopping", "lock released", "offline"},
	{"failed", "waited after a failure", "standby"},
	{"standby", "session over", "offline"},
	{"paused", "session over", "offline"},
	{"claiming", "session over", "standby"},
	{"stopping", "session over", "offline"},
	{"failed", "session over", "offline"},
}

// rare is what can be seen as well, but not in every few thousand hours.
var rare = []Pair{
	{"claiming", "claim failed", "standby"},      // the answer to the taking of the lock is lost, and the tree made for it ended on another's word
	{"fencing", "copy not promoted", "stopping"}, // its program ended, or its disk is full
	{"standby", prepareCommand, "standby"},
	{"active", demoteCommand, "stopping"},
	{"active", copiesCommand, "active"},
	{"standby", recloneCommand, "standby"},
	{"failed", "what an older copy records is confirmed dead", "standby"}, // an operator's
	{"standby", "any copy may be promoted", "standby"},                    // an operator's: a primary died before its followers were known to have its data
}
