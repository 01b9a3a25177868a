package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

const asMain = "CHAOS_AS_MAIN"

// TestMain lets the test binary be the command as well.
func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(apart.Run(m))
}

// A broken Understudy is found out. Each is broken so that the first fault that strikes shows it.
func TestBrokenUnderstudyIsFoundOut(t *testing.T) {
	kit.NeedHosts(t)
	need.These(t, "cgroup")
	zktest.Need(t)
	const root = "../../.."
	for _, s := range []struct{ name, file, old, broken, only, shows string }{
		{
			"the lock is given back before the tree is dead", "supervisor/service/end.go", "		if e := t.killUntilProved(ctx); e.Kind",
			"		_ = t.term.claim.Release(context.WithoutCancel(ctx))\n		wait.For(context.WithoutCancel(ctx), time.Second)\n		if e := t.killUntilProved(ctx); e.Kind",
			"supervisor stopped", "two children at once",
		},
		{
			"tokens decrease", "supervisor/unit/unit.go", `"UNDERSTUDY_TOKEN=" + strconv.FormatInt(token, 10)`,
			`"UNDERSTUDY_TOKEN=" + strconv.FormatInt(1<<40-token, 10)`, "supervisor stopped", "token",
		},
		{
			"new znodes belong to all", "election/session.go", "return zk.AuthACL(zk.PermAll)", "return zk.WorldACL(zk.PermAll)", "strangers", "let in",
		},
	} {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			file, err := filepath.Abs(filepath.Join(root, s.file))
			must.OK(t, err)
			text, err := os.ReadFile(file)
			if err != nil || strings.Count(string(text), s.old) != 1 {
				t.Fatalf("%s has not once %q: fit the sabotage to the code (%v)", s.file, s.old, err)
			}
			broken, exe := filepath.Join(dir, "broken.go"), filepath.Join(dir, "understudy")
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: broken}})
			must.OK(t, err)
			for name, text := range map[string]string{broken: strings.Replace(string(text), s.old, s.broken, 1), broken + ".json": string(overlay)} {
				must.OK(t, os.WriteFile(name, []byte(text), 0o600))
			}
			if out, err := exec.Command("go", "build", "-overlay", broken+".json", "-o", exe, root).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-minutes", "1", "-seed", "1", "-only", s.only, "-last", "2s", "-dir", dir)
			cmd.Env = append(os.Environ(), asMain+"=1", "UNDERSTUDY_BINARY="+exe)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "FINDING") || !strings.Contains(string(out), s.shows) {
				t.Fatalf("it ended with %d:\n%s", code, out)
			}
		})
	}
}
