package replica

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/config"
)

// goesOn has another copy continue what was carried, with the same programs, until the test ends.
func goesOn(t *testing.T, s *stage, was *Copy, carried *Carried) (next *Copy, end func()) {
	t.Helper()
	next = New(was.cfg, was.conf)
	next.Adopt(carried)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		next.Keep(ctx)
	}()
	return next, func() { cancel(); <-done }
}

// A follower is neither stopped nor told again whom to follow, and no field of what is carried is lost.
func TestAFollowerLivesOnInTheNextImage(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		c.Learn(third)
		settles(t, s, 3*time.Second, "start, follow 10.0.0.3")
		before := c.Shown()
		if c.Carry() != nil {
			t.Error("it is carried while it is looked after")
		}
		s.part()
		carried := c.Carry()
		for i, r := 0, reflect.ValueOf(carried).Elem(); i < r.NumField(); i++ {
			if name := r.Type().Field(i).Name; r.Field(i).IsZero() && name != "Warm" && name != "Tree" {
				t.Errorf("%s is not carried: %+v", name, carried)
			}
		}
		next, end := goesOn(t, s, c, carried)
		if got := next.Shown(); !reflect.DeepEqual(got, before) {
			t.Errorf("shown before %+v, and at once after %+v", before, got)
		}
		next.Learn(third)
		settles(t, s, 3*time.Second, "")
		if got := next.Shown(); got.Role != Follower || got.Followed != third.Token || got.Why != "" || s.kills != 0 {
			t.Errorf("%+v, %d kills", got, s.kills)
		}
		s.is(true, "9") // P1: the next image looks, too
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.killed() == 0 {
			t.Error("a follower that is the primary runs on")
		}
		end()
	})
}

// Where there is no other image after all, the same one continues. Where this supervisor ends before that, the programs do.
func TestAnUpgradeThatFailsLeavesTheFollowerRunning(t *testing.T) {
	for _, again := range []bool{true, false} {
		follows(t, func(t *testing.T, s *stage, c *Copy) {
			c.Learn(third)
			settles(t, s, 3*time.Second, "start, follow 10.0.0.3")
			s.part()
			ctx, cancel := context.WithCancel(t.Context())
			if !again {
				cancel()
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Keep(ctx)
			}()
			if again {
				settles(t, s, 3*time.Second, "")
				if got := c.Shown(); got.Role != Follower || got.Followed != third.Token || s.kills != 0 {
					t.Errorf("%+v, %d kills", got, s.kills)
				}
			}
			cancel()
			<-done
			if c.Carry() != nil || s.program != nil {
				t.Errorf("continued %v: its programs are left: %v", again, s.program)
			}
		})
	}
}

// A promoted copy's term has its tree. Its lease as a follower is carried, for what demotes it.
func TestAPromotedCopyIsPromotedInTheNextImage(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		run, orders := promoted(t, s, c)
		s.part()
		carried := c.Carry()
		if carried.Run != nil || carried.Trees() != 0 || carried.State.Followed != 12 || !carried.State.Diverges {
			t.Errorf("%+v", carried)
		}
		next, end := goesOn(t, s, c, carried)
		defer end()
		settles(t, s, 3*time.Second, "")
		if !next.Holds(s) || next.Tell(t.Context()).Position != nil {
			t.Error("no term has it")
		}
		if err := next.Promotion(12).Demote(t.Context(), nil, orders); err != nil {
			t.Fatal(err)
		}
		settles(t, s, 0, "demote , end")
		if err := next.Return(t.Context(), s, run); err != nil {
			t.Fatal(err)
		}
		if len(s.moves) != 1 || s.moves[0] != carried.Lease {
			t.Errorf("moved to %v, and its lease is %d", s.moves, carried.Lease)
		}
		settles(t, s, time.Second, "")
	})
}

// What is being started is stopped, as by the end of a supervisor, and what changes the data of a stopped copy is waited for.
func TestWhatCannotBeCarriedShows(t *testing.T) {
	warm := byCommand
	conf := config.DefaultService("program")
	conf.Warm, conf.Processes[0].Ready = &warm, config.Ready{After: 20 * time.Second}
	conf.Replicated = &config.Replicated{Timeout: time.Second, Interval: time.Second}
	keeps(t, conf, nil, func(t *testing.T, s *stage, c *Copy) {
		c.Halt("")
		synctest.Wait()
		if mends, passes := c.Busy(); mends || !passes {
			t.Errorf("it is started: %v, %v", mends, passes)
		}
		s.part()
		if c.Carry() != nil || s.program != nil {
			t.Errorf("what was being started is carried: %v, lives %v", c.Carry(), s.program)
		}
	})
	followsWith(t, prepares, nil, func(t *testing.T, s *stage, c *Copy) {
		s.ends(byPrepare, -1)
		c.Learn(third)
		if err := c.data.keep(func(s *state) { s.Diverges = true }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if mends, _ := c.Busy(); !mends {
			t.Errorf("prepare runs: %s", s.heard())
		}
		s.part()
		if mends, _ := c.Busy(); mends || c.Carry() != nil || c.data.state.Torn != byPrepare {
			t.Errorf("it was ended: %v, %+v", mends, c.data.state)
		}
	})
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		o := make(chan error, 1)
		ctx, enough := context.WithCancelCause(t.Context())
		s.slow = true
		go func() { o <- c.Obey(ctx, DoRestart, 0) }()
		synctest.Wait()
		if _, passes := c.Busy(); !passes {
			t.Error("an order is carried out")
		}
		enough(errors.New("enough"))
		<-o
		time.Sleep(2 * time.Second)
		if mends, passes := c.Busy(); mends || passes {
			t.Error("nothing is under way")
		}
	})
}
