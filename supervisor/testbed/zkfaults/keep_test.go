package zkfaults_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

func TestASessionThatIsKeptEndsOnlyWhenItIsClosedOrKeptNoLonger(t *testing.T) {
	inMemory(t, zkfaults.Config{TickTime: time.Second}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		kept, closed := greet(t, dial("1.1.1.1"), fourSeconds), greet(t, dial("1.1.1.2"), fourSeconds)
		end := mem.Keep(kept.Session.SessionID)
		mem.Keep(closed.Session.SessionID)
		_ = kept.Close()
		time.Sleep(time.Minute)
		if n := len(mem.Sessions()); n != 2 {
			t.Errorf("%d of 2 sessions that are kept live", n)
		}
		other := greet(t, dial("1.1.1.3"), jute.ConnectRequest{Timeout: 4000, SessionID: closed.Session.SessionID, Password: closed.Session.Password})
		if _, err := other.Call(jute.OpCloseSession, nil, nil); err != nil {
			t.Error(err)
		}
		if slices.Contains(mem.Sessions(), closed.Session.SessionID) {
			t.Error("one that is closed lives")
		}
		end()
		time.Sleep(3 * time.Second)
		if !slices.Contains(mem.Sessions(), kept.Session.SessionID) {
			t.Error("who kept it was there until just now")
		}
		time.Sleep(3 * time.Second)
		if slices.Contains(mem.Sessions(), kept.Session.SessionID) {
			t.Error("it lives though it is kept no longer")
		}
	})
}
