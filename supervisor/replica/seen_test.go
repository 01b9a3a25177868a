package replica

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/config"
)

// looks has the copy look at the primary each second, and returns how a test says whether it is reached.
func (s *stage) looks(c *Copy, failures int) (blind func(bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conf.Replicated.SeenBy = &config.SeenBy{Exec: []string{"look"}, Interval: time.Second, Timeout: time.Second, Failures: failures, Quorum: config.QuorumAny}
	return func(yes bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.blind = yes
	}
}

// sees demands what is told, a while later.
func sees(t *testing.T, when string, c *Copy, after time.Duration, can, well bool) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	if got, ok := c.Sees(); ok != can || ok && (got.Well != well || (got.Why == "") != well || got.Of != other) {
		t.Errorf("%s: %+v, %v", when, got, ok)
	}
}

// A node tells that the primary is not reachable after so many failures in a row, and before it has looked it tells nothing.
func TestAFollowerTellsWhatItSeesOfThePrimary(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		told := 0
		blind := s.looks(c, 3)
		sees(t, "without a primary", c, 5*time.Second, false, false)
		if s.looked != "" {
			t.Error("it looks at nobody")
		}
		c.cfg.News = func() { told++ }
		blind(true)
		c.Learn(other)
		sees(t, "after two failures", c, 2900*time.Millisecond, false, false)
		sees(t, "after three", c, time.Second, true, false)
		if s.looked != "10.0.0.2" {
			t.Errorf("it looks at %q", s.looked)
		}
		blind(false)
		sees(t, "reached", c, 2*time.Second, true, true)
		blind(true)
		sees(t, "after two failures more", c, 2*time.Second, true, true)
		blind(false)
		sees(t, "which did not go on", c, 2*time.Second, true, true)
		before := told
		sees(t, "later", c, time.Minute, true, true)
		if told != before {
			t.Errorf("it tells %d times what has not changed", told-before)
		}
		again := other
		again.Token++
		c.Learn(again)
		if got, ok := c.Sees(); ok {
			t.Errorf("of another promotion it tells %+v", got)
		}
	})
}

// A check that cannot be run says nothing of the primary.
func TestALookThatCannotBeMadeSaysNothing(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		blind := s.looks(c, 3)
		c.Learn(other)
		sees(t, "reached", c, 2*time.Second, true, true)
		s.mu.Lock()
		s.noLook = true
		s.mu.Unlock()
		sees(t, "not run", c, time.Minute, false, false)
		s.mu.Lock()
		s.noLook = false
		s.mu.Unlock()
		blind(true)
		sees(t, "again", c, time.Minute, true, false)
	})
}

// Who does not follow, or is not well, cannot tell.
func TestACopyThatDoesNotFollowCannotTell(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		blind := s.looks(c, 1)
		blind(true)
		c.Learn(other)
		sees(t, "at first", c, 3*time.Second, true, false)
		c.show(func(s *Shown) { s.Ill = "exit code 1" })
		sees(t, "ill", c, 2*time.Second, false, false)
		c.show(func(s *Shown) { s.Ill = "" })
		sees(t, "well again", c, 3*time.Second, true, false)
		s.mu.Lock()
		s.program.end(1)
		s.mu.Unlock()
		synctest.Wait()
		sees(t, "ended", c, 0, false, false)
		sees(t, "started again", c, 5*time.Second, true, false)
		s.is(false, "") // it does not say that it has the data meanwhile
		c.mu.Lock()
		c.data.state.Toward, c.data.state.Followed = 0, 3
		c.mu.Unlock()
		sees(t, "of another promotion's data", c, 2*time.Second, false, false)
	})
}

// The ways that need no command look at the primary's address.
func TestTheWaysToLookAtThePrimary(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/n1" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	primary := Active{Node: "n1", Host: "h", Address: host}
	for _, c := range []struct {
		by   config.SeenBy
		well bool
	}{
		{config.SeenBy{TCP: "$UNDERSTUDY_ACTIVE_ADDRESS:" + port}, true},
		{config.SeenBy{TCP: "$UNDERSTUDY_ACTIVE_ADDRESS:1"}, false},
		{config.SeenBy{HTTP: "http://${UNDERSTUDY_ACTIVE_ADDRESS}:" + port + "/$UNDERSTUDY_ACTIVE_NODE"}, true},
		{config.SeenBy{HTTP: "http://${UNDERSTUDY_ACTIVE_ADDRESS}:" + port + "/$UNDERSTUDY_ACTIVE_HOST"}, false},
	} {
		c.by.Timeout = 5 * time.Second
		if err := (asking{}).see(t.Context(), c.by, primary); (err == nil) != c.well {
			t.Errorf("%+v: %v", c.by, err)
		}
	}
	for _, by := range []config.SeenBy{
		{TCP: "$UNDERSTUDY_ACTIVE_ADDRESS:$UNDERSTUDY_ACTIVE_PORT"}, {HTTP: "http://$UNDERSTUDY_ACTIVE_ADDRESS:${UNDERSTUDY_ACTIVE_PORT}/n1"},
	} {
		by.Timeout = 5 * time.Second
		if err := (asking{}).see(t.Context(), by, primary); !errors.Is(err, errNotAsked) {
			t.Errorf("%+v: without a port nothing is known of it: %v", by, err)
		}
		there := primary
		there.Address += ":" + port
		if err := (asking{}).see(t.Context(), by, there); err != nil {
			t.Errorf("%+v: %v", by, err)
		}
	}
}

// How far a copy is, and of which promotion: the primary says so as its followers do.
func TestACopySaysHowFarItIs(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		if at, ok := c.At(); ok {
			t.Errorf("of no promotion: %+v", at)
		}
		s.is(false, "40")
		c.Learn(other)
		time.Sleep(3 * time.Second)
		if at, ok := c.At(); !ok || at.Token != 9 || at.Position != 40 || time.Since(at.Time) > time.Second {
			t.Errorf("a follower: %+v", at)
		}
		_, run := held(t, c)
		defer run.Discard()
		s.is(true, "70")
		go func() { _ = c.Promotion(12).Attend(t.Context()) }()
		time.Sleep(3 * time.Second)
		if at, ok := c.At(); !ok || at.Token != 12 || at.Position != 70 || time.Since(at.Time) > time.Second {
			t.Errorf("the primary: %+v", at)
		}
		s.is(false, "70")
		time.Sleep(2 * time.Second)
	})
}

// Between two questions nobody is told that a copy without a position has one.
func TestAFollowerWithoutAPositionDoesNotSayThatAllIsWell(t *testing.T) {
	follows(t, func(t *testing.T, s *stage, c *Copy) {
		s.is(false, "")
		c.Learn(other)
		time.Sleep(2 * time.Second)
		told := 0
		c.mu.Lock()
		c.cfg.News = func() { told++ }
		c.mu.Unlock()
		time.Sleep(time.Minute)
		if got := c.Shown(); told != 0 || got.Why != "it has no position" {
			t.Errorf("told %d times: %+v", told, got)
		}
	})
}
