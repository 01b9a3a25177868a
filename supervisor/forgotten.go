package supervisor

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

	"understudy/supervisor/child/notify"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// dropForgotten removes what was noted here of services that this supervisor does not have, once ZooKeeper has nothing of them: an operator
// has had them forgotten. What is owed stays, and what another supervisor has.
func (n *Neighbours) dropForgotten(ctx context.Context, ours func() []string, there func(context.Context, string) (bool, error)) {
	if n == nil {
		return
	}
	cluster := ClusterOf(n.cfg)
	var names []string
	for _, dir := range []string{notify.DefaultDir(), unit.LastingFolder()} {
		for _, kind := range []string{".known", ".undo"} {
			files, err := wait.Reached(ctx, &n.reach, func() ([]string, error) {
				return filepath.Glob(filepath.Join(dir, "*."+cluster+kind))
			}, nil)
			if err != nil { // a file system may hang
				return
			}
			for _, file := range files {
				if ctx.Err() != nil {
					return
				}
				var k kept // all that both kinds have
				data, err := (&keyfile.Store{Dir: dir, Name: filepath.Base(file)}).Load()
				if err == nil && json.Unmarshal(data, &k) == nil && k.Node == n.cfg.Node && !slices.Contains(names, k.Service) {
					names = append(names, k.Service)
				}
			}
		}
	}
	for _, name := range names {
		file := fileOf(n.cfg.Node, name, cluster)
		held := keyfile.Store{Dir: notify.DefaultDir(), Name: file + heldFile}
		if held.Held() {
			continue
		}
		if is, err := there(ctx, name); is || err != nil || slices.Contains(ours(), name) {
			continue
		}
		err := unit.Note{Node: n.cfg.Node, Service: name, Cluster: cluster}.Forget(ctx)
		if err == nil {
			err = (&keyfile.Store{Dir: notify.DefaultDir(), Name: file + ".known"}).Save(nil)
		}
		n.log.Debug("what was noted of a service that is forgotten is removed", "service", name, "error", err)
	}
}
