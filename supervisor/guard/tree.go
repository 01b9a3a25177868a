package guard

import (
	"slices"
)

// plant takes a new tree in.
func (w *Ward) plant(l *lease, m *Message) error {
	if l.ended {
		return ErrLeaseEnded
	}
	if w.leases.tree(m.Tree) != nil { // P2: the guardian would lose sight of its processes
		return errKnownTree
	}
	t := &tree{number: m.Tree, lease: l, znodes: m.Release, mark: m.Mark, name: m.Name}
	if m.Body != nil {
		if err := w.hold(t, m); err != nil {
			return err
		}
	}
	i, _ := l.find(t.number)
	l.trees = slices.Insert(l.trees, i, t)
	return nil
}

// join takes in a process of a tree. The process waits at its gate until both guardians hold it.
func (w *Ward) join(t *tree, m *Message) error {
	switch {
	case t.lease.ended:
		return ErrLeaseEnded
	case t.lease.deadline == 0:
		return ErrNoLease
	case m.Body == nil:
		return errNoBody
	}
	err := w.hold(t, m)
	if err == nil {
		t.lives++
	}
	return err
}

func (w *Ward) hold(t *tree, m *Message) error {
	b, err := w.hands.Open(m)
	if err == nil && b != nil {
		t.bodies = append(t.bodies, held{Body: b, ref: *m.Body})
	}
	return err
}

// shed drops one body, which is proved dead.
func (t *tree) shed(ref *Ref) {
	t.bodies = slices.DeleteFunc(t.bodies, func(b held) bool {
		is := ref != nil && b.ref == *ref
		if is {
			t.lives--
			b.Close()
		}
		return is
	})
}

// drop accepts the supervisor's word that a tree is dead.
func (t *tree) drop() {
	t.shut()
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
	for _, b := range t.bodies {
		b.Close()
	}
	t.bodies = nil
}

// alive yields the bodies that are not proved dead.
func (t *tree) alive(yield func(Body) bool) bool {
	for i := range t.bodies {
		if b := &t.bodies[i]; !b.gone && !yield(b.Body) {
			return false
		}
	}
	return true
}
