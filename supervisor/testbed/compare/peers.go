package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

// world is one pair of hosts under one peer.
type world struct {
	*kit.Accounts
	lab      *kit.Lab
	start    func(h *kit.Host, program []string) *kit.Supervisor
	standing func(standby *kit.Supervisor) bool
}

// starter makes the world for one fault.
type starter = func(tb testing.TB) *world

// peers are what runs a program once. Debian has keepalived, etcd-server and etcd-client, and Consul comes from its makers.
var peers = []*peer[*world]{
	{
		name: "understudy", settings: "understudy run ... -- PROGRAM; lease 3 s, grace 2 s, as by default, three ZooKeeper servers with tickTime 500 ms",
		version: func() string { return "this tree" },
		servers: understudies(6*time.Second, 2*time.Second),
	},
	{
		name: "understudy, profile fast", settings: "the same with the times of profile fast: lease 1 s, grace 0.5 s",
		version: func() string { return "this tree" },
		servers: understudies(2*time.Second, 500*time.Millisecond),
	},
	{
		name: "keepalived", settings: "VRRP on one segment, advert_int 1, nopreempt, notify scripts that start and stop PROGRAM; no servers",
		needs: []string{"keepalived"}, version: says("keepalived", "--version"), servers: keepaliveds,
	},
	{
		name: "etcdctl lock", settings: "etcdctl lock --ttl 6 NAME -- PROGRAM, three etcd servers with their default timings",
		needs: []string{"etcd", "etcdctl"}, version: says("etcdctl", "version"), servers: etcds,
	},
	{
		name: "consul lock", settings: "consul lock NAME PROGRAM, as it is; a server for each of three hosts, and an agent on each of the two",
		needs: []string{"consul"}, version: says("consul", "version"), servers: consuls,
	},
}

// says is the first line that a program prints of its version.
func says(words ...string) func() string {
	return func() string {
		out, _ := exec.Command(words[0], words[1:]...).CombinedOutput() // what it prints is shown, whatever its code
		line, _, _ := strings.Cut(string(out), "\n")
		return line
	}
}

func understudies(session, grace time.Duration) func(tb testing.TB) starter {
	return func(tb testing.TB) starter {
		stage := kit.NewStage(tb, 3, zktest.Config{})
		n := 0
		return func(tb testing.TB) *world {
			n++
			// The notes in /run are of all hosts: each peer has a root of its own.
			root := fmt.Sprint("/", filepath.Base(stage.Lab.Lifeline()), "-", n)
			options := kit.Options{ZK: stage.Servers, Root: root, Service: "web", Session: session, Grace: grace}
			look := kit.Look(tb, stage.Servers, root)
			return &world{
				lab: stage.Lab,
				start: func(h *kit.Host, program []string) *kit.Supervisor {
					options.Child = program
					return h.Supervise(tb, options)
				},
				standing: func(s *kit.Supervisor) bool {
					look.WaitStandby(tb, kit.Soon, "web", s.Host.Name)
					return true
				},
			}
		}
	}
}

// script is a file that can be run.
func script(tb testing.TB, lines ...string) string { return kit.Script(tb, strings.Join(lines, "\n")) }

// quoted is a command line for a shell.
func quoted(words []string) string { return "'" + strings.Join(words, "' '") + "'" }

// waits is a wrapper that waits for a lock: it is there, and its program does not run.
func waits(w *world, while time.Duration) func(s *kit.Supervisor) bool {
	return func(s *kit.Supervisor) bool {
		time.Sleep(while) // it does not say that it waits
		return s.Running() && !running(w, s.Host.Name)
	}
}

func keepaliveds(tb testing.TB) starter {
	lab := kit.NewLab(tb)
	n := 0
	return func(tb testing.TB) *world {
		n++
		w := &world{lab: lab}
		w.standing = waits(w, 4*time.Second)
		w.start = func(h *kit.Host, program []string) *kit.Supervisor {
			dir := tb.TempDir()
			pid := filepath.Join(dir, "program.pid")
			start := script(tb, "setsid "+quoted(program)+" </dev/null >/dev/null 2>&1 &", "echo $! >"+pid)
			stop := script(tb, "[ -s "+pid+" ] || exit 0", "pid=$(cat "+pid+")", "kill $pid 2>/dev/null",
				"for i in $(seq 50); do [ -e /proc/$pid ] || break; sleep 0.1; done", "kill -9 $pid 2>/dev/null; rm -f "+pid)
			address := h.Addr[:strings.LastIndex(h.Addr, ".")] + fmt.Sprint(".", 200+n%50)
			return keepalived(tb, h, n, fmt.Sprintf(" virtual_ipaddress {\n  %s/32\n }\n notify_master %s\n notify_backup %s\n notify_fault %s\n notify_stop %s\n",
				address, start, stop, stop, stop))
		}
		return w
	}
}

