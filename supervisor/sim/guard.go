package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/supervisor"
	"understudy/supervisor/child"

	"understudy/supervisor/guard"
)

const (
	heedEvery = 2 * time.Second
	ackLimit  = time.Second
	twinGrace = time.Second
)

var errUnknownEpoch = errors.New("no such epoch")

// keeper is what a supervisor process knows of its guardians; it behaves as child.Guard does. World.mu guards it.
type keeper struct {
	w       *world
	inc     *incarnation
	seats   [2]*guardian
	seq     uint64
	nacks   map[uint64]error
	changed chan struct{} // closed at each change; nil: nobody waits for one
	epochs  map[uint64]*epoch
	trees   uint64
	fallen  chan *guardian
	stopped chan struct{}
	dog     *device       // nil: it is not armed
	dogs    chan struct{} // held by who opens or closes it
	stray   chan struct{} // holds one when it may be needed by nobody
}

// epoch is one lease as the supervisor sees it.
type epoch struct {
	number   uint64
	ticket   []byte
	session  int64
	deadline time.Duration
	fits     *child.Watchdog
	trees    map[uint64]*handle
	cause    error
	done     chan struct{}
}

func newGuard(ctx context.Context, inc *incarnation) (*keeper, error) {
	w := inc.node.w
	g := &keeper{
		w: w, inc: inc, nacks: map[uint64]error{}, epochs: map[uint64]*epoch{}, seq: 1,
		fallen: make(chan *guardian, 64), stopped: make(chan struct{}), dogs: make(chan struct{}, 1), stray: make(chan struct{}, 1),
	}
	if !w.sleep(ctx, w.draw(inc.node.host.rng, 5*time.Millisecond)) || !inc.pass() {
		return nil, errCrashed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !inc.alive() {
		return nil, errCrashed
	}
	for n := range g.seats {
		g.seats[n] = newGuardian(g, n)
		g.seats[n].live = true
	}
	g.introduce()
	inc.guard = g
	return g, nil
}

func (g *keeper) introduce() {
	a, b := g.seats[0], g.seats[1]
	if a != nil && b != nil {
		a.deliver(&guard.Message{Op: guard.OpTwin, Along: b})
		b.deliver(&guard.Message{Op: guard.OpTwin, Along: a})
	}
	g.news()
}

func (g *keeper) news() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// change is closed at the next change. World.mu is held.
func (g *keeper) change() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// Run implements supervisor.Guard.
func (g *keeper) Run(ctx context.Context) error {
	g.w.wait.Go(func() { g.keepKennel(ctx) })
	heed := time.NewTicker(heedEvery)
	defer heed.Stop()
	for {
		select {
		case <-ctx.Done():
			return g.stop(context.WithoutCancel(ctx))
		case s := <-g.fallen:
			if g.inc.pass() {
				g.replace(ctx, s)
			}
		case <-heed.C:
			if g.inc.pass() {
				g.demandHeed()
			}
			heed.Reset(heedEvery) // a question is a whole period old before its answer counts as missing
		}
	}
}

func (g *keeper) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !g.inc.pass() {
		return nil
	}
	g.w.mu.Lock()
	var all []*handle
	for _, e := range g.inOrder() {
		g.over(e.number, child.ErrStopped)
		for _, t := range e.inOrder() {
			t.strike()
			all = append(all, t)
		}
	}
	g.w.mu.Unlock()
	var errs []error
	for _, t := range all {
		errs = append(errs, t.End(ctx))
	}
	g.disarm(ctx)
	close(g.stopped)
	if g.inc.pass() {
		g.w.mu.Lock()
		for _, s := range g.seats {
			if s != nil {
				s.orphan()
			}
		}
		g.w.mu.Unlock()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the guard: %w", err)
	}
	return nil
}

// replace puts a new guardian in the place of one that is gone.
func (g *keeper) replace(ctx context.Context, gone *guardian) {
	g.w.mu.Lock()
	if g.seats[gone.index] != gone {
		g.w.mu.Unlock()
		return
	}
	g.seats[gone.index] = nil
	twin := g.seats[1-gone.index]
	gone.die()
	g.w.mu.Unlock()
	if twin != nil && !twin.gone() && g.seat(ctx, gone.index) == nil && !twin.gone() {
		g.w.mu.Lock()
		g.introduce()
		g.w.mu.Unlock()
		return
	}
	if g.inc.pass() {
		g.bothLost(ctx)
	}
}

// seat starts a guardian that is told all that there is.
func (g *keeper) seat(ctx context.Context, index int) error {
	if !g.w.sleep(ctx, 5*time.Millisecond+g.w.draw(g.inc.node.host.rng, 20*time.Millisecond)) || !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	if !g.inc.alive() {
		g.w.mu.Unlock()
		return errCrashed
	}
	s := newGuardian(g, index)
	g.seats[index] = s
	for _, m := range g.replay() {
		s.deliver(m)
	}
	s.live = true
	g.seq++
	seq := g.seq
	s.deliver(&guard.Message{Op: guard.OpPing, Seq: seq})
	g.w.mu.Unlock()
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	for {
		g.w.mu.Lock()
		done, gone, changed := s.acked >= seq, s.dead, g.change()
		if !done && gone && g.seats[index] == s {
			g.seats[index] = nil
		}
		g.w.mu.Unlock()
		switch {
		case done:
			return nil
		case gone:
			return errors.New("it died")
		}
		select {
		case <-changed:
		case <-patience.C:
			g.w.mu.Lock()
			s.die()
			g.w.mu.Unlock()
		}
	}
}

