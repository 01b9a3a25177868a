package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
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
