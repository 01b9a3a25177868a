package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child/box"
)

// ProxyNote is what a guardian has to know to answer. It reads the files as the supervisor does, when somebody comes.
type ProxyNote struct {
	Root    string         `json:"root,omitempty"` // of the cluster in ZooKeeper
	Node    string         `json:"node"`
	Files   agent.KeyFiles `json:"files"`
	Secrets [][]byte       `json:"secrets,omitempty"` // for as long as their file cannot be read
}

// InGuardian is the proxy agent of this machine's guardian, as guardian.Main takes it. owed is a Prover's.
func InGuardian(
	owed func(t fencing.Target, boot string) []string,
) func([]byte, func(box.TreeID) bool) (func(context.Context, net.Conn), error) {
	return func(note []byte, buried func(box.TreeID) bool) (func(context.Context, net.Conn), error) {
		return inGuardian(note, buried, owed)
	}
}

func inGuardian(
	note []byte, buried func(box.TreeID) bool, owed func(t fencing.Target, boot string) []string,
) (func(context.Context, net.Conn), error) {
	var as ProxyNote
	if err := json.Unmarshal(note, &as); err != nil {
		return nil, fmt.Errorf("read the supervisor's note: %w", err)
	}
	host, err := box.Identity()
	if err != nil {
		return nil, fmt.Errorf("identify this machine: %w", err)
	}
	kill := func(ctx context.Context, tree json.RawMessage) error {
		err := KillTree(ctx, tree)
		var id box.TreeID
		if errors.Is(err, box.ErrNotSeen) && json.Unmarshal(tree, &id) == nil && buried(id) {
			return nil
		}
		return err
	}
	prover := Prover{Node: as.Node, Host: host, End: kill, Look: Outlasted, Owed: owed}
	return Proxy(prover, as.Root, as.Files.KeysFrom(as.Secrets)).Answer, nil
}

// Proxy is the agent of a guardian, which knows no services: it ends a tree by its identity, and looks for the process that was seen alive
// of it.
func Proxy(w Prover, root string, keys *agent.Keys) *agent.Server {
	return &agent.Server{
		Keys: keys, Logger: hclog.NewNullLogger(), // any log could hold a guardian up
		Self: agent.Answer{Node: w.Node, Machine: w.Host.Machine, Boot: w.Host.Boot},
		Prove: func(ctx context.Context, q agent.Question) (fencing.Liveness, string, error) {
			verdict, by, err := w.Prove(ctx, q.Target(root))
			return verdict, by + ", says a guardian", err
		},
	}
}