// bothLost starts over: a supervisor alone cannot keep P4.
func (g *keeper) bothLost(ctx context.Context) {
	g.w.mu.Lock()
	g.w.say("%s: guardians lost, ending all trees", g.inc.node.name)
	for _, e := range g.inOrder() {
		g.over(e.number, child.ErrGuardiansLost)
		for _, t := range e.inOrder() {
			t.strike()
		}
	}
	for n, s := range g.seats {
		if s != nil {
			s.die()
		}
		g.seats[n] = nil
	}
	g.w.mu.Unlock()
	for ctx.Err() == nil && g.inc.pass() {
		if g.seat(ctx, 0) == nil && g.seat(ctx, 1) == nil {
			g.w.mu.Lock()
			g.introduce()
			g.w.mu.Unlock()
			return
		}
		g.w.mu.Lock()
		for n, s := range g.seats {
			if s != nil {
				s.die()
			}
			g.seats[n] = nil
		}
		g.w.mu.Unlock()
		if !g.w.sleep(ctx, 50*time.Millisecond) {
			return
		}
	}
}

// replay is everything a new guardian has to know.
func (g *keeper) replay() []*guard.Message {
	var all []*guard.Message
	if g.dog != nil {
		all = append(all, &guard.Message{Op: guard.OpWatchdog, Grace: g.dog.timeout, Along: g.dog})
	}
	for _, e := range g.inOrder() {
		begin := &guard.Message{Op: guard.OpBegin, Epoch: e.number, Ticket: e.ticket}
		if errors.Is(e.cause, child.ErrGuardiansLost) {
			begin.Ticket = nil
		}
		if e.cause != nil {
			begin.Deadline, begin.OK = e.deadline, true
		}
		all = append(all, begin)
		if e.deadline > 0 && e.cause == nil {
			all = append(all, &guard.Message{Op: guard.OpExtend, Epoch: e.number, Deadline: e.deadline})
		}
		for _, t := range e.inOrder() {
			all = append(all, t.registration())
			if t.armed {
				all = append(all, t.arming())
			}
		}
		if e.cause != nil {
			all = append(all, &guard.Message{Op: guard.OpEnd, Epoch: e.number, Why: e.cause.Error()})
		}
	}
	return all
}

func (g *keeper) demandHeed() {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if len(g.epochs) == 0 {
		return
	}
	for _, s := range g.seats {
		if s == nil || !s.live {
			continue
		}
		if s.heed > s.acked {
			g.w.say("%s: guardian %d does not answer, the supervisor kills it", g.inc.node.name, s.index+1)
			s.die()
			continue
		}
		g.seq++
		s.heed = g.seq
		s.deliver(&guard.Message{Op: guard.OpPing, Seq: g.seq})
	}
}

// hear takes in what a guardian says. World.mu is held.
func (g *keeper) hear(s *guardian, m *guard.Message) {
	switch m.Op {
	case guard.OpNack:
		if m.Seq > 0 {
			g.nacks[m.Seq] = m.Err()
		}
		fallthrough
	case guard.OpAck:
		s.acked = max(s.acked, m.Seq)
		g.news()
	case guard.OpEnded:
		g.over(m.Epoch, child.ErrLeaseEnded)
	}
}

// lost is the kernel's word that a guardian is gone. World.mu is held.
func (g *keeper) lost(s *guardian) {
	g.fallen <- s
	g.news()
}

func (g *keeper) over(number uint64, cause error) {
	if e := g.epochs[number]; e != nil && e.cause == nil {
		e.cause = cause
		close(e.done)
		g.news()
	}
}

// Live says whether anything may still be done under the epoch. World.mu is held.
func (g *keeper) live(e *epoch) error {
	if e.cause == nil && e.deadline > 0 && g.inc.node.host.now() >= e.deadline {
		g.over(e.number, child.ErrLeaseEnded)
	}
	return e.cause
}

func (g *keeper) inOrder() (all []*epoch) {
	for _, number := range slices.Sorted(maps.Keys(g.epochs)) {
		all = append(all, g.epochs[number])
	}
	return all
}

func (e *epoch) inOrder() (all []*handle) {
	for _, number := range slices.Sorted(maps.Keys(e.trees)) {
		all = append(all, e.trees[number])
	}
	return all
}

func (g *keeper) broadcast(m *guard.Message) {
	for _, s := range slices.Clone(g.seats[:]) {
		if s != nil {
			s.deliver(m)
		}
	}
}

var _ supervisor.Guard = (*keeper)(nil)
