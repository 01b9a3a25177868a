package guard

import (
	"testing"
	"time"
)

// A guardian knows exactly when a tree died if that lived until the lease ended. One that it found dead may have died at any time before.
func TestAClosingSaysHowExactlyItsDeathsAreKnown(t *testing.T) {
	for _, struck := range []bool{false, true} {
		l := &lease{trees: []*tree{
			{number: 1, znodes: []byte("a"), dead: true, diedAt: time.Second, struck: true},
			{number: 2, znodes: []byte("b"), dead: true, diedAt: time.Minute, struck: struck},
		}}
		if c, _ := l.closing(); c.Exactly != struck || c.DiedAt != time.Minute || len(c.Releases) != 2 {
			t.Errorf("struck %v: %+v", struck, c)
		}
	}
}
