package guard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// note is what a puppet holds of a tree's effects.
type note struct{ shut bool }

func (n *note) Close() { n.shut = true }

// owing is guarding, with effects of the first tree.
func owing(t *testing.T, cfg Config, deadline time.Duration, boxes ...*mortal) *puppet {
	t.Helper()
	p := guarding(t, cfg, deadline, boxes...)
	must.OK(t, p.hear(0, Message{Op: OpEffects, Epoch: 1, Tree: 0, Ticket: []byte("n")}))
	return p
}

func undone(err error) Events { return Events{Undone: []Undone{{Tree: 0, Err: err}}} }

// P2: effects are undone once the tree is dead, whether the supervisor is gone or frozen, and the session is closed after that.
func TestEffectsAreUndoneAfterTheTreeIsDeadAndBeforeTheSessionIsClosed(t *testing.T) {
	for _, e := range []Events{{Orphaned: true}, {}} {
		b := &mortal{}
		p := owing(t, Config{}, 10*time.Second, b, &mortal{dies: true})
		now := 10 * time.Second
		p.turn(now, e)
		p.turn(now+time.Second, Events{})
		if len(p.undoes) > 0 {
			t.Fatal("undone while a process may be alive")
		}
		b.dies = true
		now += 2 * time.Second
		p.turn(now, Events{})
		if !slices.Equal(p.undoes, []uint64{0}) {
			t.Fatalf("undone: %v", p.undoes)
		}
		p.turn(now+time.Second, Events{})
		if last := p.closing[len(p.closing)-1]; last.All || len(p.undoes) > 1 || string(last.Releases[0]) != "b" || len(last.Undone)+len(last.Left) > 0 {
			t.Fatalf("undone %d times, closed %+v", len(p.undoes), p.closing)
		}
		p.turn(now+time.Second, p.closed())
		p.turn(now+2*time.Second, undone(nil))
		if last := p.closing[len(p.closing)-1]; !last.All || len(last.Releases) != 1 || len(last.Undone) != 1 || string(last.Undone[0]) != "a" {
			t.Fatalf("closed %+v", p.closing)
		}
		if _, over := p.turn(now+2*time.Second, p.closed()); over != e.Orphaned {
			t.Errorf("over: %v", over)
		}
	}
}

// P2: what cannot be undone keeps the session from being closed, the breadcrumb says so, and it is tried again.
func TestAnUndoThatFailsIsSaidAndTriedAgain(t *testing.T) {
	p := owing(t, Config{}, time.Hour, &mortal{dies: true}, &mortal{dies: true})
	now := 10 * time.Second
	p.turn(now, Events{Orphaned: true})
	next, _ := p.turn(now+CloseAnyway, undone(errors.New("busy")))
	if last := p.closing[len(p.closing)-1]; last.All || len(last.Left) != 1 || string(last.Left[0]) != "a" || len(last.Releases) != 1 {
		t.Fatalf("closed %+v", p.closing)
	}
	if want := now + CloseAnyway + firstUndoPause; next != want {
		t.Errorf("again at %v, not %v", next, want)
	}
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		now = next - 1
		if p.turn(now, Events{}); len(p.undoes) != 1 {
			t.Fatalf("tried again too early: %d", len(p.undoes))
		}
		p.turn(next, Events{})
		if len(p.undoes) != 2 {
			t.Fatalf("not tried again: %d", len(p.undoes))
		}
		p.undoes = p.undoes[1:]
		_ = pause
		next, _ = p.turn(next, undone(errors.New("busy")))
	}
	closings := len(p.closing)
	p.turn(next, p.closed())
	if len(p.closing) != closings {
		t.Errorf("closed once more without any news: %+v", p.closing[closings:])
	}
	if p.turn(next, undone(nil)); !p.closing[len(p.closing)-1].All {
		t.Errorf("closed %+v", p.closing[closings:])
	}
	_, over := p.turn(next, p.closed())
	if d, tells := p.Deeds(); !over || !tells || !slices.Equal(d.Undone, []string{"db"}) || len(d.Left) > 0 {
		t.Errorf("over: %v, %+v", over, d)
	}
}

