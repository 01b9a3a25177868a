package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheBinaryIsCopiedOverOneThatRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "understudy")
	if err := os.WriteFile(file, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, file+".runs"); err != nil {
		t.Fatal(err)
	}
	if code := Main("test", []string{"copy", file}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	want, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if info, _ := os.Stat(file); err != nil || !bytes.Equal(got, want) || info.Mode() != 0o755 {
		t.Errorf("%d bytes of %d, %v, %v", len(got), len(want), info.Mode(), err)
	}
	if old, err := os.ReadFile(file + ".runs"); err != nil || string(old) != "older" {
		t.Errorf("what ran is %q, %v", old, err)
	}
	if code := Main("test", []string{"copy", filepath.Join(file, "none")}); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}
