package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"understudy/election"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

// The whole ensemble is down for longer than a session lasts, and the program does not notice. A standby that does not answer for a third
// of a session timeout would end that, as one that stands still, or is started again, does: the simulation has both.
func TestFailsafeChildGoesOnWithoutZooKeeper(t *testing.T) {
	s := kit.NewStage(t, 3, zktest.Config{})
	const length = 3 * kit.Stall
	p := newPlay(t, s)
	p.Options.Session = length
	secret := filepath.Join(t.TempDir(), "agent.secret")
	must(t, os.WriteFile(secret, []byte("a secret that all of them share\n"), 0o600))
	serve := func(h *kit.Host) *kit.Supervisor {
		agent := fmt.Sprintf("fencing: {agent: {listen: \":8438\", secret_file: %q}}\n", secret)
		return p.FromFile(t, h, p.Config(t, h, agent, kit.Command(p.Options.Child), "on_zookeeper_loss: failsafe"))
	}
	a := serve(p.Lab.Host(t, "a"))
	run := p.On(t, soon, "a", 0)
	b := serve(p.Lab.Host(t, "b"))
	kit.Until(t, soon, "the breadcrumb lists the standby", func() bool {
		var crumb struct{ Failsafe election.Failsafe }
		data, _, err := p.Conn().Get(p.Path("services", p.Options.Service, "ActiveBreadCrumb"))
		return err == nil && json.Unmarshal(data, &crumb) == nil && len(crumb.Failsafe.Members) == 1
	})
	p.Alone(t, length/8, "a") // the active one knows by then that the list is written
	for i := range s.Servers {
		must(t, s.ZK.Kill(i))
	}
	p.Alone(t, length, "a")
	kit.Until(t, soon, "it is told", func() bool { return a.Says("failsafe", p.Options.Service) })
	for i := range s.Servers {
		must(t, s.ZK.StartServer(i))
	}
	s.Ready(t)
	p.Alone(t, length/4, "a")
	p.Untouched(t, run)
	p.Stands(t, b.Host)
	kit.Until(t, soon, "the end of it is told", func() bool { return a.Says("failsafe is over") })
	a.Stop(t)
	p.Next(t, soon, run.First)
}
