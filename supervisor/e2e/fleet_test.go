package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// fleet is many services in one file, each with accounts of its own.
type fleet struct {
	*play
	names    []string
	accounts map[string]*kit.Accounts
	every    time.Duration // how often a child keeps up its account
	more     map[string]string
}

func newFleet(t *testing.T, n int, every time.Duration) *fleet {
	t.Helper()
	f := &fleet{play: newPlay(t, stage(t)), accounts: map[string]*kit.Accounts{}, every: every, more: map[string]string{}}
	for i := range n {
		f.add(t, fmt.Sprintf("s%04d", i))
	}
	t.Cleanup(func() {
		for _, a := range f.accounts {
			a.CheckOverlap(t)
			a.CheckTokens(t)
		}
	})
	return f
}

func (f *fleet) add(t *testing.T, name string) {
	f.names = append(f.names, name)
	f.accounts[name] = kit.NewAccounts(t, f.Lab)
}

// text is a host's config.
func (f *fleet) text(h *kit.Host) string {
	var b strings.Builder
	o := f.Options
	fmt.Fprintf(&b, "node: %s\nzookeeper:\n  servers: [%s]\n  root: %s\n  session_timeout: %v\ndefaults: {grace_delay: %v}\nservices:\n",
		h.Name, strings.Join(o.ZK, ", "), o.Root, o.Session, o.Grace)
	for _, name := range f.names {
		fmt.Fprintf(&b, "  %s:\n    %s\n", name, command(f.accounts[name].Child("every="+f.every.String(), "mutex="+f.accounts[name].File("mutex"))))
		if more := f.more[name]; more != "" {
			fmt.Fprintf(&b, "    %s\n", more)
		}
	}
	return b.String()
}

// write puts a host's config in place of the former one, as editors do.
func (f *fleet) write(t *testing.T, h *kit.Host, dir string) string {
	t.Helper()
	path := filepath.Join(dir, h.Name+".yaml")
	must(t, os.WriteFile(path+".new", []byte(f.text(h)), 0o600))
	must(t, os.Rename(path+".new", path))
	return path
}

func (f *fleet) start(t *testing.T, h *kit.Host) (*kit.Supervisor, string) {
	t.Helper()
	path := f.write(t, h, t.TempDir())
	return f.fromFile(t, h, path), path
}

// all waits until every service has a run on the node that began after some moment, and returns the last of them.
func (f *fleet) all(t *testing.T, node string, after int64) (last int64) {
	t.Helper()
	kit.Until(t, 30*time.Second, "all services run on "+node, func() bool {
		last = 0
		for _, name := range f.names {
			runs := f.accounts[name].Runs()
			if len(runs) == 0 || runs[len(runs)-1].Node != node || runs[len(runs)-1].First <= after {
				return false
			}
			last = max(last, runs[len(runs)-1].First)
		}
		return true
	})
	return last
}

// stand waits until a node stands by for every service.
func (f *fleet) stand(t *testing.T, node string) {
	t.Helper()
	kit.Until(t, 30*time.Second, node+" stands by for all", func() bool {
		for _, name := range f.names {
			if m, ok := f.Member(name, node); !ok || m.Role != "standby" {
				return false
			}
		}
		return true
	})
}

// All services of a node move together. Children that show signs of life more often would be most of what the machine
// does: their mutexes find out every overlap. What else the machine does can only add, so the quickest move counts.
func TestTwoHundredServicesMoveWithinTwoSeconds(t *testing.T) {
	const most, moves = 2 * time.Second, 5
	f := newFleet(t, 200, 100*time.Millisecond)
	from, to := f.Lab.Machine(t, "a"), f.Lab.Machine(t, "b")
	first, _ := f.start(t, from)
	f.all(t, from.Name, 0)
	second, _ := f.start(t, to)
	var all []time.Duration
	for len(all) < moves {
		f.stand(t, to.Name)
		at := tick.Now()
		first.Kill9()
		all = append(all, time.Duration(f.all(t, to.Name, at)-at))
		if all[len(all)-1] <= most {
			break
		}
		from, to = to, from
		first = second
		second, _ = f.start(t, to)
	}
	t.Logf("the last of 200 ran %v after the kill", all)
	if slices.Min(all) > most {
		t.Errorf("the last of 200 services ran %v after the kill", all)
	}
	var pss int64
	kit.Until(t, soon, "supervisor and guardians take no more than 60 MB when idle", func() bool {
		pss = 0
		for _, pid := range append(second.Guardians(), second.Pid) {
			pss += kit.PSS(pid)
		}
		return pss <= 60e6
	})
	t.Logf("supervisor and guardians: %.1f MB PSS", float64(pss)/1e6)
}

