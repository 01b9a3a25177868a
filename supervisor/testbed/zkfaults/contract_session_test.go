package zkfaults_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zktest"
)

func TestContractTimeoutsAreNegotiated(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		for ask, want := range map[int32]int32{0: 200, -5: 200, 150: 200, 200: 200, 777: 777, 2000: 2000, 90000: 2000} {
			if got := s.hello(t, jute.ConnectRequest{Timeout: ask}).Session; got.Timeout != want || got.NoReadOnly ||
				len(got.Password) != 16 || got.SessionID == 0 || got.ProtocolVersion != 0 || got.ReadOnly {
				t.Errorf("asked for %d: %+v", ask, got)
			}
		}
		if got := s.hello(t, jute.ConnectRequest{Timeout: 500, NoReadOnly: true}).Session; !got.NoReadOnly {
			t.Error("an old client was told of read-only mode")
		}
	})
}

func TestContractSessionsTakeAZxidAtBothEnds(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		other := s.client(t)
		other.base = c.base
		other.want(createAs(s.root+"/e", "", open, 1), "ok "+s.root+"/e")
		other.want(exists(s.root+"/e", false), "ok zxid +2+2+2 version 0,0,0 of me len 0 kids 0")
		h, err := other.Call(jute.OpCloseSession, nil, nil)
		if err != nil || h.Zxid != c.base+3 {
			t.Errorf("closed at %+d, %v", h.Zxid-c.base, err)
		}
		if got := other.dead(); got != "closed" {
			t.Error(got)
		}
		c.want(exists(s.root+"/e", false), "no node")
		if h, _ := c.Call(jute.OpExists, jute.PathWatch{Path: s.root}, nil); h.Zxid != c.base+3 {
			t.Errorf("a read shows zxid %+d", h.Zxid-c.base)
		}
		if h, _ := c.Call(jute.OpPing, nil, nil); h.Zxid != c.base+3 || h.Xid != jute.XidPing {
			t.Errorf("a ping is answered with %+v", h)
		}
	})
}

func TestContractClosingASessionTellsItsOwnWatchesFirst(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c, other := s.client(t), s.client(t)
		e := s.root + "/e"
		c.want(createAs(e, "", open, 1), "ok "+e)
		c.want(exists(e, true), c.do(exists(e, false)))
		other.want(children(s.root, true), "ok e")
		other.want(get(e, true), `ok ""`)
		c.want(request{op: jute.OpCloseSession}, "deleted "+e+"; ok")
		other.want(sync, "deleted "+e+"; children "+s.root+"; ok /")
	})
}

func TestContractASessionIsTakenOverWithItsPassword(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		e := s.root + "/e"
		c.want(createAs(e, "", open, 1), "ok "+e)
		again := s.hello(t, jute.ConnectRequest{Timeout: 1500, SessionID: c.Session.SessionID, Password: c.Session.Password})
		if again.Session.SessionID != c.Session.SessionID || again.Session.Timeout != 1500 ||
			string(again.Session.Password) != string(c.Session.Password) {
			t.Errorf("%+v after %+v", again.Session, c.Session)
		}
		if got := c.dead(); got != "closed" {
			t.Errorf("the old connection: %s", got)
		}
		again.mark()
		again.want(exists(e, false), "ok zxid +0+0+0 version 0,0,0 of me len 0 kids 0")
		again.want(request{op: jute.OpCloseSession}, "ok")
		s.client(t).want(exists(e, false), "no node")
	})
}

func TestContractAWrongPasswordIsRefusedButBreaksTheOldConnection(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		e := s.root + "/e"
		c.want(createAs(e, "", open, 1), "ok "+e)
		_, err := zktest.DialRaw(s.addr, jute.ConnectRequest{Timeout: 2000, SessionID: c.Session.SessionID, Password: make([]byte, 16)})
		if !errors.Is(err, zktest.ErrRefused) {
			t.Fatal(err)
		}
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
		again := s.hello(t, jute.ConnectRequest{Timeout: 2000, SessionID: c.Session.SessionID, Password: c.Session.Password})
		again.mark()
		again.want(exists(e, false), "ok zxid +0+0+0 version 0,0,0 of me len 0 kids 0")
	})
}

func TestContractAnEndedSessionCannotBeTakenOver(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(request{op: jute.OpCloseSession}, "ok")
		for _, hello := range []jute.ConnectRequest{
			{Timeout: 2000, SessionID: c.Session.SessionID, Password: c.Session.Password},
			{Timeout: 2000, SessionID: 12345, Password: make([]byte, 16)},
		} {
			if _, err := zktest.DialRaw(s.addr, hello); !errors.Is(err, zktest.ErrRefused) {
				t.Error(err)
			}
		}
	})
}

func TestContractAClientFromTheFutureIsHungUpOn(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		_, err := zktest.DialRaw(s.addr, jute.ConnectRequest{Timeout: 2000, LastZxidSeen: c.base + 1000})
		if err == nil || errors.Is(err, zktest.ErrRefused) {
			t.Errorf("got %v, want a broken connection", err)
		}
		s.hello(t, jute.ConnectRequest{Timeout: 2000, LastZxidSeen: c.base}).want(ping, "ok")
	})
}

func TestContractASilentSessionEndsWithinATickOfItsTimeout(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		const timeout = 4 * tick
		for attempt := 1; ; attempt++ {
			watcher := s.client(t)
			c := s.hello(t, jute.ConnectRequest{Timeout: int32(timeout.Milliseconds())})
			e := fmt.Sprint(s.root, "/e", attempt)
			c.want(createAs(e, "", open, 1), "ok "+e)
			watcher.want(exists(e, true), watcher.do(exists(e, false)))
			sent := time.Now()
			c.want(ping, "ok")
			answered := time.Now()
			p, err := watcher.Next()
			if err != nil || p.Xid != jute.XidNotification {
				t.Fatal(p, err)
			}
			if early := time.Since(sent); early < timeout {
				t.Errorf("expired %v after the last sign of life", early)
			}
			late := time.Since(answered)
			if got := c.dead(); got != "closed" {
				t.Error(got)
			}
			if late <= timeout+2*tick {
				return
			}
			if attempt == 5 { // the machine's own slowness is not there each time
				t.Fatalf("expired only after %v", late)
			}
		}
	})
}

func TestContractAnySignOfLifeKeepsASession(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		t.Parallel()
		const timeout = 20 * tick
		c := s.hello(t, jute.ConnectRequest{Timeout: int32(timeout.Milliseconds())})
		beat := time.NewTicker(timeout / 5) // each may be late by far more than a busy machine makes it
		defer beat.Stop()
		for range 6 { // until it would have ended, and a tick more
			<-beat.C
			c.want(exists("/none", false), "no node")
		}
	})
}
