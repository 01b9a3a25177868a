package e2e

import (
	"strings"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

// The power of the active node fails, and a client without credentials keeps its session alive by pings. The status names the lock and the
// command that deletes it. Once an operator has done that, the standby waits for the lease of a session that lives, and takes over.
func TestTheStatusNamesALockWhoseSessionIsKeptAlive(t *testing.T) {
	p := brief(t, stage(t))
	host := p.Lab.Host(t, "a")
	host.PowerOn(t)
	_, _, run := p.Pair(t, host, p.Lab.Host(t, "b"))
	lock := p.Path("services", p.Options.Service, "ActiveStandbyElectorLock")
	_, stat, err := p.Conn().Get(lock)
	must(t, err)
	host.PowerOff(t)
	kept, err := zktest.DialRaw(p.Options.ZK[0], jute.ConnectRequest{Timeout: 4000, SessionID: stat.EphemeralOwner, Password: zkmem.Password(stat.EphemeralOwner)})
	must(t, err)
	defer kept.Close()
	command := ""
	kit.Until(t, 10*session, "the status names the lock", func() bool {
		_, err := kept.Send(jute.OpPing)
		must(t, err)
		var status struct {
			Services []struct{ Faults []struct{ What, Do string } }
		}
		p.ask(t, &status, "status", "--json")
		for _, f := range status.Services[0].Faults {
			if strings.Contains(f.What, "has sent no heartbeat") && strings.HasSuffix(f.Do, " delete "+lock) {
				command = f.Do
			}
		}
		return command != ""
	})
	if _, now, err := p.Conn().Get(lock); err != nil || now.Czxid != stat.Czxid || len(p.Running()) > 0 {
		t.Errorf("the lock was taken while its session lived: %v", err)
	}
	t.Log(command)
	must(t, p.Conn().Delete(lock, -1))
	next := p.On(t, 4*session, "b", run.First)
	if waited := time.Duration(next.First - p.Claimed(t, "b")); waited < session {
		t.Errorf("b waited for %v", waited)
	}
}
