package election

import "strings"

// The words that nodes write to ZooKeeper, and that HTTP and the command line repeat. Code compares these constants, never a text.
// Another version may write other words; this one keeps and shows them, but concludes nothing from them.

// Role is a node's part in a service.
type Role string

// The roles, in the order of a term.
const (
	RoleOffline  Role = "offline"  // no session with ZooKeeper
	RoleStandby  Role = "standby"  // waits for the lock
	RoleClaiming Role = "claiming" // the lock is free: takes it
	RoleFencing  Role = "fencing"  // has the lock, and does not know yet that the previous node's program is dead
	RoleActive   Role = "active"   // the child may run
	RoleStopping Role = "stopping" // ends the child, and gives the lock back
	RoleFailed   Role = "failed"   // gave up, and backs off so that another node can try
	RolePaused   Role = "paused"   // an operator's order keeps all nodes from being promoted
	RoleUnknown  Role = "unknown"  // the node has not said it; no node writes this
)

// Roles are all roles of a node.
func Roles() []Role {
	return []Role{RoleOffline, RoleStandby, RoleClaiming, RoleFencing, RoleActive, RoleStopping, RoleFailed, RolePaused}
}

// Health is how fit a node is for its role.
type Health string

// The healths.
const (
	HealthOK       Health = "ok"
	HealthStarting Health = "starting" // its programs are about to run, or have not shown yet that they work
	HealthFailing  Health = "failing"  // its programs fail, or are not proved dead
	HealthUnfit    Health = "unfit"    // is no candidate
	HealthFailed   Health = "failed"   // gave up
	HealthUnknown  Health = "unknown"  // the node has not said it; no node writes this
)

// Reason is why an activation ended: one of the words below, then "; " and details.
type Reason string

// Why activations end.
const (
	StopAsked      Reason = "stop asked"          // the supervisor is to stop, or has the service no more
	SwitchAsked    Reason = "switchover"          // an operator wants another node to be active
	RestartAsked   Reason = "restart"             // a primary is to be started again: an operator, or the config, wants that
	StopOrdered    Reason = "stopped"             // an operator wants no node to be active
	PreferredBack  Reason = "preferred node back" // a node that is preferred is fit
	NotReachable   Reason = "not reachable"       // the primary of a replicated service, for other nodes; which follow
	ChildOnce      Reason = "program ran once"    // it was to run once, and has ended
	ChildDone      Reason = "program done"        // it has ended, and is not to run there again for now
	ChildFailed    Reason = "program failed"      // it failed too often
	OutOfMemory    Reason = "out of memory"       // the same, and the kernel killed it because memory was short
	HookFailed     Reason = "on_active failed"
	UndoFailed     Reason = "undo failed"
	LockLost       Reason = "lock lost"
	LeaseEnding    Reason = "lease ending"
	SessionExpired Reason = "session expired"
	SupervisorLost Reason = "supervisor lost" // it left no breadcrumb: its guardians proved the child dead
	Lost           Reason = "lost"            // it left its breadcrumb, and was fenced
	ReasonUnknown  Reason = "unknown"         // nobody has written it down; no node writes this
)

// LostTo is the reason that the next active node writes for a previous one that could not write its own.
func LostTo(p Proof) Reason {
	if p == NoBreadcrumb {
		return SupervisorLost + "; its program was known to be dead"
	}
	return Lost + Reason("; fenced: "+p)
}

// Word is the reason without details.
func (r Reason) Word() Reason {
	word, _, _ := strings.Cut(string(r), ";")
	return Reason(word)
}

// Planned reports whether somebody wanted that end. An unknown word counts as unplanned.
func (r Reason) Planned() bool {
	switch r.Word() {
	case StopAsked, SwitchAsked, RestartAsked, StopOrdered, PreferredBack, ChildOnce:
		return true
	}
	return false
}

// Proof is how a previous active was proved dead: the method in a few words, and after a comma the methods that failed.
type Proof string

// NoBreadcrumb is the proof if the previous active has removed its breadcrumb, or if there never was one.
const NoBreadcrumb Proof = "no breadcrumb was left"

// ProofMethods are the methods' words.
var ProofMethods = []string{"grace", "confirmed", "agent", "exec", "fence_agent", "http", "ssh"}

// Fenced reports whether the previous active had to be fenced.
func (p Proof) Fenced() bool { return p != "" && p != NoBreadcrumb }

// Confirmed reports whether an operator said that the previous active was dead.
func (p Proof) Confirmed() bool {
	return p.Method() == "confirmed" || strings.HasPrefix(p.Method(), confirmedBy)
}

// Delayed reports whether only a delay proved that the previous active was dead.
func (p Proof) Delayed() bool { return p.Method() == "grace" }

// Method is the method, without those that failed.
func (p Proof) Method() string {
	method, _, _ := strings.Cut(string(p), ",")
	return method
}

const confirmedBy = "confirmed by "

// ConfirmedBy is the proof if an operator, who is known, said that the previous active was dead.
func ConfirmedBy(who string) Proof { return confirmedBy + Proof(strings.ReplaceAll(who, ",", " ")) }

// NotEligible says that a node is never a candidate, by its config. That is no fault.
const NotEligible = "eligible: false in its config"

// NeedsRestart is a node's config fault if its config is right, but a running supervisor cannot apply those keys.
func NeedsRestart(keys string) string { return keys + " changed: restart understudy to take that up" }
