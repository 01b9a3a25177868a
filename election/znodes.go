package election

import (
	"encoding/json"
	"path"
	"strings"
	"time"
)

// Paths names a service's znodes.
type Paths struct{ Root, Service string }

// Names of the znodes below a service.
const (
	lockName    = "ActiveStandbyElectorLock"
	crumbName   = "ActiveBreadCrumb"
	membersName = "members"
	queueName   = "queue"
	historyName = "history"
	controlName = "control"
	preferName  = "preferred"
	copiesName  = "copies"
	knownName   = "known"

	claimPrefix  = "claim-"
	recordPrefix = "record-"
)

// Dir is the service's own folder; everything of the service lives below it.
func (p Paths) Dir() string { return path.Join(p.Root, "services", p.Service) }

// Lock is the ephemeral that says who is active.
func (p Paths) Lock() string { return path.Join(p.Dir(), lockName) }

// Crumb is the persistent breadcrumb.
func (p Paths) Crumb() string { return path.Join(p.Dir(), crumbName) }

// Members holds an ephemeral for each candidate.
func (p Paths) Members() string { return path.Join(p.Dir(), membersName) }

// Queue holds the candidates in order.
func (p Paths) Queue() string { return path.Join(p.Dir(), queueName) }

// History holds the last activations.
func (p Paths) History() string { return path.Join(p.Dir(), historyName) }

// Control holds the orders of operators.
func (p Paths) Control() string { return path.Join(p.Dir(), controlName) }

// Preferred holds an ephemeral for each candidate that has a priority and could run the service.
func (p Paths) Preferred() string { return path.Join(p.Dir(), preferName) }

// Copies says which promotion of a replicated service was the newest, and holds an ephemeral for each node that tells of its copy.
func (p Paths) Copies() string { return path.Join(p.Dir(), copiesName) }

// Known holds a znode for each node that ever had a copy of a replicated service, until an operator has it forgotten.
func (p Paths) Known() string { return path.Join(p.Dir(), knownName) }

// Release names the lock and the breadcrumb of a child that may be running.
func (p Paths) Release() Release { return Release{Dir: p.Dir(), Lock: p.Lock(), Crumb: p.Crumb()} }

// NodesDir holds an ephemeral for each supervisor.
func NodesDir(root string) string { return path.Join(root, "nodes") }

// ServicesDir holds a folder for each service.
func ServicesDir(root string) string { return path.Join(root, "services") }

// Notices says what people have been told of all services, and Notifier belongs to the session of the node that tells them.
func Notices(root string) string { return path.Join(root, "notices") }

// Notifier is an ephemeral with the node's name.
func Notifier(root string) string { return path.Join(root, "notifier") }

// Rolled says how far a command has come that runs on one node after the other, and Rolling belongs to whoever has it run.
func Rolled(root string) string { return path.Join(root, "roll") }

// Rolling is an ephemeral with the operator's name.
func Rolling(root string) string { return path.Join(root, "rolling") }

// Node describes a supervisor, in nodes/<node>.
type Node struct {
	Node    string `json:"node"`
	Host    string `json:"host"`
	Pid     int    `json:"pid"`
	Version string `json:"version,omitempty"`
	Machine string `json:"machine,omitempty"`
	Boot    string `json:"boot,omitempty"`
	Contain string `json:"contain,omitempty"`
	Config  string `json:"config,omitempty"`        // the file
	Sum     string `json:"config_sum,omitempty"`    // of the file's content, and of all that it includes
	Fault   string `json:"config_fault,omitempty"`  // why its changed config is not taken up
	Restart bool   `json:"needs_restart,omitempty"` // a restart is all that its config needs
	// Untold is why it cannot tell people what happens (notify).
	Untold string `json:"notify_fault,omitempty"`
	// Unserved is why it serves no HTTP, though its config has an address, which is in it.
	Unserved string `json:"http_fault,omitempty"`
	// Warnings are dangerous settings there, as Bounded leaves them.
	Warnings []string `json:"warnings,omitempty"`
	// LeaseMs is how long after the sending of an acknowledged heartbeat its programs may run.
	LeaseMs int64     `json:"lease_ms,omitempty"`
	Since   time.Time `json:"since"`
	// Sent is when the newest heartbeat was, by its own clock.
	Sent time.Time `json:"sent,omitzero"`
	// Replaced is the last beat of another session under this name, which this one has deleted.
	Replaced *LastBeat `json:"replaced,omitempty"`
	// Copies says, by service, how far this node's copies are.
	Copies map[string]At `json:"copies,omitempty"`
}

