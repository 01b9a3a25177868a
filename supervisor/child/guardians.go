package child

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/guard"
)

// guardians are the two guardian processes, and this process's knowledge of them.
type guardians struct {
	start   starting
	log     hclog.Logger
	words   words
	tasks   sync.WaitGroup // all goroutines that the stop waits for
	stopped chan struct{}
	bell    chan struct{} // capacity 1: something is due sooner

	mu       sync.Mutex // guards the fields below; after a change of pair, release it by unlock
	pair     *guard.Pair
	at       [2]*guardianProcess
	gone     [2]*guardianProcess // the former ones
	due      time.Duration
	later    []func() // orders to kill, for the end of a change
	ordering bool     // a goroutine gives these orders; only one does at a time
}

// starting starts a guardian.
type starting struct {
	exe, args0, name string
	grace            time.Duration
}

func newGuardians(cfg GuardConfig) *guardians {
	g := &guardians{
		start: starting{cfg.Exe, cfg.Args0, cfg.Name, cfg.TwinGrace}, log: cfg.Logger,
		words: newWords(), stopped: make(chan struct{}), bell: make(chan struct{}, 1),
	}
	g.pair = guard.NewPair(pairHands{g})
	return g
}

// keep does the due work, and ends with stop, which it begins when ctx ends.
func (g *guardians) keep(ctx context.Context, stop func() error) error {
	for i, s := range g.at {
		g.attend(i, s)
	}
	stopping, over := ctx.Done(), make(chan error, 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stopping: // in parallel: its questions need this loop for their time-outs
			stopping = nil
			go func() { over <- stop() }()
			continue
		case err := <-over:
			return err
		case <-g.bell:
		case <-timer.C:
		}
		g.mu.Lock()
		if g.due = g.pair.Due(Now()); g.due > 0 {
			timer.Reset(max(g.due-Now(), 0))
		}
		g.unlock()
	}
}

// hangUp lets the guardians go. They kill the processes that this one has left behind.
func (g *guardians) hangUp() {
	close(g.stopped)
	g.mu.Lock()
	all := g.at
	g.mu.Unlock()
	for _, s := range all {
		if s != nil {
			_ = s.link.file.Close() // P4: to the guardian, this is the supervisor's death
		}
	}
}

// unlock ends a change of the pair, and orders the kills that it requires, unless an earlier change still orders its own: then these
// follow. P4: a supervisor orders every tree's death before it kills a guardian that still watches.
func (g *guardians) unlock() {
	if next := g.pair.Next(); next > 0 && (g.due == 0 || next < g.due) {
		g.due = next
		select {
		case g.bell <- struct{}{}:
		default:
		}
	}
	if g.ordering {
		g.mu.Unlock()
		return
	}
	for g.ordering = true; len(g.later) > 0; g.mu.Lock() {
		later := g.later
		g.later = nil
		g.mu.Unlock()
		for _, do := range later {
			do()
		}
	}
	g.ordering = false
	g.mu.Unlock()
}

// attend reads a guardian's messages, and waits for its end.
func (g *guardians) attend(at int, s *guardianProcess) {
	if s == nil {
		return
	}
	g.tasks.Go(func() {
		g.listen(at, s)
		g.mu.Lock()
		here := g.at[at] == s
		if here {
			g.gone[at] = s
		}
		g.pair.Gone(Now(), at, s.number)
		if here {
			g.at[at] = nil
		}
		g.unlock()
		g.cleanUp(s)
	})
}

func (g *guardians) listen(at int, s *guardianProcess) {
	buf := make([]byte, maxPacket)
	for {
		m, err := s.link.receive(buf)
		if err != nil {
			s.because(err)
			return
		}
		g.heard(at, s, &m)
	}
}

// heard handles a guardian's message.
func (g *guardians) heard(at int, s *guardianProcess, m *guard.Message) {
	g.mu.Lock()
	g.pair.Heard(Now(), at, s.number, m)
	g.unlock()
	switch {
	case m.Op == guard.OpEnded:
		g.words.say(g.log.Warn, "a guardian ended the lease", "guardian", at+1, "epoch", m.Epoch, "reason", m.Why)
	case m.Op == guard.OpCloser && m.OK:
		g.words.say(g.log.Info, "a guardian closed the former session", "guardian", at+1, "epoch", m.Epoch)
	case m.Op == guard.OpCloser:
		g.words.say(g.log.Warn, "a guardian could not close the former session", "guardian", at+1, "epoch", m.Epoch, "error", m.Why)
	}
}

// cleanUp reaps a guardian of this pair that has ended, and frees its resources.
func (g *guardians) cleanUp(s *guardianProcess) {
	s.once.Do(func() {
		s.reaping.Lock()
		defer s.reaping.Unlock()
		_, _ = waitFor(s.process)
		_ = s.link.file.Close()
		_ = s.pidfd.Close()
	})
}

// answered waits until both guardians have answered. A guardian that takes too long is replaced.
func (g *guardians) answered(ctx context.Context, seq uint64) error {
	for {
		g.mu.Lock()
		done, err := g.pair.Questions.Answered(seq)
		changed := g.pair.Questions.Changed()
		g.mu.Unlock()
		if done {
			return err
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-g.stopped:
			err = ErrStopped
		}
		g.forget(seq)
		return err
	}
}

// forget drops a question whose answer nobody waits for any more.
func (g *guardians) forget(seq uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pair.Questions.Forget(seq)
}

// rouse asks both guardians whether they live. A dead one is replaced once Run runs.
func (g *guardians) rouse(ctx context.Context) {
	g.mu.Lock()
	seq := g.pair.Questions.Rouse(Now())
	g.unlock()
	for i, s := range g.at {
		deadline := time.Now().Add(guard.AckLimit)
		if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
			deadline = at
		}
		if err := s.await(deadline, seq, func(m *guard.Message) { g.heard(i, s, m) }); err != nil {
			s.because(err)
			s.kill()
		}
	}
	g.forget(seq)
}

// killAll stops the replacing of guardians, ends every epoch, and kills every tree, with proof.
func (g *guardians) killAll(ctx context.Context) error {
	g.mu.Lock()
	g.pair.Stop() // from here on a missing guardian counts as an answer, so starts must end in the same moment
	g.pair.StrikeAll(ErrStopped)
	var all []*Tree
	for _, e := range g.pair.Ledger.Epochs() {
		all = append(all, treesOf(e)...)
	}
	g.unlock()
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, t := range all {
		ends.Go(func() { errs[i] = t.End(ctx) })
	}
	ends.Wait()
	return errors.Join(errs...)
}