// What does not change does not notice a change: no child is touched, none misses a tick.
func TestAChangedServiceDoesNotDisturbTheOthers(t *testing.T) {
	f := newFleet(t, 50, 5*time.Millisecond)
	a := f.Lab.Machine(t, "a")
	s, path := f.start(t, a)
	f.all(t, "a", 0)
	before := map[string]kit.Run{}
	for _, name := range f.names {
		before[name] = f.accounts[name].Runs()[0]
	}
	silence := func() (longest time.Duration) {
		for _, name := range f.names[:49] {
			if d := f.accounts[name].Silence(t); name != "s0007" {
				longest = max(longest, d)
			}
		}
		return longest
	}
	silence()
	kit.Throughout(t, time.Second, "nothing happens", func() bool { return len(f.accounts["s0000"].Runs()) == 1 })
	undisturbed := silence()
	stood := kit.Stood(t)
	edit := func(what string, change func()) {
		t.Helper()
		change()
		f.write(t, a, filepath.Dir(path))
		kit.Until(t, soon, "the config is taken up: "+what, func() bool { return s.Says("config taken up", what) })
	}
	at := tick.Now()
	edit(`changed=["s0007"]`, func() { f.more["s0007"] = "env: {CHANGED: again}" })
	f.accounts["s0007"].Next(t, soon, at)
	edit(`added=["fresh"]`, func() { f.add(t, "fresh") })
	f.accounts["fresh"].Next(t, soon, at)
	edit(`changed=["s0008"]`, func() { f.more["s0008"] = "stop_timeout: 3s" })
	edit(`removed=["s0049"]`, func() { f.names = append(f.names[:49:49], "fresh") })
	kit.Until(t, soon, "what was removed has ended", func() bool { return len(f.accounts["s0049"].Running()) == 0 })
	kit.Until(t, soon, "and says no more of itself", func() bool { return f.Gone("services", "s0049", "members", "a") })
	disturbed, still := silence(), stood()
	t.Logf("longest silence of any of the 48 others: %v, and %v before; the machine stood still for %v", disturbed, undisturbed, still)
	if disturbed-still > 3*undisturbed+100*time.Millisecond {
		kit.Late(t, "the others were silent for %v, and before for %v at most", disturbed, undisturbed)
	}
	for _, name := range f.names[:49] {
		runs := f.accounts[name].Runs()
		want := 1
		if name == "s0007" {
			want = 2
		}
		if len(runs) != want || runs[0].Pid != before[name].Pid {
			t.Errorf("%s was touched: %d runs", name, len(runs))
		}
	}
}

