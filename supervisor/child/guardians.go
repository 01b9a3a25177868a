package child

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/wait"
)

// guardians are the two guardian processes, and this process's knowledge of them.
type guardians struct {
	start   starting
	log     hclog.Logger
	words   words
	tasks   sync.WaitGroup // all goroutines that the stop waits for
	stopped chan struct{}
	bell    chan struct{} // capacity 1: something is due sooner
	window  chan struct{} // holds one for each question of ask that is open

	mu       sync.Mutex // guards the fields below; only lock and lockToRead take it
	pair     *guard.Guardians
	at       [2]*guardianProcess
	gone     [2]*guardianProcess // the previous ones
	due      time.Duration
	later    []func() // orders to kill, for the end of a change
	ordering bool     // a goroutine gives these orders; only one does at a time
}

// starting starts a guardian.
type starting struct {
	exe, name string
	log       guard.LogStyle
}

func newGuardians(cfg GuardConfig) *guardians {
	g := &guardians{
		start: starting{inside.OwnBinary, cfg.Name, guard.LogStyle{JSON: cfg.JSONLog, Level: cfg.Logger.GetLevel().String()}},
		log:   cfg.Logger,
		words: make(words, 64), stopped: make(chan struct{}), bell: make(chan struct{}, 1), window: make(chan struct{}, 64),
	}
	g.pair = guard.NewGuardians(guardianHands{g})
	return g
}

// serve does the due work, and ends with stop, which it begins when ctx ends.
func (g *guardians) serve(ctx context.Context, stop func() error) error {
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
		unlock := g.lock()
		g.due = g.pair.Due(wire.Now())
		if g.due > 0 {
			timer.Reset(max(g.due-wire.Now(), 0))
		}
		unlock()
	}
}

// hangUp lets the guardians go. They kill the processes that this one has left behind.
func (g *guardians) hangUp() {
	close(g.stopped)
	unlock := g.lock()
	all := g.at
	unlock()
	for _, s := range all {
		if s != nil {
			_ = s.link.File.Close() // P4: to the guardian, this is the supervisor's death
		}
	}
}

// attend reads a guardian's messages, and waits for its end.
func (g *guardians) attend(at int, s *guardianProcess) {
	if s == nil {
		return
	}
	g.tasks.Go(func() {
		g.listen(at, s)
		unlock := g.lock()
		here := g.at[at] == s
		if here {
			g.gone[at] = s
		}
		g.pair.Gone(wire.Now(), at, s.number)
		if here {
			g.at[at] = nil
		}
		unlock()
		s.cleanUp()
	})
}

func (g *guardians) listen(at int, s *guardianProcess) {
	buf := make([]byte, wire.MaxPacket)
	for {
		m, err := s.link.Receive(buf)
		if err != nil {
			s.because(err)
			return
		}
		g.heard(at, s, &m)
	}
}

// heard handles a guardian's message.
func (g *guardians) heard(at int, s *guardianProcess, m *guard.Message) {
	unlock := g.lock()
	var killed []string
	if m.Op == guard.OpEnded {
		killed = g.pair.State.Running(m.Epoch)
	}
	g.pair.Heard(wire.Now(), at, s.number, m)
	unlock()
	switch {
	case m.Op == guard.OpEnded && len(killed) > 0:
		g.words.add(g.log.Warn, "a guardian ended the lease and killed the programs", "guardian", at+1, "epoch", m.Epoch, "reason", m.Why,
			"killed", strings.Join(killed, ", "))
	case m.Op == guard.OpEnded:
		g.words.add(g.log.Warn, "a guardian ended the lease", "guardian", at+1, "epoch", m.Epoch, "reason", m.Why)
	case m.Op == guard.OpCloser && m.OK:
		g.words.add(g.log.Warn, "a guardian closed the previous session", "guardian", at+1, "epoch", m.Epoch)
	case m.Op == guard.OpCloser:
		g.words.add(g.log.Warn, "a guardian could not close the previous session", "guardian", at+1, "epoch", m.Epoch, "error", m.Why)
	}
}

// ask asks both guardians what tell asks, and waits until they have answered. It has few questions open at once: with a thousand, the last
// one would be answered so late that they seem silent.
func (g *guardians) ask(ctx context.Context, tell func() (seq uint64, err error)) error {
	select {
	case g.window <- struct{}{}:
		defer func() { <-g.window }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-g.stopped:
		return ErrStopped
	}
	unlock := g.lock()
	seq, err := tell()
	unlock()
	if err != nil {
		return err
	}
	return g.answered(ctx, seq)
}

// askWith is ask with bytes that go along.
func (g *guardians) askWith(ctx context.Context, along []byte, tell func(along []byte) (seq uint64, err error)) error {
	if len(along) > wire.MaxPacket/2 {
		return wire.ErrPacketTooLarge
	}
	return g.ask(ctx, func() (uint64, error) { return tell(slices.Clone(along)) })
}

// answered waits until both guardians have answered. A guardian that takes too long is replaced.
func (g *guardians) answered(ctx context.Context, seq uint64) error {
	for {
		end := g.lockToRead()
		done, err := g.pair.Questions.Answered(seq)
		over := g.pair.Questions.Over(seq)
		end()
		if done {
			return err
		}
		select {
		case <-over:
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
	defer g.lockToRead()()
	g.pair.Questions.Forget(seq)
}

// rouse asks both guardians whether they live. A dead one is replaced once Run runs.
func (g *guardians) rouse(ctx context.Context) {
	unlock := g.lock()
	seq := g.pair.Questions.Rouse(wire.Now())
	unlock()
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
	unlock := g.lock()
	g.pair.Stop() // from here on a missing guardian counts as an answer, so starts must end in the same moment
	g.pair.StrikeAll(ErrStopped)
	all := g.trees()
	unlock()
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, t := range all {
		ends.Go(func() { errs[i] = t.End(ctx) })
	}
	ends.Wait()
	return errors.Join(errs...)
}

// words are lines for the log, in their order. A goroutine of their own writes them, so that a log with a slow reader delays no work
// with a deadline.
type words chan line

type line struct {
	log  func(text string, pairs ...any)
	text string
	more []any
}

// add queues a line. A log that is too many lines behind misses some.
func (w words) add(log func(text string, pairs ...any), text string, pairs ...any) {
	select {
	case w <- line{log, text, pairs}:
	default:
	}
}

// write writes until no more lines can come.
func (w words) write(stopped <-chan struct{}) {
	for {
		select {
		case l := <-w:
			l.log(l.text, l.more...)
			continue
		case <-stopped:
		}
		for {
			select {
			case l := <-w:
				l.log(l.text, l.more...)
			default:
				return
			}
		}
	}
}

// lockToRead begins a look that changes nothing: very many wait for answers, and look at each that comes. Its result ends it.
func (g *guardians) lockToRead() (end func()) {
	g.mu.Lock()
	return g.mu.Unlock
}

// lock begins a change of the pair. Its result ends that, and orders the kills that the change requires, unless an earlier
// change still orders its own: then these follow. P4: a supervisor orders every tree's death before it kills a guardian that still watches.
func (g *guardians) lock() (unlock func()) {
	g.mu.Lock()
	return g.unlock
}

func (g *guardians) unlock() {
	if next := g.pair.Next(); next > 0 && (g.due == 0 || next < g.due) {
		g.due = next
		wait.Poke(g.bell)
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
