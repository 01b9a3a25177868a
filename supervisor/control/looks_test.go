package control

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/election"
)

// aside is what a program did beside itself.
var aside = election.Effects{
	Names: []string{"vip", "mnt", "dns", "role", "old"}, Survive: election.EffectsLeft{"role"},
	Look: election.Looks{
		{Name: "vip", Address: "192.0.2.10"}, {Name: "mnt", Mount: "/srv/db"}, {Name: "dns", Undo: "/usr/local/bin/dns del"}, {Name: "role", Undo: "/bin/return"},
	},
}

// A mount outlives every process. Whoever confirms a death by a look at processes alone must not confirm that it is gone.
func TestWhatAProgramDidIsConfirmedByItself(t *testing.T) {
	b := newBed(t)
	b.session().put(paths("db").Crumb(), election.BreadCrumb{Node: "old", Session: "0x7", Effects: aside}, 0)
	want := []string{
		"192.0.2.10 is not set there", "/srv/db (mnt) is not mounted there", "what dns did has been undone (by hand, for example with `/usr/local/bin/dns del`)", "what old did has been undone",
		"what role did has been undone (by hand, for example with `/bin/return`)",
	}
	look, pending, err := b.c.Confirmable(t.Context(), "db", "old")
	if err != nil || !pending || !slices.Equal(look, want) {
		t.Errorf("%v, %v, %q", err, pending, look)
	}
	_, err = b.c.Confirm(t.Context(), "db", "old", Confirming{By: "me@op", Force: true})
	if !errors.Is(err, ErrEffects) || !strings.Contains(err.Error(), strings.Join(want, ", and ")+". Then add --effects-gone") || !b.has(paths("db").Crumb()) {
		t.Error(err)
	}
	if got, err := b.c.Confirm(t.Context(), "db", "old", Confirming{By: "me@op", EffectsGone: true}); err != nil || !got.Done || b.has(paths("db").Crumb()) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, pending, err := b.c.Confirmable(t.Context(), "db", "new"); err == nil || pending {
		t.Error("it is asked about a node that nobody knows")
	}
	if _, pending, err := b.c.Confirmable(t.Context(), "bd", "old"); !errors.Is(err, ErrUnknown) || pending {
		t.Errorf("it is asked about a service that nobody knows: %v", err)
	}
}

func TestStatusNamesWhatToLookAtBeforeAConfirmation(t *testing.T) {
	v := ServiceStatus{Service: "db", Fencing: &FencingStatus{Node: "a", effects: aside}, Members: []MemberStatus{{Node: "b", Role: election.RoleStandby}}}
	want := "Check a first: it is off, or no process of the program is left there, and 192.0.2.10 is not set there, and /srv/db (mnt) is not mounted there, and " +
		"what dns did has been undone (by hand, for example with `/usr/local/bin/dns del`), and what old did has been undone. Even if it is off: what role did has been undone (by hand, for example with `/bin/return`). " +
		"No boot of it undoes that. If you are wrong, two copies run. Then:"
	if got := unfenced(v, time.Now()).Hint; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
