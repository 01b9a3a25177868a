package zkfaults_test

import (
	"context"
	_ "embed"
	"os/exec"
	"strings"
	"testing"
	"time"

	"understudy/election/zkmem"
	"understudy/packaging/need"
)

//go:embed testdata/kazoo.py
var kazooScript string

func TestKazooWorks(t *testing.T) {
	const python = "/usr/bin/python3"
	need.These(t, "kazoo")
	if out, err := exec.Command(python, "-c", "import kazoo").CombinedOutput(); err != nil {
		t.Fatalf("no kazoo: apt-get install python3-kazoo: %v %s", err, out)
	}
	addr := listen(t, zkmem.New(500*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-", addr)
	cmd.Stdin = strings.NewReader(kazooScript)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "all is well\n") {
		t.Fatalf("%v\n%s", err, out)
	}
}
