package supervisor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
)

// A promise is waited out, but for a confirmation.
func TestOwnPromiseIsSatOut(t *testing.T) {
	for name, confirm := range map[string]time.Duration{"to its end": 0, "confirmed": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			v := &service{name: "db", log: hclog.NewNullLogger(), until: time.Hour + 5*time.Second, machine: clockOf(began)}
			confirmed, want := make(chan struct{}), 5*time.Second
			if confirm > 0 {
				want = confirm
				time.AfterFunc(confirm, func() { close(confirmed) })
			}
			if err := v.sitOut(t.Context(), confirmed); err != nil || time.Since(began) != want {
				t.Errorf("%s: waited %v: %v", name, time.Since(began), err)
			}
			over := errors.New("over")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(over)
			v.until = 2 * time.Hour
			if err := v.sitOut(ctx, nil); !errors.Is(err, over) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// clockOf is a machine that has nothing but a clock.
type aClock struct {
	Machine
	began time.Time
}

func clockOf(began time.Time) Machine { return aClock{began: began} }

func (c aClock) Now() time.Duration { return time.Hour + time.Since(c.began) }

// A member that has gone is counted on for a while, and one that came back as another one is that one at once.
func TestMemberThatHasGoneIsCountedOnForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c, moved := election.Peer{Node: "b", Machine: "m", Agent: "b:1"}, election.Peer{Node: "c"}, election.Peer{Node: "b", Machine: "n", Agent: "b:2"}
		a := attendance{gone: map[election.Peer]time.Time{}}
		for _, step := range []struct {
			wait      time.Duration
			now, want []election.Peer
		}{
			{0, []election.Peer{c, b}, []election.Peer{b, c}},
			{0, []election.Peer{c}, []election.Peer{b, c}},
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}},
			{0, []election.Peer{b, c}, []election.Peer{b, c}},
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}}, // it counts from anew
			{50 * time.Second, []election.Peer{c}, []election.Peer{b, c}},
			{10 * time.Second, []election.Peer{c}, []election.Peer{c}},
			{0, []election.Peer{b, c}, []election.Peer{b, c}},
			{0, []election.Peer{moved, c}, []election.Peer{moved, c}},
		} {
			time.Sleep(step.wait)
			if got := a.count(step.now, time.Minute); !slices.Equal(got, step.want) {
				t.Errorf("of %v: counted on %v, want %v", step.now, got, step.want)
			}
		}
	})
}
