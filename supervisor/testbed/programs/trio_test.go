package programs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// watchPrimaries demands that no two copies are primaries at once.
func watchPrimaries(t *testing.T, asker func(addr string) func() bool, addrs ...string) *watch.Primaries {
	t.Helper()
	m := watch.NewPrimaries(t, asker, addrs...)
	t.Cleanup(func() {
		times, first, rounds := m.Seen()
		t.Logf("%d times all were asked", rounds)
		if times > 0 {
			t.Errorf("two primaries, %d times, first %s", times, first)
		}
	})
	return m
}

// trio is a replicated program on three hosts.
type trio struct {
	*set
	copies
	hosts []*kit.Host
	dirs  map[string]string
	sups  map[string]*kit.Supervisor
	kept  string // where all nodes keep what their copies have followed
	m     *watch.Primaries
	l     *watch.Ledger
	gap   time.Duration // without an acknowledged write, at the last fault
}

// copies are how a program's copies are asked.
type copies struct {
	port, program string
	// state tells whether a copy is the primary, and whether it gets its data from the one at this address.
	state func(addr, from string) (primary, follows bool, err error)
	// asker keeps a connection over which it asks whether a copy is the primary.
	asker func(addr string) func() bool
	// dial is for a client, whose writes count once another copy has them, too.
	dial func(addr string) (watch.Store, error)
	// promote has a copy be a primary, as an operator may do by hand.
	promote func(addr string) error
	// swap is how a client asks for one of the registers.
	swap func(s watch.Store, key int, write int64) (int64, error)
}

func newTrio(t *testing.T, service, user string, c copies, needs ...string) *trio {
	s := newSet(t, service, needs...)
	r := &trio{set: s, copies: c, hosts: []*kit.Host{s.a, s.b, s.Lab.Host(t, "c")}, dirs: map[string]string{}, sups: map[string]*kit.Supervisor{}}
	for _, h := range r.hosts {
		r.dirs[h.Name], _, _ = kit.Share(t, user)
	}
	lasting, err := os.MkdirTemp("/var/tmp", "understudy-kept-") // `check` warns of /tmp
	must.OK(t, err)
	t.Cleanup(func() { must.Report(t, os.RemoveAll(lasting)) })
	must.OK(t, os.Chmod(lasting, 0o755))
	r.kept = filepath.Join(lasting, "kept")
	must.OK(t, os.Mkdir(r.kept, 0o755))
	return r
}

// copy makes a host's config of a file of the examples, as example does.
func (r *trio) copy(t *testing.T, h *kit.Host, name string, swaps ...string) {
	t.Helper()
	for i, other := range r.hosts {
		const address = ": {replicated: {address: "
		swaps = append(swaps, fmt.Sprint("db-", i+1, address, "10.0.0.", i+1), other.Name+address+other.Addr)
	}
	r.example(t, h, name, append(swaps, "services:", "http: {listen: \""+h.Addr+":8437\"}\nservices:",
		"    replicated:\n", "    replicated:\n      state_dir: "+r.kept+"\n")...)
}

// addrs are where the copies listen.
func (r *trio) addrs() (all []string) {
	for _, h := range r.hosts {
		all = append(all, h.Addr+r.port)
	}
	return all
}

func (r *trio) up(t *testing.T, h *kit.Host) {
	t.Helper()
	r.sups[h.Name] = r.start(t, h)
}

// begin starts all nodes and a client that writes, and has all copies watched. It returns the primary's host.
func (r *trio) begin(t *testing.T) *kit.Host {
	t.Helper()
	for _, h := range r.hosts {
		r.up(t, h)
	}
	p := r.primary(t)
	r.m = watchPrimaries(t, r.asker, r.addrs()...)
	r.l = watch.NewLedger(t, r.dial, r.addrs()...)
	r.l.Served(t, p.Addr+r.port)
	return p
}

