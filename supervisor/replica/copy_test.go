package replica

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var other = Active{Node: "m", Host: "m", Address: "10.0.0.2", Era: 1, Token: 9}

// From the moment at which it is told to follow, until it says that it has that one's data, a copy does not know what it has.
func TestAFollowerHasAPromotionsDataOnceItSaysSo(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.is(false, "")
		c.Learn(other)
		time.Sleep(2 * time.Second)
		if got := c.Shown(); s.heard() != "start, follow 10.0.0.2" || got.Followed != 0 || got.Toward != 9 {
			t.Errorf("%s: %+v", s.heard(), got)
		}
		s.is(false, "40")
		time.Sleep(2 * time.Second)
		if got := c.Shown(); got.Followed != 9 || got.Toward != 0 || got.Era != 1 {
			t.Errorf("in sync: %+v", got)
		}
		if kept, err := load(s, "n", "db"); err != nil || kept.Followed != 9 || kept.Position != 40 {
			t.Errorf("kept: %+v, %v", kept, err)
		}
		c.Learn(Active{})
		for _, said := range []struct {
			position string
			fit      bool
		}{{"40", true}, {"41", true}, {"40", false}, {"39", false}, {"", false}, {"x", false}, {"-1", false}, {"0", false}} {
			position, fit := said.position, said.fit
			s.is(false, position)
			told := c.Tell(t.Context())
			if (told.Position != nil) != fit || fit && strconv.FormatUint(*told.Position, 10) != position || (told.Why == "") != fit || told.Followed != 9 {
				t.Errorf("position %q: %+v", position, told)
			}
		}
		if s.heard() != "start, follow 10.0.0.2" {
			t.Errorf("%s", s.heard())
		}
	})
}

// Who reads from a copy wants the primary's data, as of now; that ZooKeeper is gone does not change it.
func TestClientsReadFromACopyThatFollows(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		expect := func(when, want string) {
			t.Helper()
			if got := c.Follows(nil, false); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		expect("at first", "no primary is known")
		s.is(false, "")
		c.Learn(other)
		time.Sleep(2 * time.Second)
		expect("while it is synchronized", "it has no position")
		s.is(false, "40")
		time.Sleep(2 * time.Second)
		expect("in sync", "")
		time.Sleep(time.Hour)
		expect("later", "")
		s.is(false, "")
		time.Sleep(2 * time.Second)
		expect("cut off from the primary", "it has no position")
		s.is(false, "50")
		time.Sleep(2 * time.Second)
		expect("back", "")
		s.hang(true)
		time.Sleep(13 * time.Second)
		if why := c.Follows(nil, false); !strings.HasPrefix(why, "role: ") && !strings.HasPrefix(why, "it has not reported its position for ") {
			t.Errorf("when it does not answer: %q", why)
		}
		s.hang(false)
		time.Sleep(10 * time.Second)
		expect("when it answers again", "")
		again := other
		again.Token++
		c.Learn(again)
		expect("another promotion", "it does not have the primary's data yet")
		time.Sleep(2 * time.Second)
		expect("of which it has the data", "")
		c.show(func(s *Shown) { s.Role = Primary })
		expect("a primary", "it does not say that it is a follower")
		c.show(func(s *Shown) { s.Role = Follower })
		c.mu.Lock()
		c.asked = c.asked.Add(-time.Minute)
		c.mu.Unlock()
		if why := c.Follows(nil, false); !strings.HasPrefix(why, "it has not reported its position for 1m") {
			t.Errorf("silent for a minute: %q", why)
		}
		again.Era++ // ZooKeeper has lost its data, and the token is the same by chance
		c.Learn(again)
		expect("a promotion of another time", "it does not have the primary's data yet")
		time.Sleep(2 * time.Second)
		expect("of which it has the data, too", "")
		c.show(func(s *Shown) { s.Ill = "exit code 1" })
		time.Sleep(2 * time.Second)
		expect("ill", "exit code 1")
		c.show(func(s *Shown) { s.Ill = "" })
		expect("well again", "")
		s.mu.Lock()
		s.program.end(1)
		s.mu.Unlock()
		synctest.Wait()
		expect("ended", errNotRuns.Error())
		time.Sleep(2 * time.Second)
		expect("started again", "")
		if _, err := c.Hold(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		expect("held", "its copy is the primary, is about to be, or was")
	})
}

