package replica

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/config"
)

// obeys has the copy follow an order, and expects what becomes of it after a while, and what was run until then.
func obeys(t *testing.T, s *stage, c *Copy, do string, token int64, after time.Duration, outcome, ran string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	text := "done"
	if err := c.Obey(ctx, do, token); err != nil {
		text = err.Error()
	}
	synctest.Wait()
	if got := s.forget(); text != outcome || got != ran {
		t.Errorf("%s: %q, want %q; it ran %q, want %q", do, text, outcome, got, ran)
	}
}

// following is a copy that had this primary's data.
var following = []byte(`{"node":"n","service":"db","era":1,"followed":9}`)

// An operator restarts a follower: in order, without a preparation, and it follows again. That is done once it is ready.
func TestAFollowerIsRestarted(t *testing.T) {
	followsWith(t, prepares, following, func(t *testing.T, s *stage, c *Copy) {
		c.mu.Lock()
		conf := c.conf
		c.mu.Unlock()
		conf.Processes = slices.Clone(conf.Processes)
		conf.Processes[0].Ready = config.Ready{After: 100 * time.Millisecond}
		c.Configure(conf)
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, start, follow 10.0.0.2")
		obeys(t, s, c, DoRestart, 0, time.Second, "done", "start")
		settles(t, s, time.Second, "follow 10.0.0.2")
		s.ends("program", 3)
		obeys(t, s, c, DoRestart, 0, time.Second, "the program ended: exit code 3", "start")
		s.ends("program", 0)
		s.forget()
		obeys(t, s, c, DoRestart, 0, time.Minute, "done", "prepare 10.0.0.2, start") // it waits for no back-off
		c.Learn(Active{})
		settles(t, s, time.Minute, "")
		obeys(t, s, c, DoRestart, 0, time.Second, "done", "start")
		held(t, c)
		obeys(t, s, c, DoRestart, 0, time.Second, errPromoted.Error(), "")
	})
}

func TestAFollowerIsToldToReload(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.forget()
		obeys(t, s, c, DoReload, 0, time.Minute, "its program ended within 1s of its reload signal, SIGHUP: exit code 0", "")
		hups := 0
		s.mu.Lock()
		s.reload = func() { hups++ }
		s.mu.Unlock()
		time.Sleep(time.Minute)
		s.forget()
		c.mu.Lock()
		c.conf.Restart.Delay = time.Hour
		c.mu.Unlock()
		obeys(t, s, c, DoRestart, 0, time.Minute, "done", "start")
		obeys(t, s, c, DoReload, 0, time.Minute, "done", "")
		c.mu.Lock()
		conf := c.conf
		c.mu.Unlock()
		conf.ReloadCheck = config.Command{"verify"}
		s.ends("verify", 1)
		c.Configure(conf)
		obeys(t, s, c, DoReload, 0, time.Minute, "it was not told to reload, because its reload_check failed: exec: exit code 1", "verify ")
		if hups != 1 {
			t.Errorf("%d signals", hups)
		}
	})
}

// A clone replaces the data of the stopped copy, once, and is done when the copy has the primary's.
func TestAFollowerIsClonedAsOrdered(t *testing.T) {
	followsWith(t, reclones, following, func(t *testing.T, s *stage, c *Copy) {
		settles(t, s, 0, "start")
		obeys(t, s, c, DoReclone, 9, time.Minute, errTurned.Error(), "") // of whom?
		c.Learn(other)
		settles(t, s, 2*time.Second, "follow 10.0.0.2")
		obeys(t, s, c, DoReclone, 8, time.Minute, errTurned.Error(), "")
		obeys(t, s, c, DoReclone, 9, time.Minute, "done", "reclone 10.0.0.2, start, follow 10.0.0.2")
		if got := c.Shown(); got.Followed != 9 || got.Toward != 0 {
			t.Errorf("%+v", got)
		}
		settles(t, s, time.Hour, "")

		// One that fails goes on: the data may be half changed.
		s.ends("reclone", 1)
		obeys(t, s, c, DoReclone, 9, time.Minute, "reclone: exit code 1", "reclone 10.0.0.2")
		s.ends("reclone", 0)
		settles(t, s, time.Minute, "reclone 10.0.0.2, start, follow 10.0.0.2")

		// One that has changed nothing is over.
		s.ends("reclone", unchanged)
		obeys(t, s, c, DoReclone, 9, time.Minute, "reclone: exit code 75", "reclone 10.0.0.2")
		settles(t, s, time.Minute, "start, follow 10.0.0.2")

		// It may take longer than the order is waited for.
		s.ends("reclone", -1)
		obeys(t, s, c, DoReclone, 9, time.Minute, context.DeadlineExceeded.Error(), "reclone 10.0.0.2")
		c.Learn(third)
		s.ends("reclone", 0)
		settles(t, s, time.Minute, "reclone 10.0.0.3, start, follow 10.0.0.3")
	})
}

// It helps a copy that cannot be prepared, and ends with the primary that it was ordered for.
func TestACloneIsOrderedOfACopyThatCannotBePrepared(t *testing.T) {
	followsWith(t, reclones, nil, func(t *testing.T, s *stage, c *Copy) {
		s.ends("prepare", -1)
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		c.Learn(other)
		settles(t, s, time.Second, "start, prepare 10.0.0.2")
		obeys(t, s, c, DoReclone, 9, time.Minute, "done", "reclone 10.0.0.2, start, follow 10.0.0.2")

		s.ends("reclone", -1)
		said := make(chan error, 1)
		go func() { said <- c.Obey(t.Context(), DoReclone, 9) }()
		settles(t, s, time.Minute, "reclone 10.0.0.2")
		c.Learn(Active{})
		if err := <-said; !errors.Is(err, errTurned) {
			t.Errorf("%v", err)
		}
	})
	followsWith(t, prepares, following, func(t *testing.T, s *stage, c *Copy) {
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, follow 10.0.0.2")
		obeys(t, s, c, DoReclone, 9, time.Minute, "there is no replicated.reclone in the config of this node", "")
		obeys(t, s, c, "dance", 9, time.Minute, `this version does not know the order "dance"`, "")
	})
}