// primary waits until one of the hosts is active, and well, and all others that run have its data.
func (r *trio) primary(t *testing.T) *kit.Host {
	t.Helper()
	var active *kit.Host
	var saw string
	var token int64
	settled := func() bool {
		active, saw = nil, ""
		told := map[string]election.CopyReport{}
		for _, h := range r.hosts {
			about, _, _ := r.Conn().Get(r.Path("services", r.service, "copies", h.Name))
			var one election.CopyReport
			_ = json.Unmarshal(about, &one)
			told[h.Name] = one
			primary, _, err := r.state(h.Addr+r.port, "")
			m, _ := r.Member(r.service, h.Name)
			saw += fmt.Sprintf("%s: %s %s, primary: %v, followed %d, toward %d, %v; ", h.Name, m.Role, m.Health, primary, one.Followed, one.Toward, err)
			if primary && m.Role == "active" && m.Health == "ok" && one.Promoted > 0 {
				active, token = h, one.Promoted
			}
		}
		if active == nil {
			return false
		}
		for _, h := range r.others(active) {
			_, follows, err := r.state(h.Addr+r.port, active.Addr)
			saw += fmt.Sprintf("%s follows %s: %v, %v; ", h.Name, active.Name, follows, err)
			if m, _ := r.Member(r.service, h.Name); !follows || m.Role != "standby" || told[h.Name].Followed != token || told[h.Name].Toward != 0 {
				return false
			}
		}
		return true
	}
	if !kit.Reached(2*soon, settled) {
		t.Fatalf("no primary with two followers: %s", saw)
	}
	return active
}

// reads demands that a load balancer sends writers to the primary, and readers to the others.
func (r *trio) reads(t *testing.T, primary *kit.Host) {
	t.Helper()
	for _, h := range r.hosts {
		part, other := "follower", "active"
		if h == primary {
			part, other = other, part
		}
		var text string
		var err error
		url := "http://" + h.Addr + ":8437/"
		if !kit.Reached(soon, func() bool {
			text, err = watch.Get(t.Context(), http.DefaultClient, url+part+"/"+r.service)
			return err == nil && text == part
		}) {
			t.Errorf("%s is no %s: %s, %v", h.Name, part, text, err)
		}
		if part == "follower" && !kit.Reached(soon, func() bool {
			_, err = watch.Get(t.Context(), http.DefaultClient, url+part+"/"+r.service+"?lag=1MiB")
			return err == nil
		}) {
			t.Errorf("%s is not near enough: %v", h.Name, err)
		}
		if _, err := watch.Get(t.Context(), http.DefaultClient, url+other+"/"+r.service); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("%s is %s, too: %v", h.Name, other, err)
		}
	}
}

// others are the hosts beside one.
func (r *trio) others(than *kit.Host) (all []*kit.Host) {
	for _, h := range r.hosts {
		if h != than {
			all = append(all, h)
		}
	}
	return all
}

// servers are the copy's processes on a host.
func (r *trio) servers(h *kit.Host) []int { return kit.Processes(r.program, r.dirs[h.Name]) }

// heads are the servers of a host but those that another one has forked for a while, as Redis does to write its data or send it.
func (r *trio) heads(h *kit.Host) (heads []int) {
	all := r.servers(h)
	for _, pid := range all {
		if parent, there := kit.Parent(pid); there && !slices.Contains(all, parent) {
			heads = append(heads, pid)
		}
	}
	return heads
}

// kill ends a host's copy, with all that it forked.
func (r *trio) kill(t *testing.T, h *kit.Host) {
	t.Helper()
	all := r.servers(h)
	kit.Signal(syscall.SIGKILL, all...)
	kit.Until(t, soon, "they are dead", func() bool { return !slices.ContainsFunc(all, kit.Alive) })
}

// empty takes a host's data away, and kills its copy, which comes back at once: the others must not follow it.
func (r *trio) empty(t *testing.T, h *kit.Host) {
	t.Helper()
	files, err := filepath.Glob(r.dirs[h.Name] + "/*")
	must.OK(t, err)
	for _, f := range files {
		if filepath.Base(f) != "log" {
			must.OK(t, os.RemoveAll(f))
		}
	}
	r.kill(t, h)
}

