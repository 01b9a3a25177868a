package unit

import (
	"context"
	"errors"
	"io/fs"
	"testing"
)

// badDisk is a store that takes nothing while it is full, and shows nothing while it is broken.
type badDisk struct {
	Notes
	text         []byte
	full, broken bool
}

func (*badDisk) Path() string { return "/" } // it is there, and root's

func (f *badDisk) Lock(context.Context) (func(), error) {
	if f.broken {
		return nil, errors.New("input/output error")
	}
	return func() {}, nil
}

func (f *badDisk) Load() ([]byte, error) {
	switch {
	case f.broken:
		return nil, errors.New("input/output error")
	case f.text == nil:
		return nil, fs.ErrNotExist
	}
	return f.text, nil
}

func (f *badDisk) Save(text []byte, _ bool) error {
	if f.full {
		return errors.New("no space left on device")
	}
	f.text = text
	return nil
}

// P6: others ask the note what is not undone. One that could not be changed is changed before this node stands
// again, and no undo runs twice.
func TestWhatCouldNotBeNotedIsNotedAgain(t *testing.T) {
	ran, disk := 0, &badDisk{}
	u := debtor(t, "a", "db", func(context.Context, []string) int { ran++; return 0 })
	u.undos.store = disk
	of := TermRef{Node: "a", Service: "db", Token: 7, Boot: "b1", Survive: []string{"role"}}
	addAll(t, u, 7, role)
	disk.full = true
	if err := u.Undo(t.Context()); err != nil {
		t.Errorf("it is undone: %v", err)
	}
	if err := u.Undo(t.Context()); err == nil || u.NotUndone() == "" {
		t.Errorf("%v, %q, and the note says that %q is owed", err, u.NotUndone(), of.PendingEffects("b1", disk.text))
	}
	disk.full = false
	if err := u.Undo(t.Context()); err != nil || u.NotUndone() != "" || ran != 1 {
		t.Errorf("%v, %q, undone %d times", err, u.NotUndone(), ran)
	}
	if owed := of.PendingEffects("b1", disk.text); len(owed) > 0 {
		t.Errorf("the note says that %q is owed", owed)
	}
}

// P2: what cannot be read may be owed. Who asks hears that, and no record goes.
func TestWhatCannotBeReadMayBeOwed(t *testing.T) {
	u := debtor(t, "a", "db", func(context.Context, []string) int { return 0 })
	disk := &badDisk{broken: true}
	u.undos.store = disk
	u.LoadUndos()
	if owed := u.PendingEffects(); !u.HasPendingEffects() || len(owed) != 1 || owed[0] != "unknown" {
		t.Errorf("it owes something: %v, %q", u.HasPendingEffects(), owed)
	}
	disk.broken = false
	if err := u.Undo(t.Context()); err != nil || u.HasPendingEffects() || len(u.PendingEffects()) > 0 {
		t.Errorf("%v, it owes something: %v, %q", err, u.HasPendingEffects(), u.PendingEffects())
	}
}

// An upgrade forgets neither: the next image reads again what is not known to be owed.
func TestAnUpgradeForgetsNothingOfABadDisk(t *testing.T) {
	upgraded := func(u *Unit, disk *badDisk) *Unit {
		next := debtor(t, "a", "db", func(context.Context, []string) int { return 0 })
		next.undos.store = disk
		next.Restore(u.PendingUndos(), u.Lasting())
		next.LoadUndos()
		return next
	}
	unread := &badDisk{broken: true}
	u := debtor(t, "a", "db", nil)
	u.undos.store = unread
	if u.LoadUndos(); !upgraded(u, unread).HasPendingEffects() {
		t.Error("what cannot be read is forgotten")
	}
	full := &badDisk{}
	u = debtor(t, "a", "db", func(context.Context, []string) int { return 0 })
	u.undos.store = full
	addAll(t, u, 7, role)
	full.full = true
	err := u.Undo(t.Context())
	full.full = false
	next := upgraded(u, full)
	of := TermRef{Node: "a", Service: "db", Token: 7, Boot: "b1", Survive: []string{"role"}}
	if err = errors.Join(err, next.Undo(t.Context())); err != nil || len(of.PendingEffects("b1", full.text)) > 0 {
		t.Errorf("%v, and the note says that %q is owed", err, of.PendingEffects("b1", full.text))
	}
}

// P2: a guardian may have the lock that this process cannot open, or get it while an undo runs.
func TestNothingIsUndoneWithoutTheLock(t *testing.T) {
	ran, disk := 0, &badDisk{}
	u := debtor(t, "a", "db", func(context.Context, []string) int { ran++; return 0 })
	u.undos.store = disk
	addAll(t, u, 7, role)
	disk.broken = true
	if err := u.Undo(t.Context()); err == nil || u.NotUndone() == "" || ran > 0 {
		t.Errorf("%v, %q, undone %d times", err, u.NotUndone(), ran)
	}
	disk.broken = false
	if err := u.Undo(t.Context()); err != nil || u.NotUndone() != "" || ran != 1 {
		t.Errorf("%v, %q, undone %d times", err, u.NotUndone(), ran)
	}
}