// What is undone while its record cannot be removed is told as that: to other nodes it is not undone.
func TestWhatIsUndoneIsToldOnceItsRecordIsGone(t *testing.T) {
	p := owing(t, Config{}, time.Hour, &mortal{dies: true}, &mortal{dies: true})
	now := 10 * time.Second
	p.turn(now, Events{Orphaned: true})
	p.turn(now, undone(nil))
	refused := p.closed()
	for i := range refused.Closed {
		refused.Closed[i].Err = errors.New("no server")
	}
	_, over := p.turn(now, refused)
	if d, _ := p.Deeds(); !over || len(d.Undone) > 0 || !slices.Equal(d.Recorded, []string{"db"}) || d.Err == nil {
		t.Errorf("over: %v, %+v", over, d)
	}
}

// The second guardian leaves the undoing to the first, unless that is gone.
func TestTheSecondGuardianUndoesAMomentLater(t *testing.T) {
	p := owing(t, Config{Index: 1}, time.Hour, &mortal{dies: true})
	now := 10 * time.Second
	p.turn(now, Events{Orphaned: true})
	if next, _ := p.turn(now+CloseHeadStart-1, Events{}); len(p.undoes) > 0 || next > now+CloseHeadStart {
		t.Fatalf("undone at once, or again at %v", next)
	}
	if p.turn(now+CloseHeadStart, Events{}); len(p.undoes) != 1 {
		t.Error("not undone although the first one does not do it")
	}
	p = owing(t, Config{Index: 1}, time.Hour, &mortal{dies: true})
	if p.turn(now, Events{Orphaned: true, TwinGone: true}); len(p.undoes) != 1 {
		t.Error("not undone although the first one is gone")
	}
}

// A supervisor undoes what it did as long as its lease lasts; a guardian that sees it die in the middle goes on.
func TestASupervisorsOwnUndoingIsLeftToIt(t *testing.T) {
	p := owing(t, Config{}, time.Hour, &mortal{})
	must.OK(t, p.hear(time.Second, Message{Op: OpDrop, Epoch: 1, Tree: 0}))
	if p.turn(time.Second, Events{}); len(p.undoes) > 0 {
		t.Fatal("undone beside the supervisor")
	}
	if p.turn(2*time.Second, Events{Orphaned: true}); len(p.undoes) != 1 || len(p.closing) > 0 {
		t.Fatalf("undone: %v, closed: %v", p.undoes, p.closing)
	}

	p = owing(t, Config{}, time.Hour, &mortal{})
	held := p.leases.tree(0).effects.(*note)
	for _, op := range []Op{OpDrop, OpSettled, OpFinish} {
		if err := p.hear(time.Second, Message{Op: op, Epoch: 1, Tree: 0, OK: true}); err != nil {
			t.Fatal(op, err)
		}
	}
	if _, over := p.turn(2*time.Second, Events{Orphaned: true}); len(p.undoes)+len(p.closing) > 0 || !over || !held.shut {
		t.Errorf("undone: %v, closed: %v, over: %v, freed: %v", p.undoes, p.closing, over, held.shut)
	}
}

// P2: no guardian closes a session whose supervisor could not undo everything.
func TestASessionWithEffectsThatAreLeftIsNotClosed(t *testing.T) {
	p := owing(t, Config{}, 3*time.Second, &mortal{}, &mortal{dies: true})
	for _, m := range []Message{{Op: OpDrop}, {Op: OpSettled}} {
		if m.Epoch = 1; p.hear(time.Second, m) != nil {
			t.Fatal(m.Op)
		}
	}
	p.turn(3*time.Second, Events{})
	p.turn(3*time.Second+CloseAnyway, Events{})
	if len(p.closing) != 1 || p.closing[0].All || len(p.closing[0].Left) != 1 || len(p.undoes) > 0 {
		t.Fatalf("closed %+v, undone %v", p.closing, p.undoes)
	}
	must.OK(t, p.hear(4*time.Second, Message{Op: OpFinish, Epoch: 1}))
	if p.turn(4*time.Second, p.closed()); len(p.leases) > 0 {
		t.Error("the lease is kept though the supervisor has left it")
	}

	p = owing(t, Config{}, time.Hour, &mortal{dies: true}) // and what it tells once the supervisor has ended
	for _, m := range []Message{{Op: OpDrop}, {Op: OpSettled}, {Op: OpFinish}} {
		if m.Epoch = 1; p.hear(time.Second, m) != nil {
			t.Fatal(m.Op)
		}
	}
	p.turn(2*time.Second, Events{Orphaned: true})
	p.turn(2*time.Second+CloseAnyway, Events{})
	_, over := p.turn(2*time.Second+CloseAnyway, p.closed())
	if d, _ := p.Deeds(); !over || !slices.Equal(d.Left, []string{"db"}) || d.NotUndone == nil {
		t.Errorf("over: %v, %+v", over, d)
	}
}

