package child

import (
	"bytes"
	"testing"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

// received sends packets, one a line, over a real socket and hands on what is understood of them. What they name on this
// machine is replaced by something that is not there: the tests must not kill it.
func received(t *testing.T, packets []byte, obey func(m *guard.Message)) {
	t.Helper()
	ours, theirs, err := wire.SocketPair()
	must.OK(t, err)
	defer ours.Close()
	defer theirs.Close()
	buf := make([]byte, wire.MaxPacket)
	for packet := range bytes.SplitSeq(packets, []byte("\n")) {
		if err := wire.SendPacket(int(ours.Fd()), packet, nil); err != nil {
			continue // too large, or empty
		}
		m, err := wire.RecvFD(int(theirs.Fd()), buf)
		if err != nil {
			continue
		}
		if m.Box != nil && m.Op != guard.OpShed {
			m.Box.Path, m.Box.Pid = "/nonexistent", -1
		}
		obey(&m)
	}
}

// FuzzAnswers lets a supervisor hear anything from a guardian: no epoch is over but the one that is said to be.
func FuzzAnswers(f *testing.F) {
	f.Fuzz(func(t *testing.T, packets []byte) {
		g := newGuard(GuardConfig{})
		s := &guardianProcess{number: g.guardians.pair.Present(wire.Now(), [2]uint64{})[0]}
		g.guardians.at[0], g.guardians.at[1] = s, s
		s.clogged = true // nobody is behind it
		for _, number := range []uint64{1, 2} {
			must.OK(t, g.Begin(number, nil))
		}
		over := map[uint64]bool{}
		received(t, packets, func(m *guard.Message) {
			g.guardians.heard(0, s, m)
			if m.Op == guard.OpEnded {
				over[m.Epoch] = true
			}
			for _, number := range []uint64{1, 2} {
				if (g.Cause(number) != nil) != over[number] {
					t.Fatalf("epoch %d: %v, after %+v", number, g.Cause(number), m)
				}
			}
		})
	})
}
