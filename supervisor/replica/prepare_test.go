package replica

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/config"
)

var (
	prepares = config.Replicated{Prepare: config.Command{"prepare"}}
	reclones = config.Replicated{Prepare: config.Command{"prepare"}, Reclone: config.Command{"reclone"}}
)

// settles waits until nothing happens any more without time passing, and expects what was run since.
func settles(t *testing.T, s *stage, after time.Duration, want string) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	if got := s.forget(); got != want {
		t.Errorf("it ran %q, want %q", got, want)
	}
}

var third = Active{Node: "o", Host: "o", Address: "10.0.0.3", Era: 1, Token: 12}

func TestAPrimaryIsPreparedBeforeItFollows(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		settles(t, s, time.Second, "start")
		c.Learn(other)
		settles(t, s, 2*time.Second, "prepare 10.0.0.2, start, follow 10.0.0.2")
		// The next primary is followed as it is: this copy has no data of its own any more.
		c.Learn(third)
		settles(t, s, 2*time.Second, "follow 10.0.0.3")
	})
}

// Somebody has promoted it by hand: it may have gone another way.
func TestACopyThatWasAPrimaryWithoutTheLockIsPreparedBeforeItFollows(t *testing.T) {
	followsWith(t, prepares, []byte(`{"node":"n","service":"db","era":1,"followed":9}`), func(t *testing.T, s *stage, c *Copy) {
		c.Learn(other)
		settles(t, s, time.Minute, "start, follow 10.0.0.2")
		s.mu.Lock()
		s.primary = true
		s.mu.Unlock()
		settles(t, s, time.Minute, "prepare 10.0.0.2, start, follow 10.0.0.2")
	})
}

// What a stopped copy may lack or have too much is known only of one that had the present primary's data.
func TestACopyIsPreparedBeforeItStartsBesideAPrimary(t *testing.T) {
	for name, c := range map[string]struct{ kept, want string }{
		"it is new":                       {"", "prepare 10.0.0.2, start, follow 10.0.0.2"},
		"it had the primary's data":       {`{"node":"n","service":"db","era":1,"followed":9}`, "start, follow 10.0.0.2"},
		"of another era":                  {`{"node":"n","service":"db","era":2,"followed":9}`, "prepare 10.0.0.2, start, follow 10.0.0.2"},
		"it was about to":                 {`{"node":"n","service":"db","era":1,"followed":9,"toward":9}`, "prepare 10.0.0.2, start, follow 10.0.0.2"},
		"it had an earlier one's":         {`{"node":"n","service":"db","era":1,"followed":8}`, "prepare 10.0.0.2, start, follow 10.0.0.2"},
		"prepare has begun to change it":  {`{"node":"n","service":"db","era":1,"followed":8,"torn":"prepare"}`, "prepare 10.0.0.2, start, follow 10.0.0.2"},
		"it is not known what it has":     {`{`, "prepare 10.0.0.2, start, follow 10.0.0.2"},
		"reclone has begun to replace it": {`{"node":"n","service":"db","era":1,"followed":8,"torn":"reclone"}`, "reclone 10.0.0.2, start, follow 10.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			var kept []byte
			if c.kept != "" {
				kept = []byte(c.kept)
			}
			followsWith(t, reclones, kept, func(t *testing.T, s *stage, copy *Copy) {
				// Without a primary it starts, to tell its position, unless its data is half changed.
				want := "start"
				if strings.Contains(name, "begun") || strings.Contains(name, "known") {
					want = ""
				}
				settles(t, s, 0, want)
				if told := copy.Tell(t.Context()); (told.Position != nil) != (want != "") {
					t.Errorf("without a primary it tells %+v", told)
				}
				if want != "" { // as one that starts again: now with a primary
					s.mu.Lock()
					s.program.end(1)
					s.mu.Unlock()
					synctest.Wait()
				}
				copy.Learn(other)
				settles(t, s, 4*time.Second, c.want)
			})
		})
	}
}