// Three answers: how far it goes; that it has lost nothing since it told that; and less than it had, which is a loss.
func TestACopyThatCannotTellHowFarItGoesMayHaveLostNothing(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.is(false, "same")
		if told := c.Tell(t.Context()); !told.Same || told.Position != nil || told.Had != 0 || told.Why != "" {
			t.Errorf("before it has followed any: %+v", told)
		}
		c.Learn(other)
		time.Sleep(2 * time.Second)
		if got := c.Shown(); got.Followed != 0 || got.Position != nil || c.Follows(nil, false) == "" {
			t.Errorf("that is no proof that it has the primary's data: %+v", got)
		}
		s.is(false, "40")
		time.Sleep(2 * time.Second)
		c.Learn(Active{})
		for position, want := range map[string]DataState{
			"same": {Same: true}, "same\n": {Same: true}, "same 50": {Why: "position: no number: same 50"}, "39": {Why: "it has lost data: its position is 39, and was 40"},
		} {
			s.is(false, position)
			if told := c.Tell(t.Context()); told.Same != want.Same || told.Why != want.Why || told.Position != nil || told.Had != 40 || told.Led {
				t.Errorf("position %q: %+v", position, told)
			}
		}
	})
}

// What a copy had told when it was chosen is on its disk before it is promoted: it may be killed before it tells anything more.
func TestWhatAChosenCopyHadIsKept(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		c.Learn(other)
		s.is(false, "40")
		time.Sleep(2 * time.Second)
		c.Learn(Active{})
		time.Sleep(2 * time.Second) // it has been looked at, and is not again for a while
		s.is(false, "55")
		if told := c.Tell(t.Context()); told.Position == nil || *told.Position != 55 {
			t.Fatalf("%+v", told)
		}
		if err := c.Promotion(12).Note(1); err != nil {
			t.Fatal(err)
		}
		if kept, err := load(s, "n", "db"); err != nil || kept.Position != 55 || kept.Followed != 12 {
			t.Errorf("kept: %+v, %v", kept, err)
		}
		s.is(false, "40")
		if told := c.Tell(t.Context()); told.Position != nil || told.Why != "it has lost data: its position is 40, and was 55" {
			t.Errorf("with older data: %+v", told)
		}
	})
}

// What a primary had is on its disk: after a loss of power with older data it does not count.
func TestWhatAPrimaryHadIsKept(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		if err := c.Promotion(12).Note(1); err != nil {
			t.Fatal(err)
		}
		tree, run := held(t, c)
		s.is(true, "70")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Promotion(12).Attend(ctx); err != nil {
			t.Fatal(err)
		}
		if kept, err := load(s, "n", "db"); err != nil || kept.Position != 70 || kept.Followed != 12 {
			t.Errorf("kept: %+v, %v", kept, err)
		}
		run.Discard()
		if err := tree.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Free()
		s.is(false, "69")
		time.Sleep(3 * time.Second)
		if told := c.Tell(t.Context()); told.Position != nil || told.Had != 70 || !told.Led || told.Why != "it has lost data: its position is 69, and was 70" {
			t.Errorf("%+v", told)
		}
		s.is(false, "0")
		if told := c.Tell(t.Context()); told.Position != nil || !told.Empty || told.Why == "" {
			t.Errorf("emptied: %+v", told)
		}
		c.Learn(other)
		s.is(false, "80")
		time.Sleep(3 * time.Second)
		c.Learn(Active{})
		if told := c.Tell(t.Context()); told.Led || told.Had != 80 {
			t.Errorf("it follows: %+v", told)
		}
	})
}

// P1: what says that it is the primary, and was not promoted by a term, is killed, and comes back as a follower.
func TestAPrimaryWithoutTheLockIsKilled(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.is(true, "5")
		time.Sleep(5*time.Second + 500*time.Millisecond) // between two looks
		if s.heard() != "start, start" || s.kills != 1 {
			t.Errorf("%s, %d kills", s.heard(), s.kills)
		}
		s.is(true, "5")
		if told := c.Tell(t.Context()); told.Position != nil {
			t.Errorf("%+v", told)
		}
	})
}

