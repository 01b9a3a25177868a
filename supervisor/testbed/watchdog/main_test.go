// Package watchdog has a real watchdog reset a real machine: an emulated PC, whose device knows nothing of the kernel that it
// watches over, with a kernel of Debian's and Understudy on it. The servers, the standby and the clock are the test's own.
package watchdog

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

const (
	session = 30 * time.Second // the processor is emulated: one that stands still for five seconds misses nothing
	grace   = 2 * time.Second
	timeout = session / 3 // the device's

	// From the sending of the last write that ZooKeeper acknowledged to the earliest end of its session.
	leash = session * 7 / 12

	soon   = kit.Soon
	booted = 2 * time.Minute // it takes seconds; the processor is emulated, and may be busy with something else
)

func TestMain(m *testing.M) { program.Run(m) }

var (
	program kit.Program // owns what the tests share
	shared  = sync.OnceValue(func() *kit.Stage { return kit.NewStage(&program, 1, zktest.Config{TickTime: time.Second}) })
	count   atomic.Int64
)

// play is a service that a machine is active for, and a node on the test's own machine that stands by.
type play struct {
	*kit.Play
	a   *machine
	run kit.Run // of the machine's child
}

// newPlay boots the machine; words are its child's.
func newPlay(t *testing.T, mode string, words ...string) *play {
	t.Helper()
	return newPlayWith(t, "", mode, words...)
}

// newPlayWith has more keys of the service.
func newPlayWith(t *testing.T, keys, mode string, words ...string) *play {
	t.Helper()
	need.These(t, "machine")
	kit.NeedHosts(t)
	zktest.Need(t)
	t.TempDir() // goes last: the logs are in it
	o := kit.Options{Session: session, Grace: grace}
	p := &play{Play: kit.NewPlay(t, shared(), fmt.Sprint("s", count.Add(1)), o)}
	p.a = boot(t, p.Lab.Host(t, "a"), p.config(mode, append(words, "to="+p.keep(t), "every=50ms"))+keys)
	t.Cleanup(func() {
		p.CheckTokens(t)
		if t.Failed() {
			p.Show(t)
		}
	})
	p.run = p.On(t, booted, "a", 0)
	p.Standby(t, p.Lab.Host(t, "b"))
	return p
}

// config is the machine's.
func (p *play) config(mode string, words []string) string {
	text := fmt.Sprintf("node: a\nzookeeper: {servers: [%q], root: %s, lease: %v}\n", p.Servers[0], p.Options.Root, session/2)
	text += fmt.Sprintf("watchdog: {mode: %q, device: /dev/watchdog}\n", mode)
	text += fmt.Sprintf("services:\n  %s:\n    grace_delay: %v\n    command: [/bin/child", p.Options.Service, grace)
	for _, word := range words {
		text += fmt.Sprintf(", %q", word)
	}
	return text + "]\n"
}

// keep keeps the accounts of the machine's children, by the test's clock, and returns where they are to send their signs of life.
// What is under way when a machine is reset may arrive after that: a child is never taken to have ended too early.
func (p *play) keep(t *testing.T) (addr string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", p.Lab.Addr()+":0")
	must.OK(t, err)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		accounts := map[string]*tick.Account{}
		for b := make([]byte, 256); ; {
			n, _, err := conn.ReadFrom(b)
			if err != nil {
				return // closed
			}
			name := string(b[:n])
			if accounts[name] == nil {
				if accounts[name], err = tick.Open(p.File(name), tick.Now()); err != nil {
					t.Error(err)
					return
				}
			}
			accounts[name].Beat()
		}
	})
	t.Cleanup(func() {
		conn.Close()
		keeping.Wait()
	})
	return conn.LocalAddr().String()
}

// last is when a process of the machine's first child was seen last.
func (p *play) last() int64 {
	for _, r := range p.Runs() {
		if r.ID == p.run.ID {
			return r.Last
		}
	}
	return 0
}
