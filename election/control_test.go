package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// heeded stands, and returns with the first wishes.
func heeded(ctx context.Context, s *Session) (*Candidate, Intents, error) {
	c, _, err := s.NewCandidate(ctx, "svc", Race)
	if err != nil {
		return nil, Intents{}, err
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var first Intents
	err = c.Control.Watch(ctx, func(w Intents) { first = w; enough() })
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return c, first, err
}

func TestADeletedControlIsMadeAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("n1", func(ctx context.Context, s *Session) error {
			c, wishes, err := heeded(ctx, s)
			try(err)
			if _, err := s.multi(ctx, &zk.DeleteRequest{Path: c.paths.Control(), Version: -1}); err != nil {
				return err
			}
			o, err := c.Wait(ctx)
			try(err)
			if claim, err := c.Take(ctx, o.Under(wishes), BreadCrumb{}); claim != nil || err != nil {
				t.Errorf("the lock was taken though nobody knows what is wanted: %v, %v", claim, err)
			}
			if _, wishes, err = heeded(ctx, s); err != nil {
				return err
			}
			claim, err := c.Take(ctx, o.Under(wishes), BreadCrumb{})
			if claim == nil || err != nil {
				t.Errorf("the lock is not taken: %v", err)
			}
			return nil
		})
	})
}

func TestPreferenceGoesWithTheLock(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("n1", func(ctx context.Context, s *Session) error {
			c, wishes, err := heeded(ctx, s)
			try(err)
			try(c.Prefer(ctx, 10))
			o, err := c.Wait(ctx)
			try(err)
			claim, err := c.Take(ctx, o.Under(wishes), BreadCrumb{})
			if err != nil || claim == nil {
				t.Fatalf("not taken: %v", err)
			}
			if _, wishes, err = heeded(ctx, s); err != nil || wishes.Rival("n2", 9) != "n1" || wishes.Rival("n2", 10) != "" {
				t.Errorf("others see %+v, %v", wishes, err)
			}
			try(claim.Release(ctx))
			if _, wishes, err = heeded(ctx, s); err != nil || len(wishes.Preferred) > 0 {
				t.Errorf("after the release others see %+v, %v", wishes, err)
			}
			return c.Prefer(ctx, 11) // as it does when it stands again
		})
	})
}

func TestRivalIsWhoIsPreferredMost(t *testing.T) {
	for _, c := range []struct {
		names    []string
		self     string
		priority int
		want     string
	}{
		{nil, "a", 0, ""},
		{[]string{"5-b"}, "a", 0, "b"},
		{[]string{"5-b"}, "a", 5, ""},
		{[]string{"5-b", "7-c-d"}, "a", 0, "c-d"},
		{[]string{"7-c", "7-b"}, "a", 0, "b"},
		{[]string{"7-a"}, "a", 0, ""},
		{[]string{"x", "-", "9x-b", "-3-b", "999999999999999999999-b"}, "a", 0, ""},
	} {
		w := Intents{Preferred: Priorities(c.names)}
		if got := w.Rival(c.self, c.priority); got != c.want {
			t.Errorf("%v: the rival of %s with %d is %q, want %q", c.names, c.self, c.priority, got, c.want)
		}
	}
}

func TestAControlThatCannotBeReadPauses(t *testing.T) {
	for data, paused := range map[string]bool{"": false, "{}": false, `{"paused":true,"later":1}`: true, `{"paused":`: true, "null": false, `[]`: true} {
		if got := ParseControl([]byte(data)); got.Paused != paused {
			t.Errorf("%q: paused %v", data, got.Paused)
		}
	}
}

func TestWishesAreToldOnEachChange(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("n1", func(ctx context.Context, s *Session) error {
			c, _, err := heeded(ctx, s)
			try(err)
			told := make(chan Intents, 8)
			heeding, enough := context.WithCancel(ctx)
			over := make(chan error, 1)
			defer enough()
			go func() { over <- c.Control.Watch(heeding, func(w Intents) { told <- w }) }()
			<-told
			for _, data := range []string{`{"paused":true}`, `{}`} {
				try(s.set(ctx, c.paths.Control(), []byte(data), -1))
				if got := <-told; got.Control.Paused != (data != `{}`) {
					t.Errorf("after %s: %+v", data, got)
				}
			}
			began := time.Now()
			try(c.Prefer(ctx, 3))
			if got := <-told; got.Preferred["n1"] != 3 || time.Since(began) > time.Second {
				t.Errorf("told %+v after %v", got, time.Since(began))
			}
			enough()
			<-over
			return nil
		})
	})
}