// A term gets the running program, and the copy comes back only when the term's tree is dead.
func TestATermTakesTheProgramOver(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		tree, err := c.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run, err := c.Hold(t.Context(), tree)
		if err != nil || run == nil {
			t.Fatal(run, err)
		}
		if told := c.Tell(t.Context()); told.Position != nil {
			t.Errorf("it tells a position while a term has it: %+v", told)
		}
		if err := c.Promotion(12).Note(1); err != nil {
			t.Fatal(err)
		}
		if err := c.Promotion(12).Promote(nil, nil)(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if s.heard() != "start, promote " || s.kills != 0 {
			t.Errorf("%s, %d kills", s.heard(), s.kills)
		}
		if again, err := c.Hold(t.Context(), tree); again != nil || err == nil {
			t.Error("two terms have it")
		}
		run.Discard()
		if err := tree.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Free()
		time.Sleep(3 * time.Second)
		if got := c.Shown(); s.heard() != "start, promote , start" || got.Followed != 12 || got.Role != Follower {
			t.Errorf("%s, %+v", s.heard(), got)
		}
	})
}

// A term that wants the programs of a copy that is ending with its supervisor does not wait for them.
func TestACopyThatEndsIsGivenToNoTerm(t *testing.T) {
	for _, after := range []time.Duration{time.Second, endPatience + proofPatience} { // while its processes do not die, and after that
		follows(t, func(t *testing.T, s *stage, c *Copy) {
			tree, err := c.Tree(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.lasting = true
			s.cease()
			time.Sleep(after)
			ctx, enough := context.WithTimeout(t.Context(), time.Minute)
			defer enough()
			if run, err := c.Hold(ctx, tree); run != nil || !errors.Is(err, errClosed) {
				t.Errorf("%v after the end began: %v, %v", after, run, err)
			}
		})
	}
}

// What a health check said of a follower is over with that: a term has had its programs, and they were started anew.
func TestAFollowerThatWasIllIsNotIllForEver(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.is(false, "40")
		c.Learn(other)
		time.Sleep(2 * time.Second)
		c.show(func(s *Shown) { s.Ill = "exit code 1" })
		tree, run := held(t, c)
		run.Discard()
		if err := tree.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Free()
		time.Sleep(5 * time.Second)
		if got := c.Shown(); got.Ill != "" || got.Role != Follower || c.Follows(nil, false) != "" {
			t.Errorf("%+v: %s", got, c.Follows(nil, false))
		}
	})
}

// Whom a copy follows it may follow on its own, until it is a primary itself.
func TestACopyIsTiedToWhomItFollowsUntilItIsThePrimary(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		expect := func(when string, want Source) {
			t.Helper()
			kept, err := load(s, "n", "db")
			if told := c.Tell(t.Context()); err != nil || kept.Source != want || c.Shown().Source != want || told.Source != want {
				t.Errorf("%s: kept %+v, shown %+v, told %+v, want %+v (%v)", when, kept.Source, c.Shown().Source, told.Source, want, err)
			}
		}
		expect("at first", Source{})
		s.is(false, "40")
		c.Learn(other)
		time.Sleep(2 * time.Second)
		expect("it follows", Source{"m", "10.0.0.2"})
		c.Learn(Active{})
		if err := c.Promotion(12).Note(1); err != nil {
			t.Fatal(err)
		}
		expect("it is about to be promoted", Source{"m", "10.0.0.2"})
		_, run := held(t, c)
		defer run.Discard()
		s.is(true, "41")
		attending, enough := context.WithTimeout(t.Context(), 5*time.Second)
		defer enough()
		if err := c.Promotion(12).Attend(attending); err != nil {
			t.Fatal(err)
		}
		expect("it is the primary", Source{})
	})
}

// A promoted copy that says that it is a follower is no primary any more.
func TestADemotedPrimaryIsNoticed(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		_, run := held(t, c)
		defer run.Discard()
		s.is(true, "70")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Promotion(3).Attend(ctx); err != nil {
			t.Fatal(err)
		}
		s.is(false, "70")
		if err := c.Promotion(3).Attend(t.Context()); !errors.Is(err, ErrDemoted) {
			t.Fatal(err)
		}
	})
}
