package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/election"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// replicators are what promotes copies. Debian has redis-server, redis-tools, redis-sentinel, postgresql, patroni with python3-kazoo.
func replicators(stage func() *kit.Stage) []*peer[*trio] {
	from := func(make func(tb testing.TB, stage *kit.Stage) *trio) func(tb testing.TB) func(tb testing.TB) *trio {
		return func(tb testing.TB) func(tb testing.TB) *trio {
			where := stage() // servers are there once
			return again(tb, func(tb testing.TB) *trio { return make(tb, where) })
		}
	}
	const understudy = "lease 3 s, grace 2 s, as by default, unit with Restart=always, RestartSec=1s"
	return []*peer[*trio]{
		{
			name: "Redis: understudy", settings: "examples/redis-replicated.yaml, Debian's redis.conf; " + understudy,
			needs: []string{"redis-server", "redis-cli"}, version: says("redis-server", "--version"), servers: from(redisUnderstudy),
		},
		{
			name: "Redis: sentinel",
			settings: "three sentinels, quorum 2, down-after-milliseconds 5000, failover-timeout 60000; Debian's redis.conf with appendonly yes and\n" +
				"  min-replicas-to-write 1, repl-diskless-sync-delay 0 as in our example; units with Restart=always, RestartSec=100ms",
			needs: []string{"redis-server", "redis-cli", "redis-sentinel"}, version: says("redis-sentinel", "--version"), servers: from(redisSentinel),
		},
		{
			name: "PostgreSQL: understudy", settings: "examples/postgresql-replicated.yaml; " + understudy,
			needs: []string{pgBin("pg_rewind")}, version: says(pgBin("postgres"), "--version"), servers: from(postgresqlUnderstudy),
		},
		{
			name: "PostgreSQL: patroni",
			settings: "ttl 30, loop_wait 10, retry_timeout 10, synchronous_mode, use_pg_rewind and what else Debian's configuration has, no watchdog;\n" +
				"  unit with Restart=on-failure, KillMode=process",
			needs: []string{pgBin("pg_rewind"), "patroni"}, version: says("patroni", "--version"), servers: from(postgresqlPatroni),
		},
	}
}

// pgBin is a program of the newest PostgreSQL; Debian keeps them out of PATH.
func pgBin(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return name
	}
	return slices.Max(found)
}

// give makes files a user's.
func give(tb testing.TB, user string, paths ...string) {
	tb.Helper()
	if out, err := exec.Command("chown", append([]string{user + ":" + user}, paths...)...).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
}

// as is a command line that runs as a user.
func as(user string, command ...string) []string {
	return append([]string{"setpriv", "--reuid=" + user, "--regid=" + user, "--init-groups"}, command...)
}

// output runs a command here, to its end.
func output(tb testing.TB, command ...string) string {
	tb.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%v: %v: %s", command, err, out)
	}
	return string(out)
}

// example is a file of this tree's examples.
func example(tb testing.TB, name string) string {
	tb.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	must.OK(tb, err)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "examples", name))
	must.OK(tb, err)
	return string(text)
}

// nodes starts one on each host, each with the example's text after such swaps, which must be possible.
func nodes(tb testing.TB, w *trio, stage *kit.Stage, service, text string, swaps func(h *kit.Host) []string) *trio {
	root := fmt.Sprint("/", service, "-", filepath.Base(w.hosts[0].Network()))
	units := map[*kit.Host]*kit.Supervisor{}
	for _, h := range w.hosts {
		config := text
		kept := filepath.Join(kit.Open(tb, tb.TempDir()), "kept")
		must.OK(tb, os.Mkdir(kept, 0o755))
		all := swaps(h)
		for i, other := range w.hosts {
			const address = ": {replicated: {address: "
			all = append(all, fmt.Sprint("db-", i+1, address, "10.0.0.", i+1), other.Name+address+other.Addr)
		}
		all = append(all, `servers: ["127.0.0.1:2181"]`, fmt.Sprintf("servers: [%s]\n  root: %s", strings.Join(stage.Servers, ", "), root),
			"\nservices:\n", fmt.Sprintf("\nnode: %s\nservices:\n", h.Name), "    replicated:\n", "    replicated:\n      state_dir: "+kept+"\n")
		for i := 0; i < len(all); i += 2 {
			if !strings.Contains(config, all[i]) {
				tb.Fatalf("the example of %s does not hold %q any more", service, all[i])
			}
			config = strings.ReplaceAll(config, all[i], all[i+1])
		}
		path := filepath.Join(kit.Open(tb, tb.TempDir()), h.Name+".yaml")
		write(tb, path, config)
		units[h] = unit(tb, h, "1", kit.UnderstudyBinary(tb), "run", "--config", path)
	}
	look := kit.Look(tb, stage.Servers, root)
	w.process = func(tb testing.TB, h *kit.Host) int { return mainOf(tb, units[h]) }
	w.switchover = func(tb testing.TB, from *kit.Host) {
		to := w.hosts[0]
		if to == from {
			to = w.hosts[1]
		}
		if r := from.Ask(tb, "switchover", service, "--to", to.Name, "--zk", strings.Join(stage.Servers, ","), "--root", root); r.Code != 0 {
			tb.Fatalf("switchover: exit code %d: %s%s", r.Code, r.Out, r.Err)
		}
	}
	w.ready = func(p *kit.Host) bool {
		told := map[*kit.Host]election.CopyReport{}
		for _, h := range w.hosts {
			about, _, _ := look.Conn().Get(look.Path("services", service, "copies", h.Name)) // none says nothing
			var one election.CopyReport
			_ = json.Unmarshal(about, &one)
			told[h] = one
			role := "standby"
			if h == p {
				role = "active"
			}
			if m, ok := look.Member(service, h.Name); !ok || m.Role != role || h == p && m.Health != "ok" {
				return false
			}
		}
		token := told[p].Promoted
		return token > 0 && !slices.ContainsFunc(w.hosts, func(h *kit.Host) bool { return h != p && (told[h].Followed != token || told[h].Toward != 0) })
	}
	return w.begin(tb)
}
