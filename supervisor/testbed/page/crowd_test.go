package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/control/web"
)

// crowd is a cluster of 200 services on six nodes, four of them in trouble and two paused, without ZooKeeper and programs.
type crowd struct {
	began   time.Time
	mu      sync.Mutex // guards the fields below
	orders  []string
	drained []control.DrainedNode
	paused  map[string]string
	refused string // the service that refuses restarts
	healed  bool   // billing-011 is in no trouble any more
}

const crowded = 200

func newCrowd() *crowd {
	return &crowd{began: time.Now(), paused: map[string]string{"billing-037": "paused by ann: new disks", "search-101": "paused by ann: new disks"}}
}

func (c *crowd) name(i int) string {
	return fmt.Sprintf("%s-%03d", []string{"billing", "orders", "search", "mail", "cache"}[i*5/crowded], i)
}

func (c *crowd) before(d time.Duration) *time.Time { t := c.began.Add(-d).UTC(); return &t }

// since is how long a service has been where it is.
func (c *crowd) since(i int) time.Duration { return time.Duration(7+i*i*31%20000) * time.Minute }

func (c *crowd) service(i int, now time.Time) control.ServiceStatus {
	node := func(n int) string { return fmt.Sprintf("node-%d", 1+(i+n)%6) }
	v := control.ServiceStatus{Service: c.name(i), Active: node(0), Host: node(0) + ".example.net", Pid: 1200 + i%6, Since: c.before(c.since(i)), Token: int64(4294967300 + i), Lock: node(0)}
	for n, role := range []election.Role{election.RoleActive, election.RoleStandby, election.RoleStandby} {
		v.Members = append(v.Members, control.MemberStatus{Node: node(n), Host: node(n) + ".example.net", Role: role, Health: election.HealthOK, Since: c.before(c.since(i))})
	}
	first, second := &v.Members[0], &v.Members[1]
	switch {
	case i == 11 && !c.healed: // its program crashes again and again
		first.Health, first.Why, first.Restarts, first.Exit, first.Exited = election.HealthFailing, "connect: connection refused", 4, "killed by SIGSEGV", c.before(20*time.Second)
	case i == 66:
		second.Role, second.Health, second.Why, second.Since = election.RoleFailed, election.HealthFailed, "the program ended: exit code 1", c.before(3*time.Minute)
	case i == 144: // nobody proves a death
		v.Fencing = &control.FencingStatus{Node: "node-9", Host: "node-9.example.net", Token: 4294967000}
		v.Active, v.Host, v.Pid, v.Since, v.Token, v.Lock = "", "", 0, nil, 0, ""
		first.Role, first.Since = election.RoleStandby, c.before(4*time.Minute)
	case i == 190:
		v.Active, v.Host, v.Pid, v.Since, v.Token, v.Lock = "", "", 0, nil, 0, ""
		for n := range v.Members {
			m := &v.Members[n]
			m.Role, m.Health, m.Why, m.Since = election.RoleFailed, election.HealthFailed, "no such file: /usr/bin/cached", c.before(2*time.Minute)
		}
	case i == 121:
		v.Copies = []control.CopyStatus{{Node: node(0), Is: control.CopyPrimary, Words: "primary, position 7001"}, {Node: node(1), Is: control.CopyFollower, Why: "no position", Words: "follower (no position)"}}
	case i == 120:
		first.Restarts, first.Exit, first.Exited = 2, "exit code 3", c.before(5*time.Hour)
	}
	if why := c.paused[v.Service]; why != "" {
		v.Paused, v.Order = true, why
		second.Role, v.Members[2].Role = election.RolePaused, election.RolePaused
	}
	for n := range v.Members {
		for d := range c.drained {
			if m := &v.Members[n]; m.Node == c.drained[d].Node {
				m.Drained = &c.drained[d]
			}
		}
	}
	v.Problems = control.Problems(v, now)
	return v
}

