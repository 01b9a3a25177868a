package service

import (
	"sync"
	"time"

	"understudy/election"
)

// memory holds facts that outlive a term and a session of a service.
type memory struct {
	begun      bool           // it has had its first stay, if in a previous image of this process
	birth      election.Birth // of the service's folder, as last seen
	setBacks   int64          // how often ZooKeeper's data was set back before, as this node has noticed, and waited out
	known      Known
	keeper     Keeper
	place      election.CarriedCandidate // the znodes that the previous candidate could not delete
	lastTerm   lastTerm
	restarts   restarts
	unstarted  bool // the program could not be started here, for a cause of this host, when the service was given up last
	preference preference
}

// Known is what this node has seen of a service. P1: where ZooKeeper comes back with an older copy of its data, or with none, the record of
// the active node is gone, while its lease may last.
type Known struct {
	Birth election.Birth `json:"birth,omitzero"`
	Zxid  int64          `json:"zxid,omitempty"`  // the newest change of ZooKeeper's data
	Token int64          `json:"token,omitempty"` // the newest claim
	// Longest is the longest lease under the root. It is known of AllServices only.
	Longest time.Duration `json:"longest,omitempty"`
}

// AllServices is the name under which is kept what is known of the root.
const AllServices = ""

// Memory keeps what is known of a service where the next supervisor of this node finds it, until the machine boots. It may hang.
type Memory interface {
	Load(service string) Known
	Save(service string, k Known)
}

// remember takes over what an earlier supervisor knew.
func (m *memory) remember(k Known) {
	if m.birth == (election.Birth{}) {
		m.birth = k.Birth
	}
	m.known.Zxid, m.known.Token = max(m.known.Zxid, k.Zxid), max(m.known.Token, k.Token)
}

// lost reports whether ZooKeeper has lost data that this node has seen. newest is the newest claim of the service that is there, zxid the
// newest change.
func (m *memory) lost(b election.Birth, newest, zxid, setBacks int64) bool {
	if m.birth == (election.Birth{}) {
		m.birth, m.setBacks = b, setBacks
	}
	return m.birth != b || newest < m.known.Token || zxid < m.known.Zxid || setBacks > m.setBacks
}

// reborn notes that ZooKeeper has lost data, and that no earlier program can run any more. In a new folder tokens start again; in an older
// copy of the same one the next claim is newer than what is lost (see outgrow).
func (m *memory) reborn(b election.Birth, newest, zxid, setBacks int64) {
	if m.birth != b {
		newest = 0
	}
	m.birth, m.known.Token, m.known.Zxid, m.setBacks = b, newest, zxid, setBacks
}

// saw notes a claim, and the newest change of ZooKeeper's data.
func (m *memory) saw(token, zxid int64) {
	was := m.known
	m.known.Birth, m.known.Zxid, m.known.Token = m.birth, max(was.Zxid, zxid), max(was.Token, token)
	if m.known.Birth != was.Birth || m.known.Token != was.Token {
		m.keeper.Put(m.known)
	}
}

// keepPatience is how long the end of a service waits for what it has seen to be saved.
const keepPatience = 5 * time.Second

// Keeper saves the newest of what it is given, beside the goroutine that gives it: a file system may hang.
type Keeper struct {
	Save func(Known) // nil: nothing is saved

	mu   sync.Mutex // guards the fields below
	next *Known
	busy chan struct{} // closed once all is saved; nil: nothing is being saved
}

// Put returns at once.
func (k *Keeper) Put(known Known) {
	if k.Save == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = &known
	if k.busy == nil {
		k.busy = make(chan struct{})
		go k.run()
	}
}

// Finish waits until all is saved. P1: a supervisor that ends just after it has seen a claim would leave its successor without it.
func (k *Keeper) Finish() {
	k.mu.Lock()
	busy := k.busy
	k.mu.Unlock()
	if busy == nil {
		return
	}
	select {
	case <-busy:
	case <-time.After(keepPatience):
	}
}

func (k *Keeper) run() {
	for {
		k.mu.Lock()
		next := k.next
		k.next = nil
		if next == nil {
			close(k.busy)
			k.busy = nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		k.Save(*next)
	}
}

// lastTerm describes the newest term for hooks, for the other nodes, and for the log.
type lastTerm struct {
	token   int64
	fenced  string          // the proof of the previous active's death
	failure string          // why this node gave the service up
	cause   election.Reason // of the newest stop

	restarts int        // of the programs, in this term
	exit     string     // how the newest run ended that nobody had ordered to end
	exited   *time.Time // when
}

// claimed begins that of another term.
func (s *lastTerm) claimed(token int64) {
	s.token, s.failure, s.restarts, s.exit, s.exited = token, "", 0, "", nil
}

// why is the cause with the failure, which of a program or a hook gives the cause as well.
func (s *lastTerm) why() string {
	switch {
	case s.failure == "":
		return string(s.cause)
	case s.cause == election.ChildFailed, s.cause == election.ChildDone, s.cause == election.HookFailed:
		return s.failure
	}
	return string(s.cause) + ": " + s.failure
}
