package replica

import (
	"testing"
	"time"

	"understudy/supervisor/unit"
)

// promoted has a term take a copy's programs and promote it. orders is where that ran.
func promoted(t *testing.T, s *stage, c *Copy) (run *unit.CarriedRun, orders *stage) {
	t.Helper()
	run, err := c.Hold(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Promotion(12).Note(1); err != nil {
		t.Fatal(err)
	}
	orders = &stage{tells: s}
	if err := c.Promotion(12).Promote(orders, nil)(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.forget()
	return run, orders
}

// A demoted copy runs on, under the lease that it had as a follower, and follows the next primary.
func TestADemotedCopyRunsOn(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		run, orders := promoted(t, s, c)
		if err := c.Promotion(12).Demote(t.Context(), nil, orders); err != nil {
			t.Fatal(err)
		}
		settles(t, s, 0, "demote , end")
		if err := c.Return(t.Context(), s, run); err != nil {
			t.Fatal(err)
		}
		if len(s.moves) != 1 || s.moves[0] != c.lease.Epoch {
			t.Errorf("moved to %v, and its lease is %d", s.moves, c.lease.Epoch)
		}
		settles(t, s, 0, "")
		if c.talk.Err() != nil {
			t.Error("it cannot tell its position")
		}
		c.Free() // the next candidacy does that: nothing is to be freed
		if tree, err := c.Tree(t.Context()); tree != s || err != nil {
			t.Errorf("the next candidacy has %v, %v", tree, err)
		}
		if told := c.Tell(t.Context()); told.Followed != 12 || told.Position == nil {
			t.Errorf("%+v", told)
		}
		next := third
		next.Token = 13
		c.Learn(next)
		settles(t, s, 2*time.Second, "follow 10.0.0.3")
		if got := c.Shown(); got.Followed != 13 || got.Role != Follower || s.kills != 0 {
			t.Errorf("%+v, %d kills", got, s.kills)
		}
	})
}

// Where a previous primary has to be prepared, it is stopped for that.
func TestADemotedCopyIsPrepared(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		run, orders := promoted(t, s, c)
		if err := c.Promotion(12).Demote(t.Context(), nil, orders); err != nil {
			t.Fatal(err)
		}
		s.forget()
		c.Learn(third)
		if err := c.Return(t.Context(), s, run); err != nil {
			t.Fatal(err)
		}
		settles(t, s, 2*time.Second, "prepare 10.0.0.3, start, follow 10.0.0.3")
	})
}

// P1: what it is counts, and not what demote says; and that is asked when nothing can promote it again.
func TestADemotedCopyHasToSaySo(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s, orders *stage)
		heard string
	}{
		"demote fails":                  {func(s, _ *stage) { s.ends("demote", 1) }, "demote "},
		"demote hangs":                  {func(s, _ *stage) { s.ends("demote", -1) }, "demote "},
		"it stays the primary":          {func(s, _ *stage) { s.stubborn = true }, "demote , end"},
		"what promoted it does not die": {func(_, orders *stage) { orders.lasting = true }, "demote , end"},
	} {
		t.Run(name, func(t *testing.T) {
			follows(t, func(t *testing.T, s *stage, copy *Copy) {
				run, orders := promoted(t, s, copy)
				defer run.Discard()
				c.spoil(s, orders)
				began := time.Now()
				if err := copy.Promotion(12).Demote(t.Context(), nil, orders); err == nil || time.Since(began) > 6*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				settles(t, s, 0, c.heard)
			})
		})
	}
}

// A copy that cannot be taken back stays the term's, which ends its tree.
func TestADemotedCopyThatIsNotTakenBackIsTheTerms(t *testing.T) {
	for name, spoil := range map[string]func(s *stage, c *Copy){
		"the lease has ended": func(s *stage, _ *Copy) { s.refuses = true },
		"this supervisor ends": func(_ *stage, c *Copy) {
			c.lending.mu.Lock()
			c.closed = true
			c.lending.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			follows(t, func(t *testing.T, s *stage, c *Copy) {
				run, orders := promoted(t, s, c)
				if err := c.Promotion(12).Demote(t.Context(), nil, orders); err != nil {
					t.Fatal(err)
				}
				spoil(s, c)
				if err := c.Return(t.Context(), s, run); err == nil {
					t.Error("taken back")
				}
				run.Discard()
				if err := s.End(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.forget()
				c.Free()
				settles(t, s, time.Second, "start")
			})
		})
	}
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Return(t.Context(), s, nil); err == nil {
			t.Error("no term has it")
		}
	})
}

// P2: as long as an address of the primary may be there, no client may reach a follower through it.
func TestACopyWaitsUntilTheEffectsOfItsPromotionAreUndone(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		held(t, c)
		c.cfg.Unit.Restore([]unit.PendingUndo{{Name: "vip", Command: []string{"undo"}, Timeout: time.Second}}, 0)
		s.forget()
		_ = s.Kill(t.Context())
		c.Free()
		settles(t, s, time.Minute, "")
		if why := c.Shown().Why; why != "the effects of its promotion are not undone yet" {
			t.Error(why)
		}
		if err := c.cfg.Unit.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		settles(t, s, time.Second, "undo , start")
	})
}
