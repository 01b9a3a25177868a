package soak

import (
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// change replaces a piece of a file that occurs there exactly once, or adds a file.
type change struct{ file, old, new string }

//go:embed testdata/probe.go.txt
var probeSource string

//go:embed testdata/leaks.go.txt
var leaksSource string

// leaks makes a supervisor leave one of everything behind at the end of each term.
var leaks = []change{
	{"supervisor/service/leak_soak.go", "", leaksSource},
	{"supervisor/service/end.go", "	v.history.noteEnd(&t.term.entry, t.endReason())\n", "	v.history.noteEnd(&t.term.entry, t.endReason())\n	leak()\n"},
	{"supervisor/child/box/cgroup.go", "	l, err := OpenTreeCgroup(path, 0)\n	if err != nil {\n		return nil, errors.Join(err, os.Remove(path))\n",
		"	_ = os.Mkdir(path+\".left\", 0o755)\n	l, err := OpenTreeCgroup(path, 0)\n	if err != nil {\n		return nil, errors.Join(err, os.Remove(path))\n"},
	{"supervisor/guard/tree.go", "	t.shut()\n	t.dead, t.struck", "	t.dead, t.struck"},
	{"election/history.go", "	names, err := h.s.children(ctx, h.dir)\n",
		"	_ = h.s.create(ctx, h.dir[:len(h.dir)-len(historyName)-1]+\"/left-\"+entry[len(entry)-10:], nil, 0)\n	names, err := h.s.children(ctx, h.dir)\n"},
}

// build makes the program under test with a probe in it, which does not ship, and with the changes.
func build(t *testing.T, changes []change) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	must.OK(t, err)
	dir := t.TempDir()
	replace := map[string]string{}
	for i, c := range append([]change{{"probe_soak.go", "", probeSource}}, changes...) {
		text := c.new
		if c.old != "" {
			whole, err := os.ReadFile(filepath.Join(root, c.file))
			must.OK(t, err)
			if n := strings.Count(string(whole), c.old); n != 1 {
				t.Fatalf("%s: what is to be replaced is there %d times; the change has to be fitted to the code:\n%s", c.file, n, c.old)
			}
			text = strings.Replace(string(whole), c.old, c.new, 1)
		}
		laid := filepath.Join(dir, string(rune('a'+i))+".go")
		must.OK(t, os.WriteFile(laid, []byte(text), 0o600))
		replace[filepath.Join(root, c.file)] = laid
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must.OK(t, err)
	file, exe := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "understudy")
	must.OK(t, os.WriteFile(file, overlay, 0o600))
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-overlay", file, "-o", exe, "understudy").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return exe
}
