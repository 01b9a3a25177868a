package soak

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy/supervisor/testbed/kit"
)

// calm is how long nothing may change before it is counted.
const calm = 300 * time.Millisecond

// figures is everything that can be left behind, counted.
type figures map[string]int64

// census counts what there is.
type census struct {
	*soak
	samples map[string][]int64 // of memory, in the order of time
}

// measure has the first node run everything, so that each node is found in the role that it was found in before, and
// counts as soon as nothing changes any more.
func (s *soak) measure() figures {
	s.Helper()
	s.gather()
	var f figures
	var since time.Time
	changes := map[string]int{}
	settled := kit.Reached(patience, func() bool {
		if now := s.census.look(); !maps.Equal(now, f) {
			for what, n := range now {
				if n != f[what] {
					changes[what]++
				}
			}
			f, since = now, time.Now()
		}
		return time.Since(since) > calm
	})
	if !settled {
		s.Fatalf("after %v the figures still change: so often each: %v", patience, changes)
	}
	return f
}

// measureUntil is measure, with patience for what goes away by itself, or with the next terms: a candidate that turned away
// from a znode has its watch there until that znode changes. What was leaked stays.
func (s *soak) measureUntil(before figures) (f figures) {
	s.Helper()
	for range 3 {
		f = s.measure()
		if kit.Reached(patience/12, func() bool {
			if len(grew(before, f)) == 0 {
				return true
			}
			f = s.census.look()
			return false
		}) {
			break
		}
		for _, l := range s.services {
			s.fail(l, l.running(s.T, "it runs", func(kit.Run) bool { return true }), done)
		}
	}
	return f
}

// gather brings all services to the first node, with the others standing by.
func (s *soak) gather() {
	s.Helper()
	for _, l := range s.services {
		for {
			run := l.running(s.T, "it runs", func(kit.Run) bool { return true })
			if s.on(run) == enduring[0] {
				break
			}
			s.fail(l, run, done)
		}
	}
	for _, l := range s.services {
		for name := range s.nodes {
			want := "standby"
			if name == enduring[0] {
				want = "active"
			}
			kit.Until(s, patience, name+" is "+want, func() bool {
				m, ok := s.Member(l.name, s.node(name))
				return ok && m.Role == want
			})
		}
		l.tidy(s.T)
	}
}

func (c *census) look() figures {
	c.Helper()
	f := figures{}
	for name, v := range c.nodes {
		f[name+": goroutines"] = c.probe(v.Pid).Goroutines
		for kind, n := range files(v.Pid) {
			f[name+": files: "+kind] = n
		}
		for _, pid := range v.Guardians() {
			f[name+": guardians"]++
			f[name+": goroutines of the guardians"] += c.probe(pid).Goroutines
			for _, n := range files(pid) {
				f[name+": files of the guardians"] += n
			}
		}
	}
	f["processes"], f["zombies"] = c.processes()
	f["cgroups"] = c.cgroups()
	f["temporary files"] = c.temporary()
	c.znodes("", f)
	c.servers(f)
	return f
}

// files counts a process's open files by what they are.
func files(pid int) map[string]int64 {
	kinds := map[string]int64{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil {
			continue
		}
		kind, _, _ := strings.Cut(to, ":")
		switch {
		case strings.HasPrefix(to, "anon_inode:"):
			kind = strings.Trim(strings.TrimPrefix(to, "anon_inode:"), "[]")
		case strings.HasPrefix(to, "/sys/fs/cgroup"):
			kind = "cgroup"
		case strings.HasPrefix(to, "/"):
			kind = "file"
		}
		kinds[kind]++
	}
	return kinds
}

// processes counts all that bear the mark in their environment, whoever their parent is by now, and those that nobody reaps.
func (c *census) processes() (alive, zombies int64) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	ours, dead := map[string]bool{}, []string{}
	for _, path := range all {
		dir := filepath.Dir(path)
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if after[0] == "Z" {
			dead = append(dead, after[1])
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if bytes.Contains(environ, []byte("UNDERSTUDY_SOAK="+c.mark+"\x00")) {
			ours[filepath.Base(dir)] = true
		}
	}
	for _, parent := range dead {
		if ours[parent] {
			zombies++
		}
	}
	return int64(len(ours)), zombies
}

// cgroups counts what the supervisors made, wherever they make it.
func (c *census) cgroups() (n int64) {
	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[2] != "cgroup2" {
			continue
		}
		_ = filepath.WalkDir(words[1], func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.Contains(path, c.mark) {
				n++
			}
			return nil // it may be gone by now
		})
	}
	return n
}

// temporary counts the files where programs leave such: beside those of the test, there should be none.
func (c *census) temporary() (n int64) {
	for _, dir := range []string{c.tmp, "/tmp", "/run", "/dev/shm", "/var/tmp"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if dir == c.tmp || strings.Contains(e.Name(), c.mark) {
				n++
			}
		}
	}
	for _, v := range c.nodes { // where they run is the folder of their log
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", v.Pid))
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(cwd)
		n += int64(len(entries)) - 1
	}
	return n
}

// znodes counts all that is below the root, by where it is; histories by themselves, since they grow up to their bound.
func (c *census) znodes(path string, counts map[string]int64) {
	names, _, err := c.Conn().Children(c.Path(path))
	if err != nil {
		return // an ephemeral that went
	}
	key := "znodes"
	if strings.HasSuffix(path, "/history") {
		key = "history of " + filepath.Base(filepath.Dir(path))
	}
	counts[key] += int64(len(names))
	for _, name := range names {
		c.znodes(path+"/"+name, counts)
	}
}

// servers asks ZooKeeper what it keeps for its clients.
func (c *census) servers(counts map[string]int64) {
	c.Helper()
	for i := range c.stage.Servers {
		var n map[string]int64
		kit.Until(c, patience, "a server answers", func() bool { // it may be too busy
			var err error
			n, err = c.stage.ZK.Counts(i)
			return err == nil
		})
		counts["servers: watches"] += n["zk_watch_count"]
		counts["servers: connections"] += n["zk_num_alive_connections"]
		counts["servers: sessions"] = max(counts["servers: sessions"], n["zk_global_sessions"])
		counts["servers: ephemerals"] = max(counts["servers: ephemerals"], n["zk_ephemerals_count"])
	}
}
