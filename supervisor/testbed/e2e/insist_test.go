package e2e

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Who resumes and hands over at once is not told that the other node is paused.
func TestASwitchoverMayFollowAResumptionAtOnce(t *testing.T) {
	p := newPlay(t, stage(t))
	p.OnTwoHosts(t)
	op := p.Lab.Host(t, "op")
	for range 3 {
		p.order(t, op, "pause", p.Options.Service)
		kit.Until(t, soon, "the standby has heard", func() bool {
			m, _ := p.Member(p.Options.Service, "a")
			n, _ := p.Member(p.Options.Service, "b")
			return m.Role == "paused" || n.Role == "paused"
		})
		p.order(t, op, "resume", p.Options.Service)
		p.order(t, op, "switchover", p.Options.Service)
	}
}

// A breadcrumb that says no more than it has to is one all the same: who wrote it is fenced by a method, or confirmed dead.
func TestABreadcrumbWithoutASessionNamesItsNode(t *testing.T) {
	const crumb = `{"node":"ghost","host":"gone","machine":"%032d","boot":"b","token":5,"guardian_pid":1,"lease_ms":4000}`
	for name, method := range map[string]string{"method": `["true"]`, "operator": `["false"]`} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, stage(t))
			path := ""
			for _, part := range strings.Split(strings.Trim(p.Path("services", p.Options.Service), "/"), "/") {
				path += "/" + part
				if _, err := p.Conn().Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
					t.Fatal(err)
				}
			}
			_, err := p.Conn().Create(path+"/ActiveBreadCrumb", fmt.Appendf(nil, crumb, 7), 0, zk.WorldACL(zk.PermAll))
			must.OK(t, err)
			a := p.Lab.Machine(t, "a")
			methods := "fencing: {methods: [{exec: {command: " + method + ", timeout: 2s}}], on_failure: refuse}"
			p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), methods, "restart: {rejoin_after: 1s}"))
			if name == "operator" {
				kit.Until(t, soon, "the status names the node", func() bool {
					return strings.Contains(a.Ask(t, p.asking("status")...).Out, "--node ghost")
				})
				kit.Throughout(t, time.Second, "nobody runs", func() bool { return len(p.Runs()) == 0 })
				p.order(t, a, "fence", "confirm", p.Options.Service, "--node", "ghost")
			}
			p.On(t, soon, "a", 0)
		})
	}
}

// Whoever reads the log may go away: the child stays, and the supervisor goes on.
func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	p := newPlay(t, stage(t))
	a := p.Lab.Machine(t, "a")
	file := p.Config(t, a, "", kit.Command(p.Child()))
	s := a.UnderstudyAt(t, "/bin/bash", "-c", `exec "$0" "$@" > >(head -n 1) 2>&1`, kit.UnderstudyBinary(t), "run", "--config", file)
	run := p.On(t, soon, "a", 0)
	p.order(t, p.Lab.Host(t, "op"), "restart", p.Options.Service)
	p.Next(t, soon, run.First)
	if !s.Running() {
		t.Error("the supervisor has ended")
	}
}

// Whoever waits for a command that is to be run once must not take the end of its standby for the end of the command.
func TestAStandbyThatIsStoppedHasNotRunTheCommandOnce(t *testing.T) {
	p := newPlay(t, stage(t))
	p.Active(t, p.Lab.Machine(t, "a"))
	p.Options.Flags = append(p.Options.Flags, "--once")
	b := p.Lab.Machine(t, "b")
	s := p.Standby(t, b)
	s.Signal(syscall.SIGTERM)
	if code := s.ExitCode(t, soon); code != 1 || !s.Says("before the command had run") {
		t.Errorf("exit code %d: %s", code, s.Log())
	}
}
