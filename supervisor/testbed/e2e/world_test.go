package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// The child's world is the one that its config describes.
func TestAChildFindsTheWorldOfItsConfig(t *testing.T) {
	p := newPlay(t, stage(t))
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		must.OK(t, os.Chmod(d, 0o755))
	}
	world := filepath.Join(dir, "world")
	must.OK(t, os.Mkdir(world, 0o700))
	must.OK(t, os.Chown(world, 65534, 65534))
	envFile := filepath.Join(dir, "env")
	must.OK(t, os.WriteFile(envFile, []byte("# ours\nFROM_FILE='a b'\nBOTH=file\n"), 0o600))
	script := `(id -un; id -gn; umask; pwd; ulimit -Sn; ulimit -Hn; ulimit -c; nice; cat /proc/self/oom_score_adj; echo $FROM_FILE; echo $BOTH; echo $WATCHDOG_USEC; echo $HOME; echo $UNDERSTUDY_SERVICE; test -n "$UNDERSTUDY_TOKEN" && echo token) >facts.new; mv facts.new facts; exec sleep 1000`
	s := p.serveAlone(t, "command: [sh, -c, '"+script+"']", "working_dir: "+world, "user: nobody", "group: nogroup", `umask: "027"`,
		"env_file: "+envFile, `env: {BOTH: config, WATCHDOG_USEC: "5"}`, "limits: {nofile: {soft: 100, hard: 200}, core: 0}", "nice: 3", "oom_score_adj: 77")
	facts := filepath.Join(world, "facts")
	var text []byte
	kit.Until(t, soon, "the child tells", func() bool { var err error; text, err = os.ReadFile(facts); return err == nil })
	want := strings.Join([]string{"nobody", "nogroup", "0027", world, "100", "200", "0", "3", "77", "a b", "config", "5", "/nonexistent", p.Options.Service, "token"}, "\n") + "\n"
	if string(text) != want {
		t.Errorf("the child found\n%s\nwanted\n%s", text, want)
	}
	info, err := os.Stat(facts)
	must.OK(t, err)
	if mode := info.Mode().Perm(); mode != 0o640 {
		t.Errorf("its file has mode %v", mode)
	}
	s.Stop(t)
}