func TestAnInvalidConfigChangesNothingAndShows(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, 5*time.Millisecond)
	a := f.Lab.Machine(t, "a")
	s, path := f.start(t, a)
	f.all(t, "a", 0)
	good, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(good, []byte("  broken: {comand: [x]}\n")...), 0o600))
	where := fmt.Sprintf("%s:%d:12", path, strings.Count(string(good), "\n")+1)
	kit.Until(t, soon, "the log says what is wrong", func() bool { return s.Says("not taken up", where, "command") })
	status := func(words ...string) func() bool {
		return func() bool {
			r := a.Ask(t, "status", "--zk", strings.Join(f.Options.ZK, ","), "--root", f.Options.Root)
			text := strings.Join(strings.Fields(r.Out), " ")
			for _, word := range words {
				if !strings.Contains(text, word) {
					return false
				}
			}
			return r.Code == 0
		}
	}
	kit.Until(t, soon, "the status says it too", status("a keeps its former config"))
	for _, name := range f.names {
		if n := len(f.accounts[name].Runs()); n != 1 {
			t.Errorf("%s was touched: %d runs", name, n)
		}
	}
	must(t, os.WriteFile(path, good, 0o600))
	kit.Until(t, soon, "all is well again", func() bool { return !status("keeps its former config")() })
	must(t, os.WriteFile(path, []byte(strings.Replace(string(good), "session_timeout: 4s", "session_timeout: 5s", 1)), 0o600))
	kit.Until(t, soon, "what needs a restart is told", func() bool { return s.Says("zookeeper: changed", "restart") })
}

// Files that are replaced, links that are swapped as Kubernetes does it, and SIGHUP all have the config read.
func TestAConfigBehindLinksIsFollowed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 5*time.Millisecond)
	a := f.Lab.Machine(t, "a")
	dir := t.TempDir()
	version := func(n int) {
		d := filepath.Join(dir, fmt.Sprint("..v", n))
		must(t, os.Mkdir(d, 0o700))
		must(t, os.WriteFile(filepath.Join(d, "understudy.yaml"), []byte(f.text(a)), 0o600))
		must(t, os.Symlink(filepath.Base(d), filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version(1)
	path := filepath.Join(dir, "understudy.yaml")
	must(t, os.Symlink("..data/understudy.yaml", path))
	s := f.fromFile(t, a, path)
	f.all(t, "a", 0)
	for i, name := range []string{"second", "third"} {
		f.add(t, name)
		version(i + 2)
		f.accounts[name].Next(t, soon, 0)
	}
	if n := strings.Count(s.Log(), "config taken up"); n != 2 {
		t.Errorf("two changes were taken up %d times", n)
	}
}

// A directory in the midst of the way may be a link as well, and an included directory may be made anew.
func TestAConfigBehindALinkedDirectoryIsFollowed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 5*time.Millisecond)
	a := f.Lab.Machine(t, "a")
	dir := t.TempDir()
	for n, name := range []string{"", "second"} {
		if name != "" {
			f.add(t, name)
		}
		d := filepath.Join(dir, "rel", fmt.Sprint(n))
		must(t, os.MkdirAll(d, 0o700))
		must(t, os.WriteFile(filepath.Join(d, "u.yaml"), []byte(f.text(a)+"include: ["+dir+"/conf.d/*.yaml]\n"), 0o600))
	}
	f.names = f.names[:1]
	must(t, os.Mkdir(filepath.Join(dir, "conf.d"), 0o700))
	must(t, os.Mkdir(filepath.Join(dir, "etc"), 0o700))
	must(t, os.Symlink("rel/0", filepath.Join(dir, "current")))
	must(t, os.Symlink("../current/u.yaml", filepath.Join(dir, "etc", "u.yaml")))
	f.fromFile(t, a, filepath.Join(dir, "etc", "u.yaml"))
	f.all(t, "a", 0)
	must(t, os.Symlink("rel/1", filepath.Join(dir, "current.new")))
	must(t, os.Rename(filepath.Join(dir, "current.new"), filepath.Join(dir, "current")))
	f.accounts["second"].Next(t, soon, 0)
	for _, name := range []string{"third", "fourth"} {
		must(t, os.RemoveAll(filepath.Join(dir, "conf.d")))
		f.add(t, name)
		must(t, os.Mkdir(filepath.Join(dir, "conf.d"), 0o700))
		text := "services: {" + name + ": {" + command(f.accounts[name].Child("every=5ms")) + "}}\n"
		must(t, os.WriteFile(filepath.Join(dir, "conf.d", name+".yaml"), []byte(text), 0o600))
		f.accounts[name].Next(t, soon, 0)
	}
}
