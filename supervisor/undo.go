package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/keyfile"
)

// A oneshot may have changed the machine - an address, a mount - in a way that does not end with its process. What undoes it
// is owed from before it starts, and written down, so that a supervisor that comes after one that was killed can do it.

// debt is a command that is owed.
type debt struct {
	Name    string        `json:"name"`
	Command []string      `json:"command"`
	Timeout time.Duration `json:"timeout"`
	Token   int64         `json:"token"`
}

// ledger is what one service of one node owes, as it is written down.
type ledger struct {
	Node    string `json:"node"`
	Service string `json:"service"`
	Debts   []debt `json:"debts"`
}

// owe notes that a program has to be undone.
func (v *service) owe(p Program) {
	v.debts = append(v.debts, debt{p.Name, p.Undo, p.StopTimeout, v.token})
	v.writeDebts()
}

// undoNewest undoes what was done last, in the tree.
func (v *service) undoNewest(ctx context.Context, t turn, tree Tree) {
	v.pay(ctx, t.over, func(d debt, spec child.Spec) error { return v.inside(ctx, tree, "undo", spec, d.Timeout) })
}

// undoAll undoes all that is left. The tree is dead.
func (v *service) undoAll(ctx context.Context) {
	v.paying.Lock() // a term that lost its lease may still be at it
	defer v.paying.Unlock()
	for len(v.debts) > 0 && ctx.Err() == nil {
		v.pay(ctx, func() bool { return false }, func(d debt, spec child.Spec) error { return v.outside(ctx, "undo", spec, d.Timeout) })
	}
}

// pay runs the newest debt's command. One that fails is not tried again: the operator is told. What could not be done to its end
// since the tree went is still owed.
func (v *service) pay(ctx context.Context, cut func() bool, run func(debt, child.Spec) error) {
	last := len(v.debts) - 1
	if last < 0 {
		return
	}
	d := v.debts[last]
	v.log.Info("undoing", "service", v.name, "process", d.Name, "timeout", d.Timeout)
	err := run(d, child.Spec{Argv: d.Command, Env: v.facts(d.Token)})
	if err != nil && (ctx.Err() != nil || cut()) {
		return
	}
	if err != nil {
		v.log.Error("what a process did could not be undone", "service", v.name, "process", d.Name, "command", d.Command, "error", err)
	} else {
		v.log.Info("undone", "service", v.name, "process", d.Name)
	}
	v.debts = v.debts[:last]
	v.writeDebts()
}

// debtsDir is a place that is emptied when the machine boots, as an address is gone then. What is read there is run.
var debtsDir = "/run/understudy"

// trustedDebts refuses a folder of others: where /run is open to all, as in some containers, they can make it before us.
func trustedDebts() error {
	err := keyfile.Folder(debtsDir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// debtsFile is no other node's or service's: names may hold what would stand between them, and may be long.
func (v *service) debtsFile() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", v.node.Node, v.name)
	return filepath.Join(debtsDir, strconv.FormatUint(h.Sum64(), 36)+"."+v.cluster+".undo")
}

func (v *service) writeDebts() {
	v.owing.Store(int64(len(v.debts)))
	file := v.debtsFile()
	var err error
	if len(v.debts) == 0 {
		if err = os.Remove(file); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else if err = errors.Join(os.MkdirAll(debtsDir, 0o755), trustedDebts()); err == nil {
		var data []byte
		if data, err = json.Marshal(ledger{v.node.Node, v.name, v.debts}); err == nil {
			if err = os.WriteFile(file+"~", data, 0o600); err == nil {
				err = os.Rename(file+"~", file)
			}
		}
	}
	if err != nil {
		v.log.Warn("cannot write down what is to be undone; should this supervisor be killed, nobody will do it", "service", v.name, "error", err)
	}
}

// inherit takes over what a supervisor of this node that was killed had left to be undone.
func (v *service) inherit() {
	data, err := os.ReadFile(v.debtsFile())
	if err != nil {
		return
	}
	var left ledger
	if err = trustedDebts(); err == nil {
		err = json.Unmarshal(data, &left)
	}
	if err == nil && (left.Node != v.node.Node || left.Service != v.name) {
		err = fmt.Errorf("it is of %s on %s", left.Service, left.Node)
	}
	if err != nil {
		v.log.Warn("what a former supervisor left to be undone cannot be read", "service", v.name, "file", v.debtsFile(), "error", err)
		return
	}
	v.debts = left.Debts
	v.owing.Store(int64(len(v.debts)))
}

// indebted names the services that are not in the config any more and left something to be undone on this node.
func (s *supervisor) indebted() (names []string) {
	if trustedDebts() != nil {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(debtsDir, "*."+s.cluster()+".undo")) // a bad pattern is the only error
	for _, file := range files {
		var left ledger
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &left) != nil || left.Node != s.cfg.Node || left.Service == "" {
			continue
		}
		if !slices.ContainsFunc(s.cfg.Services, func(c Service) bool { return c.Name == left.Service }) {
			names = append(names, left.Service)
		}
	}
	return names
}
