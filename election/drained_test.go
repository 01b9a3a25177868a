package election

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"
)

// A node learns at once that it is drained, why, and when that is over: the folder need not be there before.
func TestANodeLearnsThatItIsDrained(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("n1", func(ctx context.Context, s *Session) error {
			c, first, err := heeded(ctx, s)
			if err != nil || first.Drained != nil {
				t.Errorf("it is drained: %+v, %v", first, err)
				return err
			}
			watching, enough := context.WithCancel(ctx)
			told, over := make(chan Intents, 10), make(chan struct{})
			go func() { defer close(over); _ = c.Control.Watch(watching, func(i Intents) { told <- i }) }()
			defer func() { enough(); <-over }()
			<-told
			dir := DrainedDir(s.cfg.Root)
			try(s.ensure(ctx, []string{dir}))
			undrain := func(by string) error {
				v, err := s.exists(ctx, dir+"/n1")
				if err != nil {
					return err
				}
				return cmp.Or(s.set(ctx, dir, Undrained{"n1", v.stat.Czxid, by, time.Now()}.Encode(), -1), s.delete(ctx, dir+"/n1"))
			}
			since := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
			for _, step := range []struct {
				do   func() error
				want string
			}{
				{func() error { return s.create(ctx, dir+"/n1", Drained{since, "me", "disks", 0}.Encode(), 0) }, "drained by me: disks"},
				{func() error { return s.set(ctx, dir+"/n1", []byte("disks"), -1) }, "drained"}, // whatever it says
				{func() error { return undrain("bob@op") }, "undrained by bob@op"},
				{func() error { return s.create(ctx, dir+"/n1", nil, 0) }, "drained"},
				{func() error { return s.delete(ctx, dir+"/n1") }, "undrained by "}, // by hand: who undrained it before did not
				{func() error { return s.create(ctx, dir+"/n1", nil, 0) }, "drained"},
			} {
				try(step.do())
				i := <-told
				got := "undrained by " + i.Undrained
				if i.Drained != nil {
					if got = i.Drained.Words(); i.Drained.ID == 0 {
						t.Error("it has no identity")
					}
				}
				if got != step.want {
					t.Errorf("%q, not %q", got, step.want)
				}
			}
			return nil
		})
	})
}

func TestADrainIsToldWithItsAge(t *testing.T) {
	now := time.Date(2026, 7, 1, 10, 3, 0, 0, time.UTC)
	for want, d := range map[string]Drained{
		"drained by me@op 3m0s ago: disks": {Since: now.Add(-3 * time.Minute), By: "me@op", Why: "disks"}, "drained": {}, "drained 0s ago": {Since: now.Add(time.Hour)},
	} {
		if got := d.WordsAt(now); got != want || !strings.HasPrefix(got, "drained") {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