// keepalived starts it with one instance, of which the number is the nth and the keys come as lines.
func keepalived(tb testing.TB, h *kit.Host, n int, keys string) *kit.Supervisor {
	tb.Helper()
	dir := tb.TempDir()
	conf := filepath.Join(dir, "keepalived.conf")
	write(tb, conf, fmt.Sprintf("global_defs {\n router_id %s\n script_user root\n}\nvrrp_instance web {\n state BACKUP\n nopreempt\n interface eth0\n"+
		" virtual_router_id %d\n priority %d\n advert_int 1\n%s}\n", h.Name, 1+n%250, map[string]int{"a": 150, "b": 100}[h.Name], keys))
	path, _ := exec.LookPath("keepalived") // it was looked for
	return h.UnderstudyAt(tb, path, "--dont-fork", "--log-console", "--use-file", conf, "--pid", filepath.Join(dir, "main.pid"),
		"--vrrp_pid", filepath.Join(dir, "vrrp.pid"), "--checkers_pid", filepath.Join(dir, "checkers.pid"))
}

func etcds(tb testing.TB) starter {
	lab := kit.NewLab(tb)
	var hosts []*kit.Host
	var cluster, clients []string
	for i := range 3 {
		h := lab.Host(tb, fmt.Sprint("etcd", i))
		hosts = append(hosts, h)
		cluster = append(cluster, h.Name+"=http://"+h.Addr+":2380")
		clients = append(clients, "http://"+h.Addr+":2379")
	}
	path, _ := exec.LookPath("etcd") // it was looked for
	for i, h := range hosts {
		h.UnderstudyAt(tb, path, "--name", h.Name, "--data-dir", tb.TempDir(), "--initial-cluster", strings.Join(cluster, ","),
			"--listen-peer-urls", "http://"+h.Addr+":2380", "--initial-advertise-peer-urls", "http://"+h.Addr+":2380",
			"--listen-client-urls", clients[i], "--advertise-client-urls", clients[i], "--unsafe-no-fsync")
	}
	kit.Until(tb, kit.Soon, "etcd serves", func() bool { return serves(clients[0] + "/health") })
	ctl, _ := exec.LookPath("etcdctl")
	n := 0
	return func(tb testing.TB) *world {
		n++
		name := fmt.Sprint("lock", n)
		w := &world{lab: lab}
		w.standing = waits(w, time.Second)
		w.start = func(h *kit.Host, program []string) *kit.Supervisor {
			return h.UnderstudyAt(tb, ctl, append([]string{"--endpoints", strings.Join(clients, ","), "lock", "--ttl", "6", name, "--"}, program...)...)
		}
		return w
	}
}

func consuls(tb testing.TB) starter {
	lab := kit.NewLab(tb)
	path, _ := exec.LookPath("consul") // it was looked for
	var servers []*kit.Host
	var join []string
	for i := range 3 {
		h := lab.Host(tb, fmt.Sprint("consul", i))
		servers = append(servers, h)
		join = append(join, "-retry-join="+h.Addr)
	}
	agent := func(tb testing.TB, h *kit.Host, node string, more ...string) {
		h.UnderstudyAt(tb, path, append(append([]string{"agent", "-node", node, "-bind", h.Addr, "-data-dir", tb.TempDir()}, join...), more...)...)
	}
	for _, h := range servers {
		agent(tb, h, h.Name, "-server", "-bootstrap-expect=3", "-client", h.Addr)
	}
	leader := func(addr string) bool { return serves("http://" + addr + ":8500/v1/kv/?keys&consistent") }
	kit.Until(tb, kit.Soon, "consul serves", func() bool { return leader(servers[0].Addr) })
	n := 0
	return func(tb testing.TB) *world {
		n++
		name := fmt.Sprint("lock", n)
		w := &world{lab: lab}
		w.standing = waits(w, time.Second)
		w.start = func(h *kit.Host, program []string) *kit.Supervisor {
			agent(tb, h, h.Name+name, "-client", h.Addr) // a name that no earlier agent had: Consul keeps that of one without power for it
			kit.Until(tb, kit.Soon, "the agent serves", func() bool { return leader(h.Addr) })
			return h.UnderstudyAt(tb, path, append([]string{"lock", "-http-addr=" + h.Addr + ":8500", name}, quoted(program))...)
		}
		return w
	}
}

// serves tells that a server answers, and that all is well with it.
func serves(url string) bool {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode < 500
}
