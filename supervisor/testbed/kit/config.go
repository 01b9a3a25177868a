package kit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// Config writes a config with the play's options and one service, whose keys come as lines, and returns its name.
func (p *Play) Config(tb testing.TB, h *Host, zookeeper string, service ...string) string {
	tb.Helper()
	o := p.Options
	var b strings.Builder
	fmt.Fprintf(&b, "node: %s\nzookeeper:\n  servers: [%q]\n  root: %s\n  lease: %v\n%s",
		h.Name, strings.Join(o.ZK, `", "`), o.Root, o.Session/2, zookeeper)
	fmt.Fprintf(&b, "services:\n  %s:\n    grace_delay: %v\n", o.Service, o.Grace)
	for _, line := range service {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	text := strings.ReplaceAll(b.String(), `\"`, `"`)
	path := filepath.Join(tb.TempDir(), h.Name+".yaml")
	must.OK(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Impatient is a service's line for a program that is soon given up.
const Impatient = "restart: {policy: on-failure, delay: 50ms, max_delay: 200ms, give_up_after: 3, within: 1m, rejoin_after: 1m}"

// Command is a child's command line as a key of a service.
func Command(words []string) string { return fmt.Sprintf("command: [%s]", strings.Join(words, ", ")) }

// FromFile starts a supervisor that is configured by a file.
func (p *Play) FromFile(tb testing.TB, h *Host, path string) *Supervisor {
	tb.Helper()
	s := h.Understudy(tb, "run", "--config", path)
	p.Started = append(p.Started, s)
	return s
}

// Role waits until a node says that it has a role.
func (p *Play) Role(tb testing.TB, node, role string) {
	tb.Helper()
	Until(tb, Soon, node+" is "+role, func() bool {
		m, ok := p.Member(p.Options.Service, node)
		return ok && m.Role == role
	})
}

// Claimed is when, on CLOCK_MONOTONIC, a node took the lock that it has, as the server tells: whoever watches may hear of it late.
func (p *Play) Claimed(tb testing.TB, node string) int64 {
	tb.Helper()
	var stat *zk.Stat
	Until(tb, Soon, node+" has the lock", func() bool {
		var err error
		lock, ok := p.Lock(p.Options.Service)
		_, stat, err = p.Conn().Get(p.Path("services", p.Options.Service, "ActiveStandbyElectorLock"))
		return err == nil && ok && lock.Node == node && lock.Czxid == stat.Czxid
	})
	return tick.Now() - int64(time.Since(time.UnixMilli(stat.Ctime)))
}
