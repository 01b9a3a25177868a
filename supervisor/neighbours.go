package supervisor

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/notify"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// Neighbours are the other supervisors of this machine that have the same node, root and service, and so the same files. Those of the same
// ensemble are told apart in ZooKeeper. One of another ensemble would undo what this one does, and forget what this one has seen.
type Neighbours struct {
	dir    string
	cfg    Config
	log    hclog.Logger
	places map[string]func() // of this supervisor, and how to leave them. Only one goroutine at a time uses it
	reach  wait.Reach        // of dropForgotten
}

// NewNeighbours are those on a real machine.
func NewNeighbours(cfg Config) *Neighbours { return neighboursIn(notify.DefaultDir(), cfg) }

func neighboursIn(dir string, cfg Config) *Neighbours {
	return &Neighbours{dir: dir, cfg: cfg, log: cfg.Logger, places: map[string]func(){}}
}

const heldFile, joinWithin = ".held", 10 * time.Second

// join takes a place among those that have a service, until the end of this supervisor, and reports whether there is one now. The error is
// that another ensemble has it.
func (n *Neighbours) join(name string, onlyAlone bool) (bool, error) {
	if n == nil || n.places[name] != nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinWithin)
	defer cancel()
	store := keyfile.Store{Dir: n.dir, Name: fileOf(n.cfg.Node, name, ClusterOf(n.cfg)) + heldFile}
	said, leave, err := store.Share(ctx, strconv.Itoa(os.Getpid())+" "+strings.Join(n.cfg.Servers, " "))
	if err != nil { // nothing else is kept there then
		n.log.Debug("cannot see whether another supervisor here has this service", "service", name, "error", err)
		return true, nil
	}
	pid, servers, others := strings.Cut(string(said), " ")
	ours := func(server string) bool { return slices.Contains(n.cfg.Servers, server) }
	switch {
	case others && onlyAlone:
		leave()
		return false, nil
	case others && !slices.ContainsFunc(strings.Fields(servers), ours):
		leave()
		return false, fmt.Errorf("another supervisor on this host (pid %s) has the files of service %s of node %s under %s, "+
			"with other ZooKeeper servers (%s): set zookeeper.name for one of the two, or give it another node name",
			pid, name, n.cfg.Node, n.cfg.Root, servers)
	}
	n.places[name] = leave
	return true, nil
}

// fileOf is how the files of a service of a node begin. A hash's name may be another service's.
func fileOf(node, service, cluster string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", node, service)
	return strconv.FormatUint(h.Sum64(), 36) + "." + cluster
}

// occupy takes this supervisor's places for all these services. Where that fails, some are taken.
func (n *Neighbours) occupy(services []service.Conf) error {
	for _, c := range services {
		if _, err := n.join(c.Name, false); err != nil {
			return err
		}
	}
	return nil
}

// leave gives all places back, at the end of this supervisor.
func (n *Neighbours) leave() {
	if n != nil {
		for _, leave := range n.places {
			leave()
		}
	}
}

// Unfound is a file in one of the folders that a supervisor of this node has left for a service, under this root and another
// zookeeper.name; "": there is none. One that runs now is not meant.
func Unfound(cfg Config, name string, folders ...string) string {
	root, ours := ClusterName(cfg.Root, ""), ClusterOf(cfg)
	for _, dir := range append([]string{notify.DefaultDir(), unit.LastingFolder()}, folders...) {
		found, _ := filepath.Glob(filepath.Join(dir, fileOf(cfg.Node, name, root)+"*.*")) // the pattern is well formed
		for _, path := range found {
			service, rest, _ := strings.Cut(filepath.Base(path), ".")
			cluster, kind, _ := strings.Cut(rest, ".")
			of, _, _ := strings.Cut(cluster, "-")
			held := keyfile.Store{Dir: notify.DefaultDir(), Name: service + "." + cluster + heldFile}
			if of == root && cluster != ours && slices.Contains([]string{"undo", "known", "copy"}, kind) && !held.Held() {
				return path
			}
		}
	}
	return ""
}
