package replica

import (
	"testing"
	"time"

	"understudy/supervisor/copies"
)

// What a primary had last is known to others, also after a loss of power, whatever the copy here does then.
func TestWhatAnotherPrimaryHadIsKept(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		demand := func(when string, want copies.Lead) {
			t.Helper()
			if told := c.Tell(t.Context()); told.Saw != want {
				t.Errorf("%s: %+v", when, told.Saw)
			}
			if kept, err := load(s, "n", "db"); err != nil || kept.Saw != want {
				t.Errorf("%s: kept: %+v, %v", when, kept.Saw, err)
			}
		}
		note := func(l copies.Lead) {
			c.NoteLead(Active{Node: l.Node, Era: l.Era, Token: l.Token}, l.Position, time.Now())
		}
		c.Learn(other)
		time.Sleep(2 * time.Second)
		first := copies.Lead{Node: other.Node, Era: other.Era, Token: other.Token, Position: 70}
		for _, position := range []uint64{60, 70, 65} {
			lead := first
			lead.Position = position
			note(lead)
		}
		demand("the greatest counts", first)
		older := first
		older.Token--
		note(older)
		demand("of the newest promotion", first)
		if kept, _ := load(s, "n", "db"); kept.Followed != other.Token {
			t.Errorf("what the copy has followed is kept as well: %+v", kept)
		}
		next := copies.Lead{Node: "x", Era: other.Era, Token: other.Token + 9, Position: 1}
		s.full = true
		note(next)
		s.full = false
		demand("which is not known then", first)
		s.ends("prepare", unchanged)
		if err := c.Promotion(12).Note(1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		note(next)
		time.Sleep(3 * time.Second)
		demand("a prepare that has changed nothing takes nothing of it back", next)
		newEra := copies.Lead{Node: "x", Era: other.Era + 1, Token: 1, Position: 1}
		note(newEra)
		demand("tokens begin again", newEra)
	})
}

// How far a copy is behind is known while the primary's heartbeats tell how far that one is. Not known is too far for who has asked.
func TestClientsReadFromACopyThatIsNearEnough(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.is(false, "40")
		c.Learn(other)
		time.Sleep(2 * time.Second)
		near := func(when string, lag uint64, want string) {
			t.Helper()
			if got := c.Follows(&lag, false); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		const unknown = "it is not known how far the primary's data goes"
		began := time.Now()
		near("nothing was told", 1<<40, unknown)
		c.NoteLead(other, 45, began)
		c.NoteLead(other, 45, began)
		near("what was told may be old", 1<<40, unknown)
		c.NoteLead(other, 50, began.Add(time.Second))
		near("too far", 9, "it is 10 behind the primary")
		near("just near enough", 10, "")
		s.is(false, "60")
		time.Sleep(2 * time.Second)
		near("newer than what was told", 0, "")
		time.Sleep(9 * time.Second)
		near("for so long", 0, "")
		time.Sleep(time.Second)
		near("the primary tells no more", 0, unknown)
		if got := c.Follows(nil, false); got != "" {
			t.Errorf("who has not asked for that: %q", got)
		}
		c.NoteLead(third, 60, time.Now())
		c.NoteLead(third, 60, time.Now().Add(time.Second))
		near("another primary tells", 0, unknown)
	})
}

// Only the program knows whether it has every write that was acknowledged.
func TestClientsReadEveryAcknowledgedWriteWhereTheProgramSaysThat(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		c.Learn(other)
		for said, want := range map[string]string{
			"40": "it does not say that it has every acknowledged write", "41 sync": "", "same sync": "position: no number: same sync",
			" sync": "position: no number: sync", "42 synced": "position: no number: 42 synced", "": "it has no position",
		} {
			s.is(false, said)
			time.Sleep(2 * time.Second)
			if got := c.Follows(nil, true); got != want {
				t.Errorf("%q: %q, want %q", said, got, want)
			}
		}
		s.is(false, "50 sync")
		time.Sleep(2 * time.Second)
		s.ends("role", 1)
		time.Sleep(2 * time.Second)
		if c.Follows(nil, true) == "" {
			t.Error("it does not say what it is")
		}
		s.ends("role", 0)
		time.Sleep(time.Minute)
		if got := c.Follows(nil, true); got != "" {
			t.Errorf("again: %q", got)
		}
		c.Learn(Active{})
		if got := c.Follows(nil, true); got != "no primary is known" {
			t.Errorf("%q", got)
		}
		if told := c.Tell(t.Context()); told.Position == nil || *told.Position != 50 {
			t.Errorf("the number counts as any other: %+v", told)
		}
	})
}