// A prepare that was begun for another primary says nothing of the present one. Until one has succeeded, the program is not started.
func TestPrepareBeginsAgainWhenThePrimaryChanges(t *testing.T) {
	followsWith(t, prepares, []byte(`{"node":"n","service":"db","era":1,"followed":8,"diverges":true}`), func(t *testing.T, s *stage, c *Copy) {
		settles(t, s, 0, "start")
		s.ends("prepare", -1)
		c.Learn(other)
		settles(t, s, time.Hour, "prepare 10.0.0.2")
		if got := c.Shown(); got.Role != Unknown || got.Why != "prepare runs, to have it follow m" || got.Toward != 9 {
			t.Errorf("meanwhile: %+v", got)
		}
		c.Learn(third)
		settles(t, s, time.Hour, "prepare 10.0.0.3")
		c.Learn(Active{})
		settles(t, s, time.Hour, "")
		if got := c.Tell(t.Context()); got.Position != nil || got.Why != "it is stopped until another copy is promoted: prepare has not succeeded" {
			t.Errorf("without a primary: %+v", got)
		}
		s.ends("prepare", -2)
		c.Learn(third)
		settles(t, s, time.Hour, "prepare 10.0.0.3")
		s.ends("prepare", 0)
		c.Learn(other)
		settles(t, s, 2*time.Second, "prepare 10.0.0.2, start, follow 10.0.0.2")
	})
}

// The other way is taken when the config has lost the one that has begun.
func TestAHalfPreparedCopyIsReclonedWithoutPrepare(t *testing.T) {
	only := config.Replicated{Reclone: config.Command{"reclone"}}
	followsWith(t, only, []byte(`{"node":"n","service":"db","era":1,"followed":8,"torn":"prepare"}`), func(t *testing.T, s *stage, c *Copy) {
		settles(t, s, time.Hour, "")
		c.Learn(other)
		settles(t, s, 2*time.Second, "reclone 10.0.0.2, start, follow 10.0.0.2")
	})
}

func TestWhatPrepareLeavesBehindIsKilled(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		s.ends("prepare", 1)
		c.Learn(other)
		time.Sleep(10 * time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		if ran := strings.Count(strings.Join(s.said, " "), "prepare"); s.kills < ran {
			t.Errorf("%d kills of %d", s.kills, ran)
		}
	})
}

// Another node had it killed, as a proof.
func TestACopyWhoseTreeEndsWhileItIsPreparedGetsAnother(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		s.ends("prepare", 1)
		c.Learn(other)
		settles(t, s, 100*time.Millisecond, "start, prepare 10.0.0.2")
		s.mu.Lock()
		s.gone = true
		s.mu.Unlock()
		s.ends("prepare", 0)
		settles(t, s, 5*time.Second, "prepare 10.0.0.2, start, follow 10.0.0.2")
	})
}

// A copy that had the primary's data may have lost it since.
func TestACopyThatDoesNotComeBackIsPrepared(t *testing.T) {
	followsWith(t, prepares, []byte(`{"node":"n","service":"db","era":1,"followed":9}`), func(t *testing.T, s *stage, c *Copy) {
		fails := func() {
			s.mu.Lock()
			s.program.end(1)
			s.mu.Unlock()
		}
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, follow 10.0.0.2")
		fails()
		s.is(false, "")
		settles(t, s, 2*time.Second, "start, follow 10.0.0.2")
		fails()
		settles(t, s, 3*time.Second, "prepare 10.0.0.2, start, follow 10.0.0.2")
	})
}

// A full disk says nothing of the copy's data.
func TestAFullDiskStopsNoFollower(t *testing.T) {
	followsWith(t, reclones, nil, func(t *testing.T, s *stage, c *Copy) {
		s.mu.Lock()
		s.full = true
		s.mu.Unlock()
		c.Learn(other)
		settles(t, s, time.Hour, "start")
		if got := c.Shown(); !strings.HasPrefix(got.Why, "follow: keep what the copy has followed") {
			t.Errorf("%+v", got)
		}
		s.mu.Lock()
		s.full = false
		s.mu.Unlock()
		settles(t, s, time.Minute, "follow 10.0.0.2")
	})
}

// A term that takes the copy, by an operator's force, ends what prepares it.
func TestATermEndsAPrepare(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		s.ends("prepare", -1)
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		c.Learn(other)
		settles(t, s, time.Second, "start, prepare 10.0.0.2")
		began := time.Now()
		if run, err := c.Hold(t.Context(), s); run != nil || err == nil || time.Since(began) > time.Second {
			t.Errorf("%v, %v after %v", run, err, time.Since(began))
		}
		if err := s.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.ends("prepare", 0)
		c.Free()
		settles(t, s, 2*time.Second, "prepare 10.0.0.2, start, follow 10.0.0.2")
	})
}

