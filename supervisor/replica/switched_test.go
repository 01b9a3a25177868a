package replica

import (
	"strings"
	"testing"
	"time"

	"understudy/supervisor/config"
)

// What failed toward one primary says nothing of the next one: a dying primary does not make its followers throw their data away.
func TestEachPrimaryHasItsOwnAttempts(t *testing.T) {
	followsWith(t, reclones, nil, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		s.ends("prepare", 1)
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, prepare 10.0.0.2, prepare 10.0.0.2")
		c.Learn(Active{})
		s.ends("prepare", 0)
		c.Learn(third)
		settles(t, s, 2*time.Second, "prepare 10.0.0.3, start, follow 10.0.0.3")
	})
	followsWith(t, reclones, nil, func(t *testing.T, s *stage, c *Copy) {
		s.ends("follow", 1)
		c.Learn(other)
		time.Sleep(time.Minute)
		if said := s.forget(); !strings.Contains(said, "reclone") {
			t.Fatal(said)
		}
		c.Learn(Active{})
		c.Learn(third) // and the clone of the previous one's data cannot follow either
		settles(t, s, 1500*time.Millisecond, "follow 10.0.0.3, follow 10.0.0.3, prepare 10.0.0.3, start, follow 10.0.0.3")
	})
}

// A command that has changed nothing says so: the copy is what it was, should nobody be promoted.
func TestACommandThatChangesNothingLeavesTheCopyWhole(t *testing.T) {
	followsWith(t, prepares, []byte(`{"node":"n","service":"db","era":1,"followed":8,"diverges":true,"position":5}`), func(t *testing.T, s *stage, c *Copy) {
		settles(t, s, 0, "start")
		s.ends("prepare", 75)
		c.Learn(other)
		settles(t, s, 100*time.Millisecond, "prepare 10.0.0.2")
		c.Learn(Active{})
		settles(t, s, 2*time.Second, "start")
		if told := c.Tell(t.Context()); told.Followed != 8 || told.Toward != 0 || told.Position == nil {
			t.Errorf("%+v", told)
		}
	})
}

// A copy that has the primary's data has none of its own: prepare and reclone that are configured later have nothing to do.
func TestACopyThatFollowsNeedsNoPreparation(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		if err := c.data.keep(func(st *state) { st.Era, st.Followed, st.Diverges, st.Torn = 1, 8, true, byReclone }); err != nil {
			t.Fatal(err)
		}
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, follow 10.0.0.2")
		conf := config.DefaultService("program")
		now := *c.conf.Replicated
		now.Prepare, now.Reclone = reclones.Prepare, reclones.Reclone
		conf.Replicated = &now
		c.Configure(conf)
		settles(t, s, time.Hour, "")
	})
}

// The command that hangs is ended when another one is configured.
func TestAPrepareThatHangsEndsWhenItIsChanged(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		s.ends("prepare", -1)
		c.Learn(other)
		settles(t, s, time.Hour, "start, prepare 10.0.0.2")
		conf := config.DefaultService("program")
		now := *c.conf.Replicated
		now.Prepare = config.Command{"reprepare"}
		conf.Replicated = &now
		c.Configure(conf)
		settles(t, s, 2*time.Second, "reprepare 10.0.0.2, start, follow 10.0.0.2")
	})
}
