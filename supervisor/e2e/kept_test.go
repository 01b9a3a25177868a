package e2e

import (
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/election/zktest"
	"understudy/supervisor/e2e/kit"
)

// strangle attaches to a session as anybody can who knows its id, and keeps it alive by pings. What it returns tells whether it
// still does.
func strangle(t *testing.T, server string, id int64) (lives func() error) {
	t.Helper()
	raw, err := zktest.DialRaw(server, jute.ConnectRequest{Timeout: int32(session.Milliseconds()), SessionID: id, Password: zkmem.Password(id)})
	if err != nil {
		t.Fatalf("a stranger cannot attach to session %#x: %v", id, err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		pause := time.NewTicker(session / 8)
		defer pause.Stop()
		for {
			if _, err := raw.Call(jute.OpPing, nil, nil); err != nil {
				stopped <- err
				return
			}
			select {
			case <-pause.C:
			case <-stop:
				stopped <- nil
				return
			}
		}
	}()
	t.Cleanup(func() { _ = raw.Close() })
	return func() error {
		close(stop)
		return <-stopped
	}
}

// The node that is active is gone, but somebody keeps its session: after two session timeouts without a heartbeat, and up to one
// until that is looked at, the lock is deleted; then one is added to the grace delay, as after any deletion of a lock.
func TestLockIsTakenThoughAStrangerKeepsItsSession(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t), "daemons=1", "every=2ms")
	a, b, run := p.Pair(t, p.Lab.Host(t, "kept"), p.Lab.Host(t, "next"))
	lock, ok := p.Lock(p.Options.Service)
	if !ok {
		t.Fatal("there is no lock")
	}
	a.Host.Cut(t)
	lives := strangle(t, p.Servers[0], lock.Owner)
	next := p.On(t, 4*session+grace+soon, b.Host.Name, run.First)
	gap := kit.Gap(p.Runs()[0], next)
	t.Logf("%v without the program", gap)
	if gap < 2*session {
		t.Errorf("the lock was taken, or the delay over, too early: %v without the program", gap)
	}
	if err := lives(); err != nil {
		t.Errorf("the session did not live: that shows nothing: %v", err)
	}
	a.Host.Heal(t)
	p.Stands(t, a.Host)
	p.Alone(t, time.Second, b.Host.Name)
}
