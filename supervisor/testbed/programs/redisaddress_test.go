package programs

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// P2: the address of a replicated service is on one host at most, and whoever asks there asks the primary. So is a second process.
func TestTheAddressOfReplicatedRedisIsThePrimarys(t *testing.T) {
	r := redisTrio(t)
	vip := freeAddress(r.a, count.Add(1))
	for _, h := range r.hosts {
		file := r.files[h.Name]
		text, err := os.ReadFile(file)
		must.OK(t, err)
		config := strings.Replace(string(text), "    stop_timeout:", "    address: "+vip+"\n    stop_timeout:", 1)
		must.OK(t, os.WriteFile(file, []byte(withBeside(config, r.dirs[h.Name])), 0o644))
	}
	for i, h := range r.hosts {
		for _, other := range r.hosts[i+1:] {
			watchBearers(t, vip, h, other)
		}
	}
	for _, h := range r.hosts {
		r.up(t, h)
	}
	p := r.primary(t)
	watchPrimaries(t, r.asker, r.addrs()...)
	r.l = watch.NewLedger(t, r.dial, vip+r.port) // its client knows no other address
	askThere(t, r, vip)
	served := func(what string, previous *kit.Host) {
		t.Helper()
		from := r.l.Sent()
		kit.Until(t, 2*soon, "the primary acknowledges writes at the address again: "+what, func() bool {
			_, ok := r.l.AckedBy(from)
			return ok
		})
		t.Logf("%s: no write was acknowledged for %v", what, r.l.Longest())
		if p = r.primary(t); p == previous {
			t.Errorf("%s: %s is the primary again", what, p.Name)
		}
		r.l.Check(t, p.Addr+r.port)
		kit.Until(t, 2*soon, "what is to run beside the primary runs there alone", func() bool {
			return len(kit.Processes("sleep", r.dirs[p.Name])) == 1 && !slices.ContainsFunc(r.others(p), func(h *kit.Host) bool {
				return len(kit.Processes("sleep", r.dirs[h.Name])) > 0
			})
		})
	}
	another := func(than *kit.Host) {
		t.Helper()
		kit.Until(t, 2*soon, "another copy is promoted", func() bool {
			return slices.ContainsFunc(r.others(than), func(h *kit.Host) bool {
				primary, _, err := r.state(h.Addr+r.port, "")
				return err == nil && primary
			})
		})
	}
	served("start", nil)

	before, to := r.heads(p), r.others(p)[0]
	old := p
	r.order(t, "switchover", "redis", "--to", to.Name)
	served("switchover", p)
	if now := r.heads(old); len(before) == 0 || !slices.Equal(before, now) {
		t.Errorf("it was demoted, and its server is %v, not %v", now, before)
	}
	r.order(t, "switchover", "redis", "--to", old.Name)
	served("switchover back", to)

	r.sups[p.Name].Kill9() // and no supervisor is started there: its guardians remove the address
	old = p
	another(old)
	r.up(t, old)
	served("supervisor killed", old)

	r.kill(t, p)
	served("primary killed", nil)

	old = p
	p.CutFrom(t, r.Addrs()...)
	another(old)
	old.Heal(t)
	served("host cut off from ZooKeeper", old)

	r.order(t, "restart", r.service)
	served("restart", nil)
}

// askThere demands that whoever connects to an address of the service finds the primary there, or nobody.
func askThere(t *testing.T, r *trio, addr string) {
	t.Helper()
	var over atomic.Bool
	done, asked, followers := make(chan struct{}), 0, 0
	go func() {
		defer close(done)
		for again := time.NewTicker(5 * time.Millisecond); !over.Load(); <-again.C {
			primary, _, err := r.state(addr+r.port, "")
			if err == nil {
				asked++
			}
			if err == nil && !primary {
				followers++
			}
		}
	}()
	t.Cleanup(func() {
		over.Store(true)
		if <-done; followers > 0 || asked < 200 {
			t.Errorf("of %d answers at the address, %d were a follower's", asked, followers)
		}
	})
}
