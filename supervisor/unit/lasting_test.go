package unit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// disk has pending undos noted in two folders, of which a boot empties the first. next is a supervisor of a boot.
func disk(t *testing.T) (next func(boot string) *Unit, power func()) {
	t.Helper()
	need.These(t, "root") // who may write there
	was, lasts := undosDir, lastingDir
	t.Cleanup(func() { undosDir, lastingDir = was, lasts })
	undosDir, lastingDir = filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "lasting")
	next = func(boot string) *Unit {
		u := debtor(t, "a", "db", func(context.Context, []string) int { return 0 })
		u.undos.boot, u.undos.root = boot, "/one"
		u.LoadUndos()
		return u
	}
	return next, func() {
		must.OK(t, os.RemoveAll(undosDir))
	}
}

var (
	role = PendingUndo{Name: "role", Command: []string{"secondary"}, Token: 7, Lasts: true}
	term = TermRef{Root: "/one", Node: "a", Service: "db", Token: 7, Boot: "b1", Survive: []string{"role"}}
)

func addAll(t *testing.T, u *Unit, token int64, all ...PendingUndo) {
	t.Helper()
	err := u.Last(token)
	for _, d := range all {
		err = errors.Join(err, u.undos.add(d))
	}
	must.OK(t, err)
}

// P2: what survives a boot is undone after it, and nothing else. Until then the machine answers that it is not, and then that it is.
func TestWhatSurvivesABootIsUndoneAfterIt(t *testing.T) {
	next, power := disk(t)
	addAll(t, next("b1"), 7, vipOf(7), role)
	if owed := PendingEffectsOn(term, "b1"); !slices.Equal(owed, []string{"vip", "role"}) {
		t.Errorf("owed in the same boot: %q", owed)
	}
	power()
	u := next("b2")
	if !slices.Equal(u.PendingEffects(), []string{"role"}) || !slices.Equal(PendingEffectsOn(term, "b2"), []string{"role"}) || !slices.Equal(ServicesWithUndos("a", t.Name()), []string{"db"}) {
		t.Errorf("after a boot: %q, owed %q, of %q", u.PendingEffects(), PendingEffectsOn(term, "b2"), ServicesWithUndos("a", t.Name()))
	}
	unlisted := term
	unlisted.Survive = nil // whoever asks may not know that anything may survive
	if owed := PendingEffectsOn(unlisted, "b2"); !slices.Equal(owed, []string{"role"}) {
		t.Errorf("owed, for others: %q", owed)
	}
	if err := u.Undo(t.Context()); err != nil || u.HasPendingEffects() || len(PendingEffectsOn(term, "b2")) > 0 || len(ServicesWithUndos("a", t.Name())) > 0 {
		t.Errorf("undone: %v, owed %q", err, PendingEffectsOn(term, "b2"))
	}
	power()
	if again := next("b3"); again.HasPendingEffects() || len(PendingEffectsOn(term, "b3")) > 0 {
		t.Errorf("after another boot: %q, owed %q", again.PendingEffects(), PendingEffectsOn(term, "b3"))
	}
}

// P2: that nothing is noted of what survives a boot is no proof that nothing is left: the disk may be another one.
func TestOnlyTheNoteOfATermShowsThatNothingSurvived(t *testing.T) {
	next, power := disk(t)
	owed := func(what string, t2 TermRef, boot string, want ...string) {
		t.Helper()
		if owed := PendingEffectsOn(t2, boot); !slices.Equal(owed, want) {
			t.Errorf("%s: %q", what, owed)
		}
	}
	none := term
	none.Survive = nil
	owed("nothing is noted", term, "b2", "role")
	owed("nothing is noted, in the same boot", term, "b1")
	owed("nothing is noted, and nothing survives", none, "b2")
	u := next("b1")
	addAll(t, u, 7)
	owed("its term is noted", term, "b2")
	later, elsewhere := term, term
	later.Token, elsewhere.Root = 8, "/two"
	owed("another term", later, "b2", "role")
	owed("another cluster", elsewhere, "b2", "role")
	must.OK(t, os.Chmod(lastingDir, 0o777))
	owed("in a folder that anybody can write", term, "b2", "role")
	must.OK(t, os.Chmod(lastingDir, 0o755))
	must.OK(t, os.WriteFile(u.undos.store.Path(), []byte("torn"), 0o600))
	owed("a torn note", term, "b2", "role", "unknown")
	if torn := next("b2"); torn.Undo(t.Context()) == nil || !strings.Contains(torn.NotUndone(), lastingDir) {
		t.Errorf("undone, by a torn note: %q", torn.NotUndone())
	}
	addAll(t, u, 8)
	addAll(t, u, 0) // of the next term nothing survives
	if files, err := os.ReadDir(lastingDir); err != nil || len(files) > 0 {
		t.Errorf("kept for ever: %v, %v", files, err)
	}
	power()
	owed("no note is kept", term, "b2", "role")
}

