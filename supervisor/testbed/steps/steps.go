// Package steps accepts what happens in ZooKeeper, and with the programs of a service, if each of it is a step of docs/model: of
// failover.pml, of succession.pml where a lock is vacated, of names.pml where a transaction has to check a name, and of failsafe.pml
// where a lock is taken again. It is given each transaction that was committed, as the simulation's servers tell them and as the logs of
// real ones have them, and each start and end of a program, in their order. So the product need not tell anything, and a step that it would
// not tell of is seen as well.
//
// A transaction has to check what makes it a step, even where all went well without that: a guard that is missing is seen at once, and not
// only when it would have been needed.
//
// Not seen is whatever only a node knows: its clock, what it has read, what it sent and was not carried out, and its fencing, of which only
// the consequence shows, which is that nothing runs of a record that is written over.
package steps

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// Kind is what an operation does.
type Kind int

// The kinds.
const (
	Create Kind = iota
	Set
	Delete
	Check
)

// Op is an operation of a transaction.
type Op struct {
	Kind Kind
	Path string
	Data []byte
}

// Txn is a transaction that was committed, or the end of a session.
type Txn struct {
	Zxid    int64
	At      time.Time
	Session int64
	Ended   bool // the session has
	Expired bool // because nothing was heard of it
	ByHand  bool // an operator does as he likes, or a stranger: it is no step, and what follows from it is
	Ops     []Op
}

// Program is one that runs in an activation.
type Program struct {
	ID            any
	Service, Node string
	Token         int64
}

func (p Program) String() string {
	return fmt.Sprintf("a program of %s on %s with token %d", p.Service, p.Node, p.Token)
}

// Acceptor knows what is there below a root.
type Acceptor struct {
	root     string
	services map[string]*service
	beats    map[string]int64 // which session's nodes/<node> is there
	sessions map[int64]*session
	claimed  map[int64]string // by the token of each lock: the service
	// Spared reports whether a program may be alive whatever the steps say, as one that the kernel holds. nil: none may.
	Spared func(Program) bool
}

// session is a supervisor's.
type session struct {
	node     string
	lease    time.Duration
	moved    time.Time // its newest heartbeat, or when its beat was deleted by another session
	stranger bool
}

// New accepts from the beginning of what is there.
func New(root string) *Acceptor {
	return &Acceptor{
		root: root, services: map[string]*service{}, beats: map[string]int64{}, sessions: map[int64]*session{}, claimed: map[int64]string{},
	}
}

// Meddled says that a stranger may end a session, whose lease lasts.
func (a *Acceptor) Meddled(id int64) { a.session(id).stranger = true }

// ServiceOf is the service of a lock with this token; "": there was no such lock.
func (a *Acceptor) ServiceOf(token int64) string { return a.claimed[token] }

// Claims is how many locks there were.
func (a *Acceptor) Claims() int { return len(a.claimed) }

// supervises reports whether a session is, or was, a supervisor's.
func (a *Acceptor) supervises(id int64) bool {
	return a.sessions[id] != nil && a.sessions[id].node != ""
}

func (a *Acceptor) session(id int64) *session {
	if a.sessions[id] == nil {
		a.sessions[id] = &session{}
	}
	return a.sessions[id]
}

func (a *Acceptor) service(name string) *service {
	if a.services[name] == nil {
		a.services[name] = &service{
			Acceptor: a, paths: election.Paths{Root: a.root, Service: name}, claims: map[string]bool{}, used: map[string]bool{},
			alive: map[any]Program{}, sworn: map[int64]bool{}, taken: map[int64]bool{},
		}
	}
	return a.services[name]
}

// Commit takes a transaction, and says why it is no step.
func (a *Acceptor) Commit(t Txn) error {
	if t.Ended {
		return a.ended(t)
	}
	checks, of := map[string]bool{}, map[string]*change{}
	for _, op := range t.Ops {
		if op.Kind == Check {
			checks[op.Path] = true
		}
		if node, ok := strings.CutPrefix(op.Path, election.NodesDir(a.root)+"/"); ok {
			a.beat(t, op, node)
		}
		if rest, ok := strings.CutPrefix(op.Path, election.ServicesDir(a.root)+"/"); ok && op.Kind != Check {
			name, what, _ := strings.Cut(rest, "/")
			if of[name] == nil {
				of[name] = &change{Txn: t, checks: checks}
			}
			of[name].add(op, what)
		}
	}
	var all []error
	for _, name := range slices.Sorted(maps.Keys(of)) {
		s := a.service(name)
		step, err := s.judge(of[name])
		if err != nil && !t.ByHand && (a.supervises(t.Session) || len(checks) > 0) { // else it is by hand
			by := election.SessionName(t.Session)
			all = append(all, fmt.Errorf("transaction %#x of session %s is no step: %s: %w", t.Zxid, by, step, err))
		}
		s.apply(of[name])
	}
	return errors.Join(all...)
}