// LastBeat says which heartbeat of a session was its last one.
type LastBeat struct {
	Session string `json:"session"`
	Version int32  `json:"version"`
}

// Lock is the data of the lock: who is active.
type Lock struct {
	Node  string    `json:"node"`
	Host  string    `json:"host"`
	Pid   int       `json:"pid"`
	Since time.Time `json:"since"`
	Token int64     `json:"token,omitempty"` // of the activation, if its lock was taken again; absent: the lock's own czxid
}

// Member is a candidate's own view of itself.
type Member struct {
	Node   string    `json:"node"`
	Host   string    `json:"host"`
	Role   Role      `json:"role"`
	Health Health    `json:"health"`
	Why    string    `json:"why,omitempty"`
	Cause  Reason    `json:"cause,omitempty"`  // of its failure, of a member that failed
	Never  bool      `json:"never,omitempty"`  // by its own config it is no candidate
	Status string    `json:"status,omitempty"` // the child's own words
	Since  time.Time `json:"since"`
	// Machine and Agent say where to ask it for a promise.
	Machine string `json:"machine,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Token   int64  `json:"token,omitempty"` // of the activation that an active member speaks of
	Spread  string `json:"spread,omitempty"`
	Warm    bool   `json:"warm,omitempty"` // its program stands by, and can be ordered something there
	Logs    bool   `json:"logs,omitempty"` // its programs' output is in files, as far as any of it is
	// Unlogged is why its programs' output is lost, and where.
	Unlogged string `json:"log_fault,omitempty"`
	// Restarts counts the programs' starts after the first of this activation. Exit and Exited are how and when the run before ended.
	Restarts int        `json:"restarts,omitempty"`
	Exit     string     `json:"last_exit,omitempty"`
	Exited   *time.Time `json:"last_exit_at,omitempty"`
	Retry    *time.Time `json:"retry,omitempty"` // when a node that failed tries again
	// Demoted says why the node is not preferred although its config prefers it.
	Demoted *Demotion `json:"demoted,omitempty"`
}

// Activation is one entry of the history.
type Activation struct {
	Node      string     `json:"node"`
	Token     int64      `json:"token"`
	Start     time.Time  `json:"start"`                // when it took the lock
	Started   *time.Time `json:"started,omitempty"`    // when its programs were started; nil: not yet
	Ready     *time.Time `json:"ready,omitempty"`      // when they were ready for the first time; nil: never yet
	HookMs    int64      `json:"hook_ms,omitempty"`    // how much of the time from Started to Ready on_active took
	Restarts  int        `json:"restarts,omitempty"`   // how often they were ready again after that
	DownMs    int64      `json:"down_ms,omitempty"`    // how long they were down between Ready and End
	DownSince *time.Time `json:"down_since,omitempty"` // they are down, and were not ready since
	End       *time.Time `json:"end,omitempty"`        // when the last process was proved dead
	// EndMin and EndMax bound that, if the node did not write it itself.
	EndMin *time.Time `json:"end_min,omitempty"`
	EndMax *time.Time `json:"end_max,omitempty"`
	Reason Reason     `json:"reason,omitempty"`
	Exit   string     `json:"exit,omitempty"`   // how the program ended that was to run once
	Fenced Proof      `json:"fenced,omitempty"` // how the previous active was known to be dead
	// FenceMs is how long fencing took: the child starts so long after Start.
	FenceMs int64  `json:"fence_ms,omitempty"`
	Entry   string `json:"-"` // where it is written
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own plain structs come here
	}
	return b
}

func decode[T any](data []byte) (T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}

// merge writes a value over an object: keys that only other versions know stay, and the named keys go unless the value has them.
// An old value that is no object is replaced.
func merge(old []byte, value any, named ...string) []byte {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(old, &all) != nil {
		all = map[string]json.RawMessage{}
	}
	for _, key := range named {
		delete(all, key)
	}
	if err := json.Unmarshal(encode(value), &all); err != nil {
		panic(err) // it is our own
	}
	return encode(all)
}

// Has reports whether a znode below the service's folder, or the folder, is one of the service's.
func (p Paths) Has(znode string) bool {
	name, below, _ := strings.Cut(strings.TrimPrefix(znode, p.Dir()+"/"), "/")
	switch name {
	case membersName, queueName, historyName, preferName, copiesName, knownName:
		return !strings.Contains(below, "/")
	case lockName, crumbName, controlName:
		return below == ""
	}
	return znode == p.Dir() || below == "" && (strings.HasPrefix(name, claimPrefix) || strings.HasPrefix(name, recordPrefix))
}
