package guard

import (
	"slices"
	"testing"
)

// After an upgrade both guardians may be of an image that does not know an order of the next one. They are replaced one after the other, and
// the question counts as answered once both of the next image know everything.
func TestAGuardianThatDoesNotKnowAnOrderIsReplaced(t *testing.T) {
	b := newBureau(t)
	planted := b.plants()
	b.forgets()
	seq, err := planted.NoteUndos(b.now, []byte("note"))
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(at int) {
		g := NewGuardian(Config{}, nil)
		m := *b.sent[at][len(b.sent[at])-1]
		m.Op = "later"
		l := &lease{number: m.Epoch}
		l.trees = []*tree{{number: m.Tree, lease: l}}
		g.leases.begin(l)
		b.Heard(b.now, at, b.numbers[at], refuse(&m, g.obey(b.now, &m)))
	}
	refuses(0)
	refuses(1)
	for at := range 2 {
		if b.struck > 0 || !slices.Contains(b.killed, at) || slices.Contains(b.killed, 1-at) {
			t.Fatalf("killed: %v", b.killed)
		}
		b.falls(at)
		b.forgets()
		if !b.begins(at) {
			t.Fatal("no other one is started")
		}
		if !slices.ContainsFunc(b.sent[at], func(m *Message) bool { return m.Op == OpEffects }) {
			t.Error("the next one is not told of what the previous one did not know")
		}
		b.acks(at)
		if over := b.Questions.Over(seq); at == 0 && over == closed {
			t.Error("answered, and one of them does not know it")
		}
		b.acks(1 - at)
	}
	if done, err := b.Questions.Answered(seq); !done || err != nil || b.struck > 0 || b.cause(t) != nil {
		t.Errorf("%v, %v, struck %d times, %v", done, err, b.struck, b.cause(t))
	}
}