// beat notes a heartbeat, or which session a node has.
func (a *Acceptor) beat(t Txn, op Op, node string) {
	var n election.Node
	_ = json.Unmarshal(op.Data, &n) // else it gives no lease
	switch was := a.beats[node]; {
	case op.Kind == Delete:
		if was != 0 && !slices.ContainsFunc(t.Ops, func(o Op) bool { return o.Kind == Create && o.Path == op.Path }) {
			a.session(was).moved = t.At // else it stands still as before: the next session of the node says how it was
		}
		delete(a.beats, node)
	case op.Kind == Create:
		a.beats[node] = t.Session
		s := a.session(t.Session)
		s.node, s.moved, s.lease = node, t.At, max(s.lease, time.Duration(n.LeaseMs)*time.Millisecond)
	case op.Kind == Set && was != 0:
		s := a.session(was)
		s.moved, s.lease = t.At, max(s.lease, time.Duration(n.LeaseMs)*time.Millisecond)
	}
}

// ended is the step of the servers, of a node's guardians, or of a stranger, which ends a session with its locks.
func (a *Acceptor) ended(t Txn) error {
	var all []error
	s := a.session(t.Session)
	for _, name := range slices.Sorted(maps.Keys(a.services)) {
		v := a.services[name]
		if v.lock == nil || v.lock.owner != t.Session {
			continue
		}
		step := "close (overSession of the guardians)"
		if t.Expired {
			step = "expiry (P3)"
		}
		if p, lives := v.lives(v.lock.token); lives && !s.stranger && !t.ByHand && !v.outlasts() {
			all = append(all, fmt.Errorf("the end of session %s is no step: %s: %v is alive", election.SessionName(t.Session), step, p))
		}
		v.taken[v.lock.token], v.lock = true, nil
	}
	if a.beats[s.node] == t.Session {
		delete(a.beats, s.node)
		s.moved = t.At
	}
	return errors.Join(all...)
}

// Start takes the start of a program.
func (a *Acceptor) Start(p Program) error {
	s := a.service(p.Service)
	defer func() { s.alive[p.ID] = p }()
	if s.sworn[p.Token] {
		return nil
	}
	newest := s.newest
	s.newest = max(newest, p.Token)
	for _, other := range s.alive {
		if (other.Token != p.Token || other.Node != p.Node) && !s.sworn[other.Token] && !a.spared(other) {
			return fmt.Errorf("no step: start (FORK, P1): %v starts, and %v is alive", p, other)
		}
	}
	named := s.record != nil && s.record.Node == p.Node && (s.record.token() == p.Token || s.unsigned() && s.lock.token == p.Token)
	switch {
	case p.Token < newest:
		return fmt.Errorf("no step: start (FORK, ORDER): %v starts after token %d", p, newest)
	case !named:
		return fmt.Errorf("no step: start (FORK, P5): %v starts, and the record is %v", p, s.record)
	case !s.taken[p.Token] && (s.lock == nil || s.lock.token != p.Token):
		return fmt.Errorf("no step: start (FORK): %v starts, and the lock is %v", p, s.lock)
	}
	return nil
}

// End takes the end of a program.
func (a *Acceptor) End(p Program) { delete(a.service(p.Service).alive, p.ID) }

// Lost says that the data is lost or set back: what is there now follows by transactions, which are not judged, and tokens begin anew.
func (a *Acceptor) Lost() {
	clear(a.beats)
	for _, s := range a.services {
		for _, p := range s.alive {
			s.sworn[p.Token] = true
		}
		s.sworn[s.newest] = true // it may start again, under a lease of before
		if s.lock != nil {
			s.sworn[s.lock.token] = true
		}
		s.lock, s.record, s.newest = nil, nil, 0
		clear(s.claims)
		clear(s.used)
	}
}

func (a *Acceptor) spared(p Program) bool { return a.Spared != nil && a.Spared(p) }

// lock is a lock that is there.
type lock struct {
	node  string
	owner int64
	token int64 // of its activation: its own czxid, unless it was taken again
	found bool  // its data was set back: whoever has it may know nothing of a record
}

// record is the record of the active node.
type record struct {
	election.BreadCrumb
	czxid int64
}

func (r *record) token() int64 { return cmp.Or(r.Token, r.czxid) }

func (r *record) String() string {
	if r == nil {
		return "not there"
	}
	return fmt.Sprintf("that of %s, session %s, token %d", r.Node, r.Session, r.token())
}

func (l *lock) String() string {
	if l == nil {
		return "not there"
	}
	return fmt.Sprintf("that of %s, session %s, token %d", l.node, election.SessionName(l.owner), l.token)
}