func TestACopyThatCannotFollowIsPreparedAndThenRecloned(t *testing.T) {
	followsWith(t, reclones, []byte(`{"node":"n","service":"db","era":1,"followed":9}`), func(t *testing.T, s *stage, c *Copy) {
		s.ends("follow", 1)
		c.Learn(other)
		settles(t, s, 1500*time.Millisecond, "start, follow 10.0.0.2, follow 10.0.0.2, prepare 10.0.0.2, start, follow 10.0.0.2")
		settles(t, s, 1500*time.Millisecond, "follow 10.0.0.2, reclone 10.0.0.2, start, follow 10.0.0.2")
		// More than that cannot be done: it is not made anew over and over.
		time.Sleep(time.Hour)
		if got := s.forget(); strings.Contains(got, "reclone") || strings.Contains(got, "start") || !strings.Contains(got, "follow") {
			t.Errorf("later: %q", got)
		}
		s.ends("follow", 0)
		settles(t, s, time.Minute, "follow 10.0.0.2")
		if got := c.Shown(); got.Followed != 9 || got.Toward != 0 {
			t.Errorf("at last: %+v", got)
		}
		// It has the data: all begins again.
		s.ends("follow", 1)
		c.Learn(third)
		settles(t, s, 4*time.Second, "follow 10.0.0.3, follow 10.0.0.3, prepare 10.0.0.3, start, follow 10.0.0.3, follow 10.0.0.3, reclone 10.0.0.3, start, follow 10.0.0.3, follow 10.0.0.3")
	})
}

func TestACopyThatCannotBePreparedIsRecloned(t *testing.T) {
	followsWith(t, reclones, nil, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		s.ends("prepare", 1)
		s.ends("reclone", 1)
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, prepare 10.0.0.2, prepare 10.0.0.2")
		settles(t, s, 2*time.Second, "reclone 10.0.0.2")
		s.ends("reclone", 0)
		settles(t, s, time.Minute, "reclone 10.0.0.2, start, follow 10.0.0.2")
	})
}

func TestACopyThatCannotBePreparedIsNotStarted(t *testing.T) {
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(8).Note(1); err != nil {
			t.Fatal(err)
		}
		s.ends("prepare", 1)
		c.Learn(other)
		time.Sleep(time.Hour)
		if got := s.forget(); strings.Count(got, "start") != 1 || strings.Contains(got, "follow") || strings.Count(got, "prepare") < 100 {
			t.Errorf("%q", got)
		}
		if got := c.Shown(); got.Why != "prepare: exit code 1" {
			t.Errorf("%+v", got)
		}
	})
}

// The pauses after failures are the previous primary's.
func TestTheNextPrimaryIsFollowedAtOnce(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.ends("follow", 1)
		c.Learn(other)
		time.Sleep(time.Hour)
		s.forget()
		s.ends("follow", 0)
		c.Learn(third)
		settles(t, s, 100*time.Millisecond, "follow 10.0.0.3")
		if got := c.Shown(); got.Why != "" {
			t.Errorf("%+v", got)
		}
	})
}

// A line of the log tells of what is the case: what is only ordered, or about to be tried, is not done.
func TestTheLogTellsOfNothingThatIsNotDoneYet(t *testing.T) {
	followsWith(t, reclones, nil, func(t *testing.T, s *stage, c *Copy) {
		var log strings.Builder
		c.log = hclog.New(&hclog.LoggerOptions{Output: &log})
		s.is(false, "")
		c.Learn(other)
		time.Sleep(2 * time.Second)
		s.ends("role", 1)
		s.ends("reclone", unchanged)
		settles(t, s, 5*time.Second, "start, follow 10.0.0.2, prepare 10.0.0.2, start, reclone 10.0.0.2, reclone 10.0.0.2")
		for _, early := range []string{"copy follows", "is prepared", "is cloned"} {
			if strings.Contains(log.String(), early) {
				t.Errorf("%s: %s", early, log.String())
			}
		}
	})
}
