package child

import (
	"bytes"
	"testing"
	"time"
)

// received sends packets, one a line, over a real socket and hands on what is understood of them. What they name on this
// machine is replaced by something that is not there: the tests must not kill it.
func received(t *testing.T, packets []byte, obey func(m *message)) {
	t.Helper()
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	buf := make([]byte, maxPacket)
	for packet := range bytes.SplitSeq(packets, []byte("\n")) {
		if err := sendPacket(int(ours.Fd()), packet, nil); err != nil {
			continue // too large, or empty
		}
		m, err := recvFD(int(theirs.Fd()), buf)
		if err != nil {
			continue
		}
		if m.Body != nil && m.Op != opShed {
			m.Body.Path, m.Body.Pid = "/nonexistent", -1
		}
		obey(&m)
	}
}

// FuzzOrders lets a guardian be told anything. P3: an ended lease stays ended. P2: it loses sight of no body but one that
// it is told to be dead.
func FuzzOrders(f *testing.F) {
	f.Fuzz(func(t *testing.T, packets []byte) {
		w, c, _ := watched(t, 0, fine, &mortal{}, &mortal{})
		w.deadline = Now() + time.Hour
		g := &guardian{sock: -1, watches: map[uint64]*watch{w.epoch: w}, closing: c, grace: time.Second}
		received(t, packets, func(m *message) {
			ended, deadline, bodies := w.ended, w.deadline, bodiesOf(w)
			_ = g.obey(m)
			switch {
			case ended && (!w.ended || w.deadline != deadline):
				t.Fatalf("revived by %+v", m)
			case w.deadline < deadline:
				t.Fatalf("shortened by %+v", m)
			case bodiesOf(w) < bodies && m.Op != opShed && m.Op != opDrop:
				t.Fatalf("lost sight of a body by %+v", m)
			case g.watches[1] == nil && len(w.trees) > 0:
				t.Fatalf("forgotten with its trees by %+v", m)
			}
		})
		if !w.ended {
			return
		}
		for number, q := range w.trees {
			for _, b := range q.bodies {
				if b.body.(*mortal).struck == 0 {
					t.Errorf("ended, and tree %d was not struck", number)
				}
			}
		}
	})
}

func bodiesOf(w *watch) (n int) {
	for _, q := range w.trees {
		n += len(q.bodies)
	}
	return n
}

// FuzzAnswers lets a supervisor hear anything from a guardian: no epoch is over but the one that is said to be, and what
// was done once stays done.
func FuzzAnswers(f *testing.F) {
	f.Fuzz(func(t *testing.T, packets []byte) {
		g := &Guard{
			cfg: GuardConfig{}.withDefaults(), nacks: map[uint64]error{}, changed: make(chan struct{}),
			epochs: map[uint64]*epoch{1: {number: 1, done: make(chan struct{})}, 2: {number: 2, done: make(chan struct{})}},
		}
		s := &seat{}
		over := map[uint64]bool{}
		received(t, packets, func(m *message) {
			acked := s.acked
			g.heard(s, m)
			if s.acked < acked {
				t.Fatalf("undone by %+v", m)
			}
			if m.Op == opEnded {
				over[m.Epoch] = true
			}
			for number := range g.epochs {
				if (g.Cause(number) != nil) != over[number] {
					t.Fatalf("epoch %d: %v, after %+v", number, g.Cause(number), m)
				}
			}
		})
	})
}
