package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// The child's world is the one that its config describes.
func TestAChildFindsTheWorldOfItsConfig(t *testing.T) {
	p := newPlay(t, stage(t))
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	world := filepath.Join(dir, "world")
	must(t, os.Mkdir(world, 0o700))
	must(t, os.Chown(world, 65534, 65534))
	envFile := filepath.Join(dir, "env")
	must(t, os.WriteFile(envFile, []byte("# ours\nFROM_FILE='a b'\nBOTH=file\n"), 0o600))
	script := `(id -un; id -gn; umask; pwd; ulimit -Sn; ulimit -Hn; ulimit -c; nice; cat /proc/self/oom_score_adj; echo $FROM_FILE; echo $BOTH; echo $HOME; echo $UNDERSTUDY_SERVICE; test -n "$UNDERSTUDY_TOKEN" && echo token) >facts.new; mv facts.new facts; exec sleep 1000`
	s := p.serveAlone(t, "command: [sh, -c, '"+script+"']", "working_dir: "+world, "user: nobody", "group: nogroup", `umask: "027"`,
		"env_file: "+envFile, "env: {BOTH: config}", "limits: {nofile: {soft: 100, hard: 200}, core: 0}", "nice: 3", "oom_score_adj: 77")
	facts := filepath.Join(world, "facts")
	var text []byte
	kit.Until(t, soon, "the child tells", func() bool { var err error; text, err = os.ReadFile(facts); return err == nil })
	want := strings.Join([]string{"nobody", "nogroup", "0027", world, "100", "200", "0", "3", "77", "a b", "config", "/nonexistent", p.Options.Service, "token"}, "\n") + "\n"
	if string(text) != want {
		t.Errorf("the child found\n%s\nwanted\n%s", text, want)
	}
	info, err := os.Stat(facts)
	must(t, err)
	if mode := info.Mode().Perm(); mode != 0o640 {
		t.Errorf("its file has mode %v", mode)
	}
	s.Stop(t)
}

// A child that says READY=1 is ready then, and not before.
func TestAChildSaysItselfWhenItIsReady(t *testing.T) {
	p := newPlay(t, stage(t))
	ready := filepath.Join(t.TempDir(), "ready")
	script := fmt.Sprintf(`while ! test -e %s; do sleep 0.02; done; systemd-notify --ready; exec sleep 1000`, ready)
	p.serveAlone(t, "command: [sh, -c, '"+script+"']", "ready: {notify: true, timeout: 1m}")
	health := func(want string) func() bool {
		return func() bool {
			m, ok := p.Member(p.Options.Service, "a")
			return ok && m.Role == "active" && m.Health == want
		}
	}
	kit.Until(t, soon, "it is starting", health("starting"))
	kit.Throughout(t, 300*time.Millisecond, "it is not ready yet", health("starting"))
	must(t, os.WriteFile(ready, nil, 0o600))
	kit.Until(t, soon, "it is ready", health("ok"))
}

// Output goes to files, which are turned over by size; the child's last words are in them.
func TestOutputGoesToItsFile(t *testing.T) {
	p := newPlay(t, stage(t))
	file := filepath.Join(t.TempDir(), "out.log")
	script := `trap "echo last words; exit" TERM; i=0; while test $i -lt 3000; do echo line $i of many; i=$((i+1)); done; echo all; while :; do sleep 0.02; done`
	s := p.serveAlone(t, "command: [sh, -c, '"+script+"']", "log: {file: "+file+", max_size: 16KiB, keep: 2, compress: false}")
	has := func(word string) func() bool {
		return func() bool { text, _ := os.ReadFile(file); return strings.Contains(string(text), word) }
	}
	kit.Until(t, soon, "all is written", has("all\n"))
	s.Stop(t)
	kit.Until(t, soon, "the last words are there", has("last words\n"))
	var sizes []int64
	for _, name := range []string{file + ".2", file + ".1", file} {
		info, err := os.Stat(name)
		must(t, err)
		sizes = append(sizes, info.Size())
		text, err := os.ReadFile(name)
		must(t, err)
		if !strings.HasSuffix(string(text), "\n") {
			t.Errorf("%s ends within a line", name)
		}
	}
	if _, err := os.Stat(file + ".3"); err == nil {
		t.Error("more files are kept than asked for")
	}
	t.Logf("sizes: %v", sizes)
}
