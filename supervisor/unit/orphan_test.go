package unit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/testbed/must"
)

// NoteUndos is told before anything is started that may have an effect.
func (s *stage) NoteUndos(_ context.Context, note json.RawMessage) error {
	var n Note
	if err := json.Unmarshal(note, &n); err != nil {
		return err
	}
	s.say("owe %d", n.Token)
	return nil
}

var mount = PendingUndo{Name: "fs", Command: []string{"umount"}, Undone: []string{"gone"}, Timeout: time.Second, Token: 7}

// noteOf returns a service's file of pending undos, and a note of its term.
func noteOf(t *testing.T, debts ...PendingUndo) (*Unit, Note) {
	t.Helper()
	need.These(t, "root") // who may write the file
	u := debtor(t, "a", "db", func(context.Context, []string) int { t.Error("the supervisor undoes it"); return 1 })
	for _, d := range debts {
		must.OK(t, u.undos.add(d))
	}
	return u, Note{Node: "a", Service: "db", Cluster: t.Name(), Token: 7}
}

// P2: a guardian undoes the newest first, addresses without a process, and stops at what fails. Everybody learns what it has undone.
func TestWhatAGuardianHasUndoneIsNotUndoneAgain(t *testing.T) {
	ip := PendingUndo{Name: "ip", Command: []string{"down"}, Address: &AddressUndo{IP: "192.0.2.1/32", Device: "eth0"}, Token: 7}
	u, n := noteOf(t, vipOf(7), mount, ip)
	var did []string
	fails := true
	m := Means{Remove: func(a AddressUndo) error { did = append(did, a.IP+" "+a.Device); return nil }}
	if err := n.Undo(t.Context(), n.Store(), m); !errors.Is(err, ErrCommand) || !slices.Equal(did, []string{"192.0.2.1/32 eth0"}) {
		t.Fatalf("%v, did %q", err, did)
	}
	if owed := owedOf("", "a", "db"); !slices.Equal(owed, []string{"vip", "fs"}) {
		t.Errorf("owed: %q", owed)
	}
	left := true
	m.Run = func(_ context.Context, _ PendingUndo, _ string, command []string) error {
		did = append(did, command[0])
		if command[0] == "umount" && fails || command[0] == "gone" && left {
			return &Exited{Code: 1, Said: "busy"}
		}
		return nil
	}
	if err := n.Undo(t.Context(), n.Store(), m); err == nil || err.Error() != "not undone: fs: exit code 1: busy (undone: exit code 1: busy)" {
		t.Error(err)
	}
	left = false // who says so before the undo has run is not believed
	must.Report(t, n.Undo(t.Context(), n.Store(), m))
	if want := []string{"192.0.2.1/32 eth0", "umount", "gone", "umount", "gone", "del"}; !slices.Equal(did, want) {
		t.Errorf("did %q, want %q", did, want)
	}
	if err := errors.Join(n.Undo(t.Context(), n.Store(), m), u.Undo(t.Context())); err != nil || len(did) != 6 || u.HasPendingEffects() || len(owedOf("", "a", "db")) > 0 {
		t.Errorf("%v, did %q, owes %v", err, did, u.PendingEffects())
	}
	if err := n.Undo(t.Context(), n.Store(), m); err != nil || len(did) != 6 { // and the file is gone
		t.Errorf("%v, did %q", err, did)
	}
}

func vipOf(token int64) PendingUndo {
	d := vip
	d.Token = token
	return d
}

// P2: a guardian that comes late undoes nothing of a later term, and believes no file that is not of its service.
func TestAGuardianUndoesNothingOfALaterTerm(t *testing.T) {
	_, n := noteOf(t, vipOf(8))
	m := Means{Run: func(context.Context, PendingUndo, string, []string) error { t.Error("undone"); return nil }}
	if err := n.Undo(t.Context(), n.Store(), m); err != nil || len(owedOf("", "a", "db")) != 1 {
		t.Errorf("%v, owed %q", err, owedOf("", "a", "db"))
	}
	data, err := json.Marshal(undoFile{Node: "b", Service: "db", PendingUndos: []PendingUndo{vipOf(7)}})
	must.OK(t, errors.Join(err, n.Store().Save(data, false)))
	if err := n.Undo(t.Context(), n.Store(), m); err == nil || !strings.Contains(err.Error(), "it is of db on b") {
		t.Error(err)
	}
}

// Never both: while one undoes, the other waits, and then says why it cannot.
func TestOnlyOneProcessUndoesAtATime(t *testing.T) {
	u, n := noteOf(t, vipOf(7))
	unlock, err := n.Store().Lock(t.Context())
	must.OK(t, err)
	defer unlock()
	m := Means{Run: func(context.Context, PendingUndo, string, []string) error { t.Error("undone"); return nil }}
	if err := n.Undo(t.Context(), n.Store(), m); !errors.Is(err, keyfile.ErrLocked) {
		t.Error(err)
	}
	if err := u.Undo(t.Context()); !errors.Is(err, keyfile.ErrLocked) || !strings.HasPrefix(u.NotUndone(), "not undone: vip: another process is at it") {
		t.Errorf("%v: %s", err, u.NotUndone())
	}
}

// owedOf is what is owed in the boot of the term.
func owedOf(root, node, service string) []string {
	return PendingEffectsOn(TermRef{Root: root, Node: node, Service: service}, "")
}

// What was left of a cluster that is no more, or is another one, is not this one's.
func TestNotesOfAnotherClusterDoNotCount(t *testing.T) {
	need.These(t, "root") // who may write the file
	u := New(Config{Service: "db", Node: "clustered", Root: "/one", Cluster: t.Name()})
	t.Cleanup(func() { _ = u.undos.store.Save(nil, false) })
	must.OK(t, u.undos.add(vipOf(7)))
	for root, want := range map[string]int{"/one": 1, "/two": 0} {
		if owed := owedOf(root, "clustered", "db"); len(owed) != want {
			t.Errorf("in %q: %q", root, owed)
		}
	}
}