func (c *crowd) Status(context.Context, ...string) (control.Status, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := control.Status{Drained: append([]control.DrainedNode(nil), c.drained...)}
	for i := range crowded {
		s.Services = append(s.Services, c.service(i, c.began))
	}
	for n := 1; n <= 6; n++ {
		name := fmt.Sprintf("node-%d", n)
		s.Nodes = append(s.Nodes, control.NodeStatus{Node: name, Host: name + ".example.net", Pid: 1200 + n, Version: "1.4.0", Contain: "cgroup", Config: "/etc/understudy/understudy.yaml", Since: c.before(40 * 24 * time.Hour), LeaseMs: 3000, Silent: n == 6, Warnings: []string{}})
	}
	s.Nodes[2].Warnings = []string{"http.listen is open to all addresses and has no TLS"}
	return s, nil
}

func (c *crowd) History(_ context.Context, names ...string) (all []control.HistoryEntry, err error) {
	for i := range crowded {
		if len(names) > 0 && names[0] != c.name(i) {
			continue
		}
		at, gap, ran := *c.before(c.since(i)), int64(2400+i*10), int64(time.Hour/time.Millisecond)
		end := at.Add(-time.Duration(gap) * time.Millisecond)
		start := end.Add(-time.Duration(1+i%5) * time.Hour)
		now := control.HistoryEntry{Service: names[0], Node: fmt.Sprintf("node-%d", 1+i%6), Token: int64(4294967300 + i), Start: at, Started: &at, Ready: &at, Active: i != 144 && i != 190, GapMs: &gap}
		if i == 144 || i == 190 {
			stop := time.Now().Add(-3 * time.Minute)
			now.End, now.Reason, now.RanMs = &stop, "program failed", &ran
		}
		reason := election.Reason("switchover")
		if i%3 == 0 {
			reason = "supervisor lost"
		}
		all = append(all, now, control.HistoryEntry{Service: names[0], Node: fmt.Sprintf("node-%d", 1+(i+1)%6), Token: int64(4294960000 + i), Start: start, Started: &start, Ready: &start, End: &end, Reason: reason, RanMs: &ran})
	}
	return all, nil
}

func (c *crowd) order(words ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, strings.Join(words, " "))
}

func (c *crowd) ordered() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.orders, "; ")
}

func (c *crowd) Pause(_ context.Context, service string, paused bool, _, why string) (bool, error) {
	c.order("pause", service, fmt.Sprint(paused), why)
	return true, nil
}

func (c *crowd) Stop(_ context.Context, service string, stopped bool, _, why string) (bool, error) {
	c.order("stop", service, fmt.Sprint(stopped), why)
	return true, nil
}

func (c *crowd) Switchover(_ context.Context, h control.SwitchoverRequest) (string, error) {
	c.order("switchover", h.Service, h.To)
	return "node-2", nil
}

// heal ends the trouble of billing-011.
func (c *crowd) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.healed = true
}

// refuse has restarts of a service fail.
func (c *crowd) refuse(service string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = service
}

func (c *crowd) Restart(_ context.Context, service, _ string) error {
	c.mu.Lock()
	refused := service == c.refused
	c.mu.Unlock()
	if refused {
		return errors.New("it is being moved")
	}
	c.order("restart", service)
	return nil
}

func (c *crowd) Reload(_ context.Context, service, _ string) error {
	c.order("reload", service)
	return nil
}

func (c *crowd) OrderCopy(_ context.Context, r control.CopyRequest) error {
	c.order(r.Do, r.Service, r.Node)
	return nil
}

func (c *crowd) Drain(_ context.Context, d control.Draining) (bool, []control.Departure, error) {
	c.order("drain", d.Node, d.Why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drained = append(c.drained, control.DrainedNode{Node: d.Node, By: "ann", Why: d.Why, Since: c.before(0), Words: "drained by ann"})
	return true, []control.Departure{{Service: "billing-000"}}, nil
}

func (c *crowd) Undrain(_ context.Context, node, _ string) (bool, error) {
	c.order("undrain", node)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drained = nil
	return true, nil
}

func (c *crowd) Close() {}

// serve has a server show the cluster, and returns the address of the page.
func (c *crowd) serve(t testing.TB) string {
	t.Helper()
	board := web.NewBoard(func() time.Duration { return time.Since(c.began) })
	board.Lease(control.LeaseStatus{Session: "0x1", End: time.Hour})
	server := web.New(web.Config{
		Listen: "127.0.0.1:0", Node: "node-1", Version: "1.4.0", Board: board, Cluster: c, Logger: hclog.NewNullLogger(),
		Token: func() (string, error) { return secret, nil },
	})
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed by its server
	must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + "/"
}
