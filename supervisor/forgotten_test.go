package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/keyfile"
	"understudy/supervisor/service"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/unit"
)

// What is noted of a service goes once the service is forgotten, and nothing else does.
func TestNotesOfAForgottenServiceGo(t *testing.T) {
	run := t.TempDir()
	t.Setenv(keyfile.RunVariable, run)
	of := func(node string) Config {
		cfg := Config{Node: node, Root: "/u", Servers: []string{"zk:2181"}, Logger: hclog.NewNullLogger()}
		cfg.Neighbours = NewNeighbours(cfg)
		return cfg
	}
	cfg := of("a")
	leave := func(name, undos string) {
		t.Helper()
		NewMemory(cfg).Save(name, service.Known{Token: 7})
		text := []byte(`{"node":"a","service":"` + name + `","root":"/u","lasting":7,"pending_undos":[` + undos + `]}`)
		must.OK(t, (unit.Note{Node: "a", Service: name, Cluster: ClusterOf(cfg)}).Store().Save(text, true))
	}
	leave("forgotten", "")
	leave("owed", `{"name":"vip","command":["x"]}`)
	leave("there", "")
	leave("ours", "")
	leave("unknown", "")
	leave("held", "")
	other := of("a")
	if _, err := other.Neighbours.join("held", false); err != nil {
		t.Fatal(err)
	}
	NewMemory(of("b")).Save("forgotten", service.Known{Token: 7})
	cfg.Neighbours.dropForgotten(t.Context(), func() []string { return []string{"ours"} }, func(_ context.Context, name string) (bool, error) {
		switch name {
		case "there":
			return true, nil
		case "unknown":
			return false, os.ErrDeadlineExceeded
		}
		return false, nil
	})
	kinds := func(node, name string) (kinds []string) {
		for _, dir := range []string{run, unit.LastingFolder()} {
			found, _ := filepath.Glob(filepath.Join(dir, fileOf(node, name, ClusterOf(cfg))+".*"))
			for _, path := range found {
				kinds = append(kinds, filepath.Ext(path))
			}
		}
		slices.Sort(kinds)
		return kinds
	}
	for name, want := range map[string][]string{
		"forgotten": nil, "owed": {".known", ".undo"}, "there": {".known", ".undo"}, "ours": {".known", ".undo"},
		"unknown": {".known", ".undo"}, "held": {".held", ".known", ".undo"},
	} {
		if got := kinds("a", name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := kinds("b", "forgotten"); len(got) != 1 {
		t.Errorf("of another node: %q", got)
	}
}
