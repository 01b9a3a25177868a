package zkfaults

import (
	"slices"
	"sync"
	"time"
)

// EnsembleConfig says what lies between the servers of an ensemble.
type EnsembleConfig struct {
	Size      int                  // number of servers that vote at first; 3 when zero
	Observers int                  // further ones, which do not
	SyncLimit int                  // ticks without word from the other side before a follower leaves its leader; 5 when zero
	Latency   func() time.Duration // of one message between two servers; none when nil
}

// Ensemble is several servers with one tree: a leader that numbers all changes, and followers that each have a copy. It
// behaves as the real one does where a client can tell: a follower answers reads and pings by itself, from a copy that may
// be behind, and tells its leader of its clients' signs of life only every half tick; cut off from the leader, it goes on
// like that until SyncLimit ticks are over. A change holds once a majority has it.
type Ensemble struct {
	cfg     Config
	opts    EnsembleConfig
	members []*member

	mu       *sync.Mutex // guards what follows, and all of the servers
	wires    map[[2]int]*wire
	ready    []parcel // what takes no time, in order
	running  bool     // somebody delivers it
	observed int64
	unheard  *unheard
	looking  *time.Timer
	closed   bool
}

// NewEnsemble makes an ensemble whose first server leads. Observe is told each change once, when it holds.
func NewEnsemble(cfg Config, opts EnsembleConfig) *Ensemble {
	if opts.Size <= 0 {
		opts.Size = 3
	}
	if opts.SyncLimit <= 0 {
		opts.SyncLimit = 5
	}
	e := &Ensemble{cfg: cfg, opts: opts, mu: &sync.Mutex{}, wires: map[[2]int]*wire{}}
	for n := range opts.Size + opts.Observers {
		s := newServer(cfg, e.mu)
		e.cfg = s.cfg
		m := &member{e: e, s: s, index: n}
		m.follows.m, m.requests.m = m, m
		if n >= opts.Size {
			m.part = Observer
		}
		s.member, s.first = m, e.firstToTell
		e.members = append(e.members, m)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgetAll()
	e.members[0].takeLead(e.members[1:])
	return e
}

// firstToTell tells whether no server has told of a transaction: each carries it out, the leader first.
func (e *Ensemble) firstToTell(zxid int64) bool {
	first := zxid > e.observed
	e.observed = max(e.observed, zxid)
	return first
}

// forgetAll gives all servers the same empty database.
func (e *Ensemble) forgetAll() {
	first := newDatabase(e.cfg.TickTime)
	if old := e.members[0].s.db; old != nil {
		first.sessions.nextID = max(first.sessions.nextID, old.sessions.nextID)
	}
	for _, m := range e.members {
		m.s.db = newDatabase(e.cfg.TickTime)
		m.s.db.sessions.nextID = first.sessions.nextID
		m.log, m.lead, m.epoch = history{}, leadership{m: m}, 0
	}
	e.observed = 0
}

// Server is one of the servers, for its clients and for faults.
func (e *Ensemble) Server(n int) *Server { return e.members[n].s }

// Leader is the number of the server that leads a majority, or -1.
func (e *Ensemble) Leader() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.members {
		if m.role == leading && m.lead.hasQuorum() {
			return m.index
		}
	}
	return -1
}

// Cut lets no message pass from one server to another; messages on their way arrive when the cut is healed, unless the two
// have parted by then. The function returned heals it.
func (e *Ensemble) Cut(from, to int) (heal func()) {
	return e.alter(from, to, func(w *wire, sign int) { w.cut += sign })
}

// Isolate cuts a server off from all the others, both ways. Its clients still reach it.
func (e *Ensemble) Isolate(n int) (heal func()) {
	set := func(sign int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.members[n].isolate(sign)
	}
	set(1)
	return func() { set(-1) }
}

// Slow makes each message from one server to another take that much longer.
func (e *Ensemble) Slow(from, to int, d time.Duration) (end func()) {
	return e.alter(from, to, func(w *wire, sign int) { w.slow += time.Duration(sign) * d })
}

func (e *Ensemble) alter(from, to int, f func(w *wire, sign int)) (undo func()) {
	change := func(sign int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		w := e.wire(from, to)
		f(w, sign)
		w.pump()
	}
	change(1)
	return func() { change(-1) }
}

// Wipe is the loss of all data on all servers, which all restart.
func (e *Ensemble) Wipe() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.members {
		m.leave(m.role == down)
	}
	e.forgetAll()
	e.lookSoon()
}

// Close ends all servers.
func (e *Ensemble) Close() error {
	e.mu.Lock()
	e.closed = true
	if e.looking != nil {
		e.looking.Stop()
	}
	for _, w := range e.wires {
		w.queue = nil
		if w.timer != nil {
			w.timer.Stop()
		}
	}
	e.mu.Unlock()
	for _, m := range e.members {
		if err := m.s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// wire carries messages from one server to another, in order. None is delivered while it is being sent.
type wire struct {
	e     *Ensemble
	cut   int
	slow  time.Duration
	queue []parcel
	timer *time.Timer
	armed bool
}

type parcel struct {
	due time.Time
	do  func()
}

func (e *Ensemble) wire(from, to int) *wire {
	key := [2]int{from, to}
	if e.wires[key] == nil {
		e.wires[key] = &wire{e: e}
	}
	return e.wires[key]
}

// send has do happen at the other server. A message between two that have parted is dropped.
func (m *member) send(to *member, do func()) {
	if to.leader != m && !slices.Contains(to.lead.followers, m) {
		return // the other one has left, which m may not have learned yet
	}
	w := m.e.wire(m.index, to.index)
	mine, theirs := m.term, to.term
	delay := w.slow
	if m.e.opts.Latency != nil {
		delay += m.e.opts.Latency()
	}
	p := parcel{do: func() {
		if m.term == mine && to.term == theirs {
			do()
		}
	}}
	if delay == 0 && len(w.queue) == 0 && w.cut == 0 {
		m.e.atOnce(p)
		return
	}
	p.due = time.Now().Add(delay)
	if n := len(w.queue); n > 0 && w.queue[n-1].due.After(p.due) {
		p.due = w.queue[n-1].due
	}
	w.queue = append(w.queue, p)
	w.pump()
}

// atOnce delivers a message that takes no time, after its sender has gone on.
func (e *Ensemble) atOnce(p parcel) {
	e.ready = append(e.ready, p)
	if e.running {
		return
	}
	e.running = true
	time.AfterFunc(0, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for n := 0; n < len(e.ready) && !e.closed; n++ {
			e.ready[n].do()
		}
		clear(e.ready)
		e.ready, e.running = e.ready[:0], false
	})
}

// pump makes sure that messages are delivered when they are due.
func (w *wire) pump() {
	if w.armed || w.cut > 0 || len(w.queue) == 0 || w.e.closed {
		return
	}
	w.armed = true
	wait := time.Until(w.queue[0].due)
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.deliver)
	} else {
		w.timer.Reset(wait)
	}
}

func (w *wire) deliver() {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.armed = false
	for len(w.queue) > 0 && w.cut == 0 && !w.e.closed && !w.queue[0].due.After(time.Now()) {
		p := w.queue[0]
		w.queue = w.queue[1:]
		p.do()
	}
	w.pump()
}
