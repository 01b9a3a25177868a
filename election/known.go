package election

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/printable"
	"understudy/supervisor/wait"
)

// Known is what a supervisor says, in known/<node>, of its node for the time after its session: which services it could run. It is written
// again and again, so its mtime tells when the node was seen last. It lasts until an operator has the node forgotten.
type Known struct {
	Node     string   `json:"node"`
	Host     string   `json:"host"`
	Services []string `json:"services"`
	Stopped  bool     `json:"stopped,omitempty"` // somebody has stopped its supervisor
}

// KnownDir holds a znode for each node that a service could ever run on.
func KnownDir(root string) string { return path.Join(root, "known") }

// ReadKnown reads the znode. One that cannot be read tells of no service.
func ReadKnown(data []byte) Known {
	k, _ := decode[Known](data)
	return k
}

// KnownEvery is how often it is written: so late, at most, is what it tells of the node's end.
const KnownEvery = 5 * time.Second

// mostKnown bounds what is told of nodes: other clients can make znodes.
const mostKnown = 1000

// KeepKnown writes it, unless there are no services, and tells which known nodes are connected, until ctx ends: then it is not known.
func (s *Session) KeepKnown(ctx context.Context, services func() []string, tell func(connected map[string]bool)) {
	ctx = InTurn(ctx)
	defer tell(nil)
	for {
		could, pause := services(), KnownEvery
		if len(could) == 0 { // the first one is told soon, as the node may be lost soon
			pause /= 5
		}
		connected, err := s.known(ctx, could)
		if err == nil {
			tell(connected)
		} else if ctx.Err() == nil {
			s.log.Debug("cannot write which services this node could run", "error", err)
		}
		if !wait.For(ctx, pause) {
			return
		}
	}
}

// SayStopped writes that the node, once it is not connected any more, was not lost.
func (s *Session) SayStopped(ctx context.Context, services []string) error {
	me := s.cfg.Node
	return s.set(ctx, path.Join(KnownDir(s.cfg.Root), me.Node), encode(Known{me.Node, me.Host, services, true}), -1)
}

func (s *Session) known(ctx context.Context, services []string) (map[string]bool, error) {
	dir, me := KnownDir(s.cfg.Root), s.cfg.Node
	if len(services) > 0 {
		at, data := path.Join(dir, me.Node), encode(Known{me.Node, me.Host, services, false})
		err := s.set(ctx, at, data, -1)
		if errors.Is(err, zk.ErrNoNode) {
			if err = s.ensure(ctx, []string{dir, at}); err == nil {
				err = s.set(ctx, at, data, -1)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	known, err := s.children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	here, err := s.children(ctx, NodesDir(s.cfg.Root))
	connected := map[string]bool{}
	for _, node := range known {
		if printable.IsName(node) && len(connected) < mostKnown {
			connected[node] = slices.Contains(here, node)
		}
	}
	return connected, err
}
