package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// movers are what moves addresses. Debian has keepalived and nginx-light.
var movers = []*peer[*pair]{
	{
		name: "understudy", settings: "nginx with address: [v4, v6], runs where the addresses are; lease 3 s, grace 2 s, as by default, three ZooKeeper servers with tickTime 500 ms",
		needs: []string{"nginx"}, version: func() string { return "this tree" }, servers: addressUnderstudies("profile: normal"),
	},
	{
		name: "understudy, profile fast", settings: "the same with profile: fast, which is lease 1 s, grace 0.5 s",
		needs: []string{"nginx"}, version: func() string { return "this tree" }, servers: addressUnderstudies("profile: fast"),
	},
	{
		name: "keepalived", settings: "nginx on both hosts all the time; virtual_ipaddress, and v6 in virtual_ipaddress_excluded, state BACKUP, nopreempt, advert_int 1; no servers",
		needs: []string{"keepalived", "nginx"}, version: says("keepalived", "--version"), servers: addressKeepaliveds,
	},
}

// nginx answers with the name of the host, at all of its addresses.
func nginx(tb testing.TB, h *kit.Host) (command []string) {
	tb.Helper()
	dir := tb.TempDir()
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`user root;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 256; }
http { access_log off; server { listen [::]:%[2]s ipv6only=off; location = / { return 200 %[3]s; } } }
`, dir, webPort, h.Name)
	write(tb, conf, text)
	path, _ := exec.LookPath("nginx") // it was looked for
	return []string{path, "-c", conf, "-g", "daemon off;"}
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	must.OK(tb, os.WriteFile(path, []byte(text), 0o644))
}

func addressUnderstudies(timing string) func(tb testing.TB) func(tb testing.TB) *pair {
	return func(tb testing.TB) func(tb testing.TB) *pair {
		stage := kit.NewStage(tb, 3, zktest.Config{})
		n := 0
		return func(tb testing.TB) *pair {
			n++
			root := fmt.Sprint("/compare", n)
			// What is to be undone is noted in /run, which all hosts share: each service has a name of its own.
			service := fmt.Sprintf("web-%d-%s", n, filepath.Base(stage.Lab.Lifeline()))
			look := kit.Look(tb, stage.Servers, root)
			w := &pair{lab: stage.Lab, n: n, servers: stage.Addrs()}
			w.start = func(h *kit.Host) *kit.Supervisor {
				conf := filepath.Join(tb.TempDir(), h.Name+".yaml")
				write(tb, conf, fmt.Sprintf(`node: %s
zookeeper: {servers: [%s], root: %s, %s}
services:
  %s:
    command: ["%s"]
    address: ["%s"]
    ready: {tcp: "127.0.0.1:%s"}
`, h.Name, strings.Join(stage.Servers, ", "), root, timing, service, strings.Join(nginx(tb, h), `", "`), strings.Join(w.addrs, `", "`), webPort))
				return h.Understudy(tb, "run", "--config", conf)
			}
			w.standing = func(s *kit.Supervisor) bool {
				look.WaitStandby(tb, kit.Soon, service, s.Host.Name)
				return true
			}
			return w
		}
	}
}

func addressKeepaliveds(tb testing.TB) func(tb testing.TB) *pair {
	lab := kit.NewLab(tb)
	n := 0
	return func(tb testing.TB) *pair {
		n++
		w := &pair{lab: lab, n: n}
		w.standing = func(s *kit.Supervisor) bool {
			time.Sleep(4 * time.Second) // longer than it waits for another one, and it does not say that it waits
			return s.Running()
		}
		w.start = func(h *kit.Host) *kit.Supervisor {
			web := nginx(tb, h)
			h.UnderstudyAt(tb, web[0], web[1:]...)
			return keepalived(tb, h, w.n, fmt.Sprintf(" virtual_ipaddress {\n  %s/32\n }\n virtual_ipaddress_excluded {\n  %s/128\n }\n", w.addrs[0], w.addrs[1]))
		}
		return w
	}
}
