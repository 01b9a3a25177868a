package guard

import (
	"slices"
	"time"
)

// addTree takes a new tree in.
func (g *Guardian) addTree(l *lease, m *Message) error {
	if l.ended {
		return ErrLeaseEnded
	}
	if g.leases.tree(m.Tree) != nil { // P2: the guardian would lose sight of its processes
		return errKnownTree
	}
	t := &tree{number: m.Tree, lease: l, znodes: m.Release, name: m.Name}
	if m.Box != nil {
		if err := g.hold(t, m); err != nil {
			return err
		}
	}
	i, _ := l.find(t.number)
	l.trees = slices.Insert(l.trees, i, t)
	return nil
}

// join takes in a process of a tree. The process waits at its gate until both guardians hold it.
func (g *Guardian) join(t *tree, m *Message) error {
	switch {
	case t.lease.ended:
		return ErrLeaseEnded
	case t.lease.deadline == 0:
		return ErrNoLease
	case m.Box == nil:
		return errNoBox
	}
	err := g.hold(t, m)
	if err == nil {
		t.lives++
	}
	return err
}

func (g *Guardian) hold(t *tree, m *Message) error {
	b, err := g.hands.Open(m)
	if err == nil && b != nil {
		t.boxes = append(t.boxes, held{Box: b, ref: *m.Box})
	}
	return err
}

// shed drops one box, which is proved dead.
func (t *tree) shed(ref *Ref) {
	t.boxes = slices.DeleteFunc(t.boxes, func(b held) bool {
		is := ref != nil && b.ref == *ref
		if is {
			t.lives--
			b.Close()
		}
		return is
	})
}

// drop accepts the supervisor's word that a tree is dead.
func (t *tree) drop(now time.Duration) {
	t.shut()
	if !t.dead {
		t.diedAt = now
	}
	t.dead, t.struck = true, false
	if !t.pending() {
		t.leave()
	}
}

// leave drops a settled tree. The closing of an ended lease still needs its release.
func (t *tree) leave() {
	if !t.lease.ended {
		t.release()
		t.lease.trees = slices.DeleteFunc(t.lease.trees, func(other *tree) bool { return other == t })
	}
}

func (t *tree) shut() {
	for _, b := range t.boxes {
		b.Close()
	}
	t.boxes = nil
}

// alive yields the boxes that are not proved dead.
func (t *tree) alive(yield func(Box) bool) bool {
	for i := range t.boxes {
		if b := &t.boxes[i]; !b.gone && !yield(b.Box) {
			return false
		}
	}
	return true
}
