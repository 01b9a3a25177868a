package election

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestHistoryKeepsTheLastHundred(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			for i := range keepHistory + 20 {
				a := Activation{Token: int64(i), Start: time.Now()}
				entry, _, err := c.History.Record(ctx, a, "vanished", Ending{})
				try(err)
				if i%2 == 0 {
					now := time.Now()
					a.End, a.Reason = &now, "stopped"
					try(c.History.Amend(ctx, entry, a))
				}
			}
			names, err := s.children(ctx, c.Paths().History())
			if err != nil || len(names) != keepHistory {
				w.Errorf("%d entries, %v", len(names), err)
			}
			reasons := map[Reason]int{}
			for _, n := range names {
				v, err := s.getW(ctx, c.Paths().History()+"/"+n)
				try(err)
				a, err := decode[Activation](v.data)
				try(err)
				reasons[a.Reason]++
			}
			if got := fmt.Sprint(reasons); got != "map[:1 stopped:50 vanished:49]" && got != "map[stopped:50 vanished:50]" {
				w.Errorf("reasons %v", got)
			}
			return nil
		})
	})
}

func TestAnActivationIsRecordedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			for _, token := range []int64{1, 2, 2, 2} { // as after answers that were lost
				_, lost, err := c.History.Record(ctx, Activation{Token: token, Start: time.Now(), Fenced: "agent"}, "vanished", Ending{})
				try(err)
				if lost != nil && lost.Token == token {
					w.Errorf("it took over from itself: %+v", lost)
				}
			}
			past, err := c.History.Past(ctx, 10)
			if err != nil || len(past) != 2 || past[0].Reason != "vanished" || past[1].Token != 2 || past[1].End != nil {
				w.Errorf("%+v %v", past, err)
			}
			return nil
		})
	})
}

func TestMemberOfAPreviousSessionIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		alive := errors.New("alive")
		for i, role := range []Role{RoleActive, RoleStandby} {
			_ = w.open("a", func(ctx context.Context, s *Session) error {
				c := stand(ctx, s, Race)
				for range 2 {
					if err := c.Members.Announce(ctx, Member{Role: role, Health: "ok"}); err != nil {
						w.Errorf("%d: %v", i, err)
					}
				}
				v, err := s.getW(ctx, c.Paths().Members()+"/a")
				if !strings.Contains(string(v.data), string(role)) || v.stat.EphemeralOwner != s.ID() {
					w.Errorf("%d: %s %v", i, v.data, err)
				}
				return alive
			})()
		}
	})
}

func TestLostDataShowsAsAnotherBirth(t *testing.T) {
	inWorld(t, func(w *world) {
		var births []Birth
		for range 3 {
			w.within("a", func(ctx context.Context, s *Session) error {
				_, b, err := s.NewCandidate(ctx, "svc", Race)
				births = append(births, b)
				return err
			})
			if len(births) == 2 {
				time.Sleep(time.Second)
				w.zk.Wipe()
			}
		}
		if births[0] != births[1] || births[1] == births[2] {
			w.Errorf("births %v", births)
		}
	})
}

// Who leaves without knowing whether the lock is its own gives it back, if it is.
func TestWhoLeavesGivesBackALockThatItDoesNotKnowOf(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c, err := w.unanswered(ctx, s, Race)
			try(err)
			if held := w.held(s); held != crumbName+" "+lockName {
				w.Fatalf("held: %q", held)
			}
			try(c.Leave(ctx))
			if held := w.held(s); held != "" {
				w.Errorf("left: %q", held)
			}
			return nil
		})
	})
}
