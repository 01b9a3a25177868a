package zkfaults_test

import (
	"bytes"
	"testing"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

func TestContractASessionsPasswordFollowsFromItsID(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		for range 3 {
			c := s.client(t)
			if want := zkmem.Password(c.Session.SessionID); !bytes.Equal(c.Session.Password, want) {
				t.Errorf("session %#x has password %x, not %x", c.Session.SessionID, c.Session.Password, want)
			}
		}
	})
}

func TestContractAStrangerClosesASessionByItsIDAlone(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, other := s.client(t), s.client(t)
		e := s.root + "/e"
		c.want(createAs(e, "", open, 1), "ok "+e)
		var stat jute.Stat
		if _, err := other.Call(jute.OpExists, jute.PathWatch{Path: e}, &stat); err != nil {
			t.Fatal(err)
		}
		stranger := s.hello(t, jute.ConnectRequest{Timeout: 2000, SessionID: stat.EphemeralOwner, Password: zkmem.Password(stat.EphemeralOwner)})
		if got := c.dead(); got != "closed" {
			t.Errorf("the old connection: %s", got)
		}
		stranger.want(request{op: jute.OpCloseSession}, "ok")
		other.want(sync, "ok /")
		other.want(exists(e, false), "no node")
	})
}
