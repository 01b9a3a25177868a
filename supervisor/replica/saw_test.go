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
		c.Learn(other)
		time.Sleep(2 * time.Second)
		first := copies.Lead{Node: other.Node, Era: other.Era, Token: other.Token, Position: 70}
		for _, position := range []uint64{60, 70, 65} {
			lead := first
			lead.Position = position
			c.NoteLead(lead)
		}
		demand("the greatest counts", first)
		older := first
		older.Token--
		c.NoteLead(older)
		demand("of the newest promotion", first)
		if kept, _ := load(s, "n", "db"); kept.Followed != other.Token {
			t.Errorf("what the copy has followed is kept as well: %+v", kept)
		}
		next := copies.Lead{Node: "x", Era: other.Era, Token: other.Token + 9, Position: 1}
		s.full = true
		c.NoteLead(next)
		s.full = false
		demand("which is not known then", first)
		s.ends("prepare", unchanged)
		if err := c.Promoting(1, 12); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		c.NoteLead(next)
		time.Sleep(3 * time.Second)
		demand("a prepare that has changed nothing takes nothing of it back", next)
		newEra := copies.Lead{Node: "x", Era: other.Era + 1, Token: 1, Position: 1}
		c.NoteLead(newEra)
		demand("tokens begin again", newEra)
	})
}
