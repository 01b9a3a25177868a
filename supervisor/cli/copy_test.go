package cli

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/must"
)

func TestTheBinaryIsCopiedOverOneThatRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "understudy")
	must.OK(t, os.WriteFile(file, []byte("older"), 0o700))
	must.OK(t, os.Link(file, file+".runs"))
	if code := Main("test", "", []string{"copy", file}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	want, err := os.ReadFile("/proc/self/exe")
	must.OK(t, err)
	got, err := os.ReadFile(file)
	if info, _ := os.Stat(file); err != nil || !bytes.Equal(got, want) || info.Mode() != 0o755 {
		t.Errorf("%d bytes of %d, %v, %v", len(got), len(want), info.Mode(), err)
	}
	if old, err := os.ReadFile(file + ".runs"); err != nil || string(old) != "older" {
		t.Errorf("what ran is %q, %v", old, err)
	}
	if code := Main("test", "", []string{"copy", filepath.Join(file, "none")}); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	config := file + ".yaml"
	must.OK(t, os.WriteFile(config, []byte("node: a\n"), 0o600))
	if code := Main("test", "", []string{"copy", config}); code != exitFailed {
		t.Errorf("over a config: exit code %d", code)
	}
}

// Others may write where the copy goes, such as /tmp: what they put there is neither followed nor written to, and nothing is left there.
func TestACopyLeavesAndFollowsNothing(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(at("victim"), []byte("mine"), 0o600), os.Symlink("victim", at("understudy.part")), os.Mkdir(at("folder"), 0o755))
	must.OK(t, err)
	if code, _, errs := says(t, "copy", at("understudy")); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	if text, err := os.ReadFile(at("victim")); err != nil || string(text) != "mine" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	code, _, errs := says(t, "copy", at("folder"))
	if code != exitFailed || errs != "understudy: "+at("folder")+" is a directory: name the file, as in "+at("folder/understudy")+"\n" {
		t.Errorf("%d %s", code, errs)
	}
	var limit syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: limit.Max}))
	err = copySelf(at("full"))
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	if err == nil {
		t.Error("there was no room for it")
	}
	list, _ := os.ReadDir(dir)
	var names []string
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	if got := strings.Join(names, " "); got != "folder understudy understudy.part victim" {
		t.Error(got)
	}
}
