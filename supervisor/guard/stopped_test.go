package guard

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// P4: guardians of a supervisor that stops are not killed for leaving it, and none is started: they end what it may leave behind.
func TestGuardiansOfAPairThatIsStoppedAreLeftAlone(t *testing.T) {
	replaced := func(b *bureau) { b.plants(); b.falls(0); b.begins(0) }
	for name, c := range map[string]struct{ before, after func(b *bureau) }{
		"one goes":            {func(*bureau) {}, func(b *bureau) { b.falls(0) }},
		"both go":             {func(*bureau) {}, func(b *bureau) { b.falls(0); b.falls(1) }},
		"both are silent":     {func(b *bureau) { b.passes(PingEvery) }, func(b *bureau) { b.passes(PingEvery + secondLook) }},
		"a new one goes":      {replaced, func(b *bureau) { b.falls(0) }},
		"a new one is silent": {replaced, func(b *bureau) { b.passes(tellLimit + secondLook) }},
		"a new one is blind": {replaced, func(b *bureau) {
			b.Heard(b.now, 0, b.numbers[0], &Message{Op: OpNack, Epoch: 1, Tree: 1, Why: "out of sight"})
		}},
		"a new one's twin goes":      {func(b *bureau) { replaced(b); b.acks(0) }, func(b *bureau) { b.falls(1) }},
		"a new one's twin is silent": {func(b *bureau) { replaced(b); b.acks(0) }, func(b *bureau) { b.passes(AckLimit + secondLook) }},
		"a new one knows everything": {replaced, func(b *bureau) {
			b.Heard(b.now, 0, b.numbers[0], &Message{Op: OpAck, Seq: b.slots[0].asked})
		}},
		"a new one does not start": {func(b *bureau) { b.falls(0) }, func(b *bureau) { b.Began(b.now, 0, b.numbers[0], errors.New("no processes")) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBureau(t)
			c.before(b)
			b.Stop()
			b.forgets()
			if c.after(b); len(b.killed)+len(b.started)+len(b.said)+b.struck > 0 || len(b.sent[0])+len(b.sent[1]) > 0 {
				t.Errorf("killed %v, started %v, said %v, struck %d, sent %v", b.killed, b.started, b.said, b.struck, b.sent)
			}
		})
	}
}

// A watchdog is disarmed in time, though a guardian that has it sleeps.
func TestAQuestionOfAPairThatIsStoppedHasAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		falls bool
		after time.Duration
	}{"it dies": {true, AckLimit + secondLook}, "it does not die": {false, giveUp}} {
		t.Run(name, func(t *testing.T) {
			b := newBureau(t)
			fed := b.State.Feed(b.now, time.Second, "device")
			b.Questions.Forget(fed)
			b.Stop()
			seq, _ := b.State.Unfeed(b.now)
			b.acks(0)
			for end := b.now + c.after; b.now < end; {
				next := b.Next()
				if next <= b.now {
					t.Fatal("nobody looks at it again")
				}
				b.passes(next - b.now)
			}
			if !slices.Equal(b.killed, []int{1}) {
				t.Fatal(b.killed)
			}
			if c.falls {
				b.falls(1)
			}
			if done, err := b.Questions.Answered(seq); !done || (err == nil) != c.falls {
				t.Error(done, err)
			}
		})
	}
}
