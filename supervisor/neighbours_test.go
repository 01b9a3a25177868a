package supervisor

import (
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/service"
	"understudy/supervisor/testbed/must"
)

// Two ensembles with one root, and on this host a supervisor of each with the same node and service: they would have each other's files.
func TestASupervisorOfAnotherEnsembleIsRefused(t *testing.T) {
	dir := t.TempDir()
	supervise := func(servers ...string) *supervisor {
		cfg := Config{Node: "a", Root: "/u", Servers: servers, Logger: hclog.NewNullLogger(), Observer: unobserved{}}
		cfg.Neighbours = neighboursIn(dir, cfg)
		return newSupervisor(cfg)
	}
	first, another, same := supervise("zk1:2181", "zk2:2181"), supervise("x:2181"), supervise("zk2:2181", "zk3:2181")
	must.OK(t, first.cfg.Neighbours.occupy([]service.Conf{{Name: "web"}}))
	err := another.cfg.Neighbours.occupy([]service.Conf{{Name: "db"}, {Name: "web"}})
	if err == nil || !strings.Contains(err.Error(), "zookeeper.name") || !strings.Contains(err.Error(), "zk1:2181 zk2:2181") {
		t.Errorf("of another ensemble: %v", err)
	}
	if err := same.cfg.Neighbours.occupy([]service.Conf{{Name: "web"}}); err != nil {
		t.Errorf("of the same ensemble: %v", err)
	}
	if err := another.cfg.Neighbours.occupy([]service.Conf{{Name: "db"}}); err != nil {
		t.Errorf("with another service: %v", err)
	}
	named := supervise("y:2181")
	named.cfg.Neighbours.cfg.Cluster = "b"
	if err := named.cfg.Neighbours.occupy([]service.Conf{{Name: "web"}}); err != nil {
		t.Errorf("with a name: %v", err)
	}
	another.apply(Change{Services: []service.Conf{{Name: "db"}, {Name: "web"}}})
	if now, _ := another.notes.read().faults(""); !strings.Contains(now, "zookeeper.name") || len(another.roster.names()) > 0 {
		t.Errorf("reloaded: %q, and it has %q", now, another.roster.names())
	}
	for _, s := range []*supervisor{first, same, another, named} {
		s.cfg.Neighbours.leave()
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A service that is not in this supervisor's config is another one's affair while that one runs, whatever it owes.
func TestDebtsOfASupervisorThatRunsAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	supervise := func() *supervisor {
		cfg := Config{Node: "a", Root: "/u", Servers: []string{"zk:2181"}, Logger: hclog.NewNullLogger(), Observer: unobserved{}}
		cfg.Neighbours = neighboursIn(dir, cfg)
		return newSupervisor(cfg)
	}
	one, other := supervise(), supervise()
	must.OK(t, one.cfg.Neighbours.occupy([]service.Conf{{Name: "web"}}))
	if other.addWithUndos([]string{"web"}); len(other.roster.names()) > 0 {
		t.Errorf("undoes %q of a supervisor that runs", other.roster.names())
	}
	one.cfg.Neighbours.leave()
	if other.addWithUndos([]string{"web"}); len(other.roster.names()) != 1 {
		t.Error("leaves undone what a dead supervisor owes")
	}
	other.cfg.Neighbours.leave()
}