// byHand promotes a follower as an operator does, and waits until it is killed. It follows again then.
func (r *trio) byHand(t *testing.T, h *kit.Host) {
	t.Helper()
	before := r.heads(h)
	r.m.Allow(true)
	must.OK(t, r.promote(h.Addr+r.port))
	kit.Until(t, soon, "the second primary is killed", func() bool {
		now := r.heads(h)
		return len(now) == 1 && !slices.Equal(now, before)
	})
	r.m.Allow(false)
}

// upgrade has a host's supervisor become what is installed. Neither its server nor any other notices.
func (r *trio) upgrade(t *testing.T, h *kit.Host) {
	t.Helper()
	sup, before := r.sups[h.Name], r.heads(h)
	lock, _ := r.Lock(r.service)
	said := h.Ask(t, "reexec", "--pid", strconv.Itoa(sup.Pid), "--binary", kit.UnderstudyBinary(t))
	if said.Code != 0 {
		t.Errorf("reexec on %s ended with %d: %s%s", h.Name, said.Code, said.Out, said.Err)
	}
	if now := r.heads(h); !sup.Running() || len(before) != 1 || !slices.Equal(now, before) {
		t.Errorf("%s has upgraded: its supervisor runs: %v, its server was %v, and is %v", h.Name, sup.Running(), before, now)
	}
	if now, _ := r.Lock(r.service); now.Czxid != lock.Czxid || now.Owner != lock.Owner {
		t.Errorf("%s has upgraded: the lock was %+v, and is %+v", h.Name, lock, now)
	}
}

// restart ends all nodes, and starts all of them again.
func (r *trio) restart(t *testing.T, off, on []*kit.Host) {
	t.Helper()
	for _, h := range off {
		r.sups[h.Name].Stop(t)
	}
	for _, h := range on {
		r.up(t, h)
	}
}

// faults kills the first primary, then the next one's supervisor, and then hands over. It returns who was primary before that, what ran there,
// and who is primary now.
func (r *trio) faults(t *testing.T) (old *kit.Host, before []int, p *kit.Host) {
	t.Helper()
	p = r.begin(t)
	r.reads(t, p)

	r.kill(t, p)
	r.failed(t, "primary killed", nil) // its own copy may have the newest data, and be back in time
	p = r.primary(t)

	r.sups[p.Name].Kill9()
	r.failed(t, "supervisor killed", p)
	r.up(t, p)
	p = r.primary(t)

	to, before, old := r.others(p)[0], r.heads(p), p
	r.handOver(t, p, to)
	return old, before, r.primary(t)
}

// handOver orders a switchover, once the copy on that host counts.
func (r *trio) handOver(t *testing.T, from, to *kit.Host) {
	t.Helper()
	kit.Until(t, soon, "the copy on "+to.Name+" counts again", func() bool {
		return r.a.Ask(t, "switchover", r.service, "--to", to.Name, "--dry-run", "--zk", strings.Join(r.Servers, ","), "--root", r.root).Code == 0
	})
	r.order(t, "switchover", r.service, "--to", to.Name)
	if now := r.failed(t, "switchover", from); now != to {
		t.Errorf("%s is active, not %s", now.Name, to.Name)
	}
}

// failed waits until another host than the previous one serves, or any host where that is nil, and demands that nothing is lost. Only a
// write that is sent from now on counts: the answer to an earlier one may still be on its way from a primary that is dead.
func (r *trio) failed(t *testing.T, what string, previous *kit.Host) *kit.Host {
	t.Helper()
	from := r.l.Sent()
	var now string
	kit.Until(t, 2*soon, "a copy acknowledges writes again: "+what, func() bool {
		var ok bool
		now, ok = r.l.AckedBy(from)
		return ok && (previous == nil || now != previous.Addr+r.port)
	})
	r.gap = r.l.Longest()
	t.Logf("%s: no write was acknowledged for %v", what, r.gap)
	r.l.Check(t, now)
	for _, h := range r.hosts {
		if h.Addr+r.port == now {
			return h
		}
	}
	t.Fatal(now)
	return nil
}
