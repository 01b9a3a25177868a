package programs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// How Redis keeps its data. With an AOF it does not know its offset after a restart, and has all data.
const (
	withAOF = "appendonly yes"
	withRDB = "appendonly no"
)

// whys are what the nodes say of nobody being promoted.
func (r *trio) whys() string {
	var all []string
	for _, h := range r.hosts {
		m, _ := r.Member(r.service, h.Name)
		all = append(all, h.Name+": "+m.Why)
	}
	return strings.Join(all, "; ")
}

// Nobody has to choose a copy after any restart in which no data is lost.
func TestCopiesOfRedisThatWereAllRestartedAreComparedAgain(t *testing.T) {
	for name, line := range map[string]string{"AOF": withAOF, "RDB": withRDB} {
		t.Run(name, func(t *testing.T) {
			r := redisTrioWith(t, line)
			for _, h := range r.hosts {
				r.up(t, h)
			}
			r.primary(t)
			r.restart(t, r.hosts, r.hosts) // there is no data yet
			r.primary(t)
			for _, h := range r.hosts {
				r.sups[h.Name].Stop(t)
			}
			p := r.begin(t)
			if line == withAOF { // else what is killed comes back with older data
				f := r.others(p)[0]
				r.kill(t, f)
				r.kill(t, p)
				r.failed(t, "two programs killed", nil)
				p = r.primary(t)

				f = r.others(p)[0]
				kit.Until(t, soon, "its AOF is whole after the synchronization", func() bool {
					said := redis(t, f, "info", "persistence")
					return strings.Contains(said, "aof_rewrite_in_progress:0") && strings.Contains(said, "aof_rewrite_scheduled:0")
				})
				r.sups[f.Name].Kill9()
				r.l.More(t, 100)
				r.sups[p.Name].Kill9()
				r.up(t, f)
				kit.Until(t, soon, "two nodes wait for the one that had the newest data", func() bool { return strings.Contains(r.whys(), "newer data than that on") })
				r.up(t, p)
				r.failed(t, "one host off, and then the primary", nil)
				p = r.primary(t)
			}
			r.l.Stop()
			for _, order := range [][]*kit.Host{{p, r.others(p)[0], r.others(p)[1]}, {r.others(p)[0], r.others(p)[1], p}} {
				r.restart(t, order, order)
				p = r.primary(t)
				r.l.Check(t, p.Addr+r.port)
			}
			if line == withAOF {
				for _, h := range r.hosts {
					r.sups[h.Name].Kill9()
				}
				for _, h := range r.hosts {
					r.up(t, h)
				}
				p = r.primary(t)
				r.l.Check(t, p.Addr+r.port)
			}
		})
	}
}

// A copy that comes back with an older snapshot is not promoted, also if it was the primary, and an operator reads what each had.
func TestNoCopyOfRedisThatHasLostDataIsPromoted(t *testing.T) {
	r := redisTrioWith(t, withRDB)
	p := r.begin(t)
	for _, h := range r.hosts {
		kit.Until(t, soon, h.Name+" saves", func() bool { return strings.Contains(redis(t, h, "save"), "OK") }) // it may be doing so
	}
	r.l.More(t, 500)
	r.l.Stop()
	_, text, _ := strings.Cut(redis(t, p, "info", "replication"), "master_repl_offset:")
	text, _, _ = strings.Cut(text, "\r")
	offset, err := strconv.ParseUint(text, 10, 64)
	must.OK(t, err)
	kit.Until(t, soon, "each disk has what its copy has", func() bool {
		files, _ := filepath.Glob(r.kept + "/*.copy")
		return len(files) == len(r.hosts) && !slices.ContainsFunc(files, func(file string) bool {
			var kept struct{ Position uint64 }
			text, err := os.ReadFile(file)
			return err != nil || json.Unmarshal(text, &kept) != nil || kept.Position < offset
		})
	})
	for _, h := range r.hosts {
		r.sups[h.Name].Kill9()
	}
	for _, h := range r.hosts {
		r.up(t, h)
	}
	kit.Until(t, soon, "each copy says that it has lost data", func() bool {
		why := r.whys()
		return !slices.ContainsFunc(r.hosts, func(h *kit.Host) bool { return !strings.Contains(why, h.Name+": it has lost data: its position is ") })
	})
	said := p.Ask(t, "switchover", "redis", "--to", p.Name, "--force", "--dry-run", "--zk", strings.Join(r.Servers, ","), "--root", r.root)
	if strings.Count(said.Out, " has not reported its position, which was ") != 3 {
		t.Errorf("%s%s", said.Out, said.Err)
	}
}

