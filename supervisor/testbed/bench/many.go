package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// many measures one supervisor with many services, and what ZooKeeper has to do when five nodes have them.
func (b *bench) many(services int, while time.Duration) {
	const standbys = 4
	head(fmt.Sprintf("many services, over %v (lease 3s)", while))
	accounts := kit.NewAccounts(b, b.stage.Lab)
	run := func(node string) *kit.Supervisor {
		var conf strings.Builder
		fmt.Fprintf(&conf, "node: %s\nzookeeper: {servers: [%s], root: /bench-many}\nservices:\n", node, strings.Join(b.stage.Servers, ", "))
		for i := range services {
			fmt.Fprintf(&conf, "  s%d: {command: [%s]}\n", i, strings.Join(accounts.Child("every=1s", fmt.Sprint("service=", i)), ", "))
		}
		path := filepath.Join(b.TempDir(), node+".yaml")
		must.OK(b, os.WriteFile(path, []byte(conf.String()), 0o600))
		return b.stage.Lab.Here(node).Understudy(b, "run", "--config", path)
	}
	before := b.kept()
	all := fmt.Sprintf("%d services", services)
	active := run("active")
	took := kit.Until(b, 5*time.Minute, all+" run", func() bool { return len(accounts.Runs()) == services })
	fact(all+" in one supervisor: all run after", "%v", took.Round(time.Millisecond))
	b.watch(all, active, while)
	for _, what := range []string{"task", "fd"} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", active.Pid, what))
		must.OK(b, err)
		fact(all+": entries of the supervisor's /proc/PID/"+what, "%d", len(entries))
	}

	var others []*kit.Supervisor
	for i := range standbys {
		others = append(others, run(fmt.Sprint("standby-", i+1)))
	}
	var after kept
	var since time.Time
	kit.Until(b, 5*time.Minute, "all nodes stand by and nothing changes", func() bool { // each has a znode, and one in each service, whose lock is there
		if now := b.kept(); now != after {
			after, since = now, time.Now()
		}
		return after.ephemerals-before.ephemerals == int64((1+standbys)*(1+services)+services) && time.Since(since) > 3*time.Second
	})
	all = fmt.Sprintf("%s on %d nodes: ", all, 1+standbys)
	fact(all+"znodes", "%d", after.znodes-before.znodes)
	fact(all+"bytes in them, paths included", "%d", after.bytes-before.bytes)
	fact(all+"watches", "%d", after.watches-before.watches)
	asked := b.requests()
	<-time.After(while) // what it costs to wait is measured
	fact(all+"requests", "%.1f per second", float64(b.requests()-asked)/while.Seconds())
	asked = b.requests()
	if r := b.stage.Lab.Here("operator").Ask(b, "status", "--zk", strings.Join(b.stage.Servers, ","), "--root", "/bench-many"); r.Code != 0 {
		b.Fatalf("status: %s", r.Err)
	}
	fact(all+"requests of one status", "%d", b.requests()-asked)

	for _, s := range others[1:] {
		s.Stop(b)
	}
	active.Kill9()
	took = kit.Until(b, 5*time.Minute, "all run on the standby", func() bool {
		moved := slices.DeleteFunc(accounts.Runs(), func(r kit.Run) bool { return r.Node != others[0].Host.Name })
		return len(moved) >= services
	})
	fact(fmt.Sprintf("%d services: all run on the only standby after kill -9", services), "%v", took.Round(time.Millisecond))
}

// kept is what the servers keep.
type kept struct{ znodes, ephemerals, bytes, watches int64 }

func (b *bench) kept() (k kept) {
	for i := range b.stage.Servers {
		n, err := b.stage.ZK.Counts(i)
		must.OK(b, err)
		k = kept{n["zk_znode_count"], n["zk_ephemerals_count"], n["zk_approximate_data_size"], k.watches + n["zk_watch_count"]}
	}
	return k
}

// requests is how many the servers have received.
func (b *bench) requests() int64 {
	n, err := b.stage.ZK.Requests()
	must.OK(b, err)
	return n
}
