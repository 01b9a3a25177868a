package replica

import (
	"testing"
	"time"

	"understudy/supervisor/config"
)

// A copy that never says what it is is of no more use than one that cannot follow: it is prepared, and cloned in the end, and its node says so
// until it has the primary's data.
func TestACopyWhoseRoleIsNotKnownIsMendedAsOneThatCannotFollow(t *testing.T) {
	followsWith(t, reclones, nil, func(t *testing.T, s *stage, c *Copy) {
		fails := func(when, want string) {
			t.Helper()
			if got := c.Fails(); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, follow 10.0.0.2")
		s.ends("role", 1)
		settles(t, s, 1900*time.Millisecond, "")
		fails("after one failure", "")
		settles(t, s, 500*time.Millisecond, "prepare 10.0.0.2, start")
		fails("after two", "role: exit code 1")
		settles(t, s, 5*time.Second, "reclone 10.0.0.2, start")
		settles(t, s, time.Hour, "")
		fails("it is cloned once", "role: exit code 1")
		s.ends("role", 0)
		settles(t, s, time.Minute, "follow 10.0.0.2")
		fails("it follows", "")
		s.ends("role", 1)
		c.Learn(Active{})
		settles(t, s, time.Hour, "")
		fails("without a primary", "")
	})
	followsWith(t, config.Replicated{}, nil, func(t *testing.T, s *stage, c *Copy) {
		s.ends("follow", 1)
		c.Learn(other)
		time.Sleep(time.Minute)
		if got := c.Fails(); got != "follow: exit code 1" {
			t.Errorf("%q", got)
		}
		c.Learn(third)
		if got := c.Fails(); got != "" {
			t.Errorf("another one: %q", got)
		}
	})
}

// What a previous run has left behind, such as a file, says nothing of a program that has not begun.
func TestTheRoleOfACopyIsAskedOnceItsProgramHasBegun(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		c.Learn(other)
		settles(t, s, 2*time.Second, "start, follow 10.0.0.2")
		s.mu.Lock()
		s.slow, s.marker = true, true
		s.program.end(1)
		s.mu.Unlock()
		settles(t, s, time.Minute, "start, follow 10.0.0.2")
	})
}
