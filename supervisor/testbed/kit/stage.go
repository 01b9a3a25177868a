package kit

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// Stage is where the acceptance tests play: a network, and real ZooKeeper servers on hosts of their own.
type Stage struct {
	Lab     *Lab
	ZK      *zktest.Ensemble
	Servers []string // host:port of each server
	Hosts   []*Host  // of the servers
}

// NewStage starts so many servers. What is not given of the configuration is the tests' own: short ticks.
func NewStage(tb testing.TB, servers int, cfg zktest.Config) *Stage {
	tb.Helper()
	NeedHosts(tb)
	zktest.Need(tb)
	s := &Stage{Lab: NewLab(tb)}
	cfg.Servers = servers
	cfg.ExtraLines = append([]string{"maxSessionTimeout=60000"}, cfg.ExtraLines...)
	for i := range servers {
		h := s.Lab.Host(tb, "zk"+string(rune('1'+i)))
		s.Hosts = append(s.Hosts, h)
		cfg.Addrs = append(cfg.Addrs, h.Addr)
	}
	wrap := cfg.Wrap
	cfg.Wrap = func(i int, cmd *exec.Cmd) {
		if wrap != nil {
			wrap(i, cmd)
		}
		s.Hosts[i].Wrap(cmd)
	}
	cfg.Dir = memoryDir(tb)
	s.ZK = zktest.Start(tb, cfg)
	s.Servers = s.ZK.ClientAddrs()
	return s
}

// Addrs is the addresses of the servers' hosts.
func (s *Stage) Addrs() []string {
	var all []string
	for _, h := range s.Hosts {
		all = append(all, h.Addr)
	}
	return all
}

// Others is Addrs without server i's.
func (s *Stage) Others(i int) []string { return slices.Delete(s.Addrs(), i, i+1) }

// Ready waits until all servers that are up serve again.
func (s *Stage) Ready(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must.OK(tb, s.ZK.WaitReady(ctx))
}