// What a guardian undoes, and what another image of the supervisor takes over, stays noted where it lasts.
func TestALastingNoteStaysWhereItLasts(t *testing.T) {
	next, power := disk(t)
	u := next("b1")
	addAll(t, u, 7, role)
	image := next("b1")
	image.Restore(u.PendingUndos(), u.Lasting())
	n := Note{Node: "a", Service: "db", Cluster: t.Name(), Token: 7}
	m := Means{Run: func(context.Context, PendingUndo, string, []string) error { return nil }}
	must.OK(t, n.Undo(t.Context(), n.Store(), m))
	if err := image.Undo(t.Context()); err != nil || image.HasPendingEffects() {
		t.Errorf("undone by a guardian: %v, %q", err, image.PendingEffects())
	}
	power()
	if owed := PendingEffectsOn(term, "b2"); len(owed) > 0 {
		t.Errorf("owed: %q", owed)
	}
}

// A note that was kept where a boot loses it gives way to one that lasts, and back.
func TestOfTwoNotesTheLastingOneCounts(t *testing.T) {
	next, _ := disk(t)
	u := next("b1")
	addAll(t, u, 0, vipOf(7))
	must.OK(t, u.Undo(t.Context()))
	addAll(t, u, 8, vipOf(8))
	f, ok := u.undos.store.(*files)
	if !ok {
		t.Fatal("it is in no file")
	}
	lasts, _ := f.lasting.There()
	now, _ := f.Store.There()
	if !lasts || now || u.undos.store.Path() != f.lasting.Path() {
		t.Errorf("kept in %s", u.undos.store.Path())
	}
	if err := f.Store.Save([]byte("{}")); err != nil { // it was killed before it removed it
		t.Fatal(err)
	}
	if again := next("b1"); !slices.Equal(again.PendingEffects(), []string{"vip"}) {
		t.Errorf("read: %q", again.PendingEffects())
	}
}

// What could not be noted is noted with the next attempt.
func TestANoteThatFailsIsTriedAgain(t *testing.T) {
	next, _ := disk(t)
	lastingDir = "/proc/no/such"
	u := next("b1")
	if err := u.Last(7); err == nil {
		t.Fatal("noted in a folder that cannot be")
	}
	if err := u.Last(7); err == nil {
		t.Error("the second attempt does not try")
	}
}

// P2: what survives a boot is not done where only a note that a boot loses could be written, as while the disk is read-only.
func TestWhatSurvivesABootIsNotDoneWithoutANoteThatDoes(t *testing.T) {
	next, _ := disk(t)
	u, full := next("b1"), lastingDir
	if err := os.WriteFile(full, nil, 0o600); err != nil { // it is no folder
		t.Fatal(err)
	}
	if err := u.Last(7); err == nil {
		t.Error("noted where there is no folder")
	}
	if err := u.undos.add(role); err == nil || u.HasPendingEffects() {
		t.Errorf("owed: %q, %v", u.PendingEffects(), err)
	}
	must.Report(t, errors.Join(os.Remove(full), u.Last(7), u.undos.add(vipOf(7)), u.undos.add(role)))
	if again := next("b2"); !slices.Equal(again.PendingEffects(), []string{"role"}) {
		t.Errorf("after a boot: %q", again.PendingEffects())
	}
}

// P2: a folder that cannot be opened, for a reason that leaves open whether it is ours, may have a note of what survives a boot. A disk that gives
// errors does that; here it is a name that no folder can have.
func TestWhatIsNotedInAFolderThatCannotBeOpenedIsNotKnown(t *testing.T) {
	next, _ := disk(t)
	lastingDir = "/tmp/" + strings.Repeat("a", 300)
	u := next("b1")
	if owed := u.PendingEffects(); !slices.Contains(owed, unknownEffects) {
		t.Errorf("owed: %q", owed)
	}
	if owed := PendingEffectsOn(term, "b1"); !slices.Contains(owed, "unknown") {
		t.Errorf("on this host: %q", owed)
	}
	n := Note{Node: "a", Service: "db", Cluster: t.Name()}
	if err := n.Undo(t.Context(), n.Store(), Means{}); err == nil {
		t.Error("a guardian takes it for undone")
	}
}