// redis is what a copy answers.
func redis(t *testing.T, h *kit.Host, words ...string) string {
	t.Helper()
	out, err := exec.Command("redis-cli", append([]string{"-h", h.Addr, "-a", watch.RedisPassword}, words...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// The node that has data comes last, and by its name and its offset it is no better than an empty one.
func TestTheFirstPromotionOfRedisKeepsTheDataThatIsThere(t *testing.T) {
	for name, line := range map[string]string{"AOF": withAOF, "RDB": withRDB} {
		t.Run(name, func(t *testing.T) {
			r := redisTrioWith(t, line)
			last := r.hosts[2]
			filled := redisWithData(t, line)
			if out, err := exec.Command("cp", "-a", filled+"/.", r.dirs[last.Name]).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			give := exec.Command("chown", "-R", "redis:redis", r.dirs[last.Name])
			must.OK(t, give.Run())
			r.up(t, r.hosts[0])
			r.up(t, r.hosts[1])
			kit.Until(t, soon, "they wait for the third one", func() bool {
				return strings.Contains(r.whys(), "needs every node's report: 2 of 3 copies have reported their position (c: it has reported nothing)")
			})
			r.up(t, last)
			if p := r.primary(t); p != last {
				t.Errorf("%s is promoted, and the data is on %s", p.Name, last.Name)
			}
			for _, h := range r.hosts {
				if said := redis(t, h, "get", "before"); !strings.Contains(said, "there") {
					t.Errorf("%s: %s", h.Name, said)
				}
			}
		})
	}
}

// An operator's word is enough for the first promotion if a node is lost, and not for a copy without data.
func TestAnOperatorBeginsWithACopyOfRedisThatHasData(t *testing.T) {
	r := redisTrioWith(t, withAOF)
	empty, full := r.hosts[0], r.hosts[1]
	filled := redisWithData(t, withAOF)
	if out, err := exec.Command("sh", "-c", "cp -a "+filled+"/. "+r.dirs[full.Name]+" && chown -R redis:redis "+r.dirs[full.Name]).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.up(t, empty)
	r.up(t, full)
	kit.Until(t, soon, "they wait for the third one", func() bool {
		return strings.Contains(r.whys(), "needs every node's report: 2 of 3 copies have reported their position")
	})
	first := func(h *kit.Host) kit.Result {
		return h.Ask(t, "switchover", r.service, "--to", h.Name, "--first", "--zk", strings.Join(r.Servers, ","), "--root", r.root)
	}
	if said := first(empty); said.Code != 1 || !strings.Contains(said.Err, "the copy on "+empty.Name+" has no data, and that on "+full.Name+" has some") {
		t.Errorf("%d %s%s", said.Code, said.Out, said.Err)
	}
	if said := first(full); said.Code != 0 {
		t.Errorf("%d %s%s", said.Code, said.Out, said.Err)
	}
	r.up(t, r.hosts[2])
	if p := r.primary(t); p != full {
		t.Errorf("%s is promoted, and the data is on %s", p.Name, full.Name)
	}
	for _, h := range r.hosts {
		if said := redis(t, h, "get", "before"); !strings.Contains(said, "there") {
			t.Errorf("%s: %s", h.Name, said)
		}
	}
}

// redisWithData is the folder of a Redis that ran alone.
func redisWithData(t *testing.T, line string) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.Chmod(dir, 0o755))
	sock := filepath.Join(dir, "sock")
	server := exec.Command("redis-server", "--dir", dir, "--port", "0", "--unixsocket", sock, "--save", "3600 1", "--"+strings.Fields(line)[0], strings.Fields(line)[1])
	must.OK(t, server.Start())
	kit.Until(t, soon, "it has taken a key", func() bool {
		out, _ := exec.Command("redis-cli", "-s", sock, "set", "before", "there").CombinedOutput()
		return strings.Contains(string(out), "OK")
	})
	must.OK(t, server.Process.Signal(os.Interrupt))
	_ = server.Wait()
	_ = os.Remove(sock)
	return dir
}