// What cannot be held ready is not done, and a new guardian that cannot is not one.
func TestAGuardianThatCannotUndoRefuses(t *testing.T) {
	p := guarding(t, Config{}, time.Hour, &mortal{})
	if err := p.hear(0, Message{Op: OpEffects, Epoch: 1, Tree: 0, Ticket: []byte("bad")}); err == nil {
		t.Error("not refused")
	}
	p.Hear(0, &Message{Op: OpEffects, Epoch: 1, Tree: 0, Ticket: []byte("bad")})
	if !p.blind || p.said[len(p.said)-1].Op != OpNack {
		t.Errorf("it serves: %+v", p.said)
	}
}

// The other guardian learns of what is treeEffects, also of a tree that is dead and not settled.
func TestWhatIsOwedIsToldToANewGuardian(t *testing.T) {
	l := NewGuardians(&bureau{}).State
	must.OK(t, errors.Join(l.Begin(1, []byte("t")), l.Extend(0, 1, time.Hour)))
	e, _, err := l.AddTree(0, 1, TreeSpec{Release: []byte("a"), Ref: func() *Ref { return &Ref{Pid: 1} }})
	must.OK(t, err)
	if _, err := e.NoteUndos(0, []byte("n")); err != nil {
		t.Fatal(err)
	}
	ops := func() (all []Op) {
		for _, m := range l.replay() {
			all = append(all, m.Op)
			if m.Op == OpTree && (m.Box == nil) != e.dead {
				t.Errorf("box %v of a tree that is dead: %v", m.Box, e.dead)
			}
		}
		return all
	}
	if got := ops(); !slices.Equal(got, []Op{OpBegin, OpExtend, OpTree, OpEffects}) {
		t.Error(got)
	}
	e.markDead()
	if got := ops(); !slices.Equal(got, []Op{OpBegin, OpExtend, OpTree, OpEffects, OpDrop}) {
		t.Error(got)
	}
	if err := l.Finish(1); err == nil {
		t.Error("finished with something treeEffects")
	}
	if got := l.find(1).Trees(); len(got) > 0 {
		t.Errorf("%d trees may be alive", len(got))
	}
	e.ReportUndone(true)
	if got := ops(); !slices.Equal(got, []Op{OpBegin, OpExtend}) {
		t.Error(got)
	}
	must.Report(t, l.Finish(1))
	if _, err := e.NoteUndos(0, []byte("n")); err == nil {
		t.Error("a tree that has ended owes something")
	}
}

// The effects of a demoted primary are undone while its programs run on. Those of its next promotion are treeEffects like the first ones.
func TestATreeOwesAgain(t *testing.T) {
	p := owing(t, Config{}, time.Hour, &mortal{dies: true})
	for _, m := range []Message{{Op: OpSettled, OK: true}, {Op: OpEffects, Ticket: []byte("n")}} {
		if m.Epoch = 1; p.hear(time.Second, m) != nil {
			t.Fatal(m.Op)
		}
	}
	p.turn(2*time.Second, Events{Orphaned: true})
	p.turn(2*time.Second+CloseAnyway, Events{})
	if len(p.undoes) != 1 {
		t.Errorf("undone: %v", p.undoes)
	}
}
