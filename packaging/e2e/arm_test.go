package e2e

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// What is built for the other architecture is run by an emulator. It cannot start itself there, so that guardians and demo stay out.
func TestArmBinaryRuns(t *testing.T) {
	need.These(t, "qemu")
	root := t.TempDir()
	must.OK(t, run(exec.Command("dpkg-deb", "-x", file(t, packages(t, buildOlder), "*_arm64.deb"), root)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	arm := func(words ...string) *exec.Cmd {
		words = append([]string{filepath.Join(root, "usr/bin/understudy")}, words...)
		if runtime.GOARCH != "arm64" {
			words = append([]string{"qemu-aarch64"}, words...)
		}
		return exec.CommandContext(ctx, words[0], words[1:]...)
	}
	for _, c := range []struct{ words, says string }{
		{"version", "understudy " + older}, {"--help", "the old copy is dead"}, {"run --help", "--lease"},
		{"check --config " + root + "/etc/understudy/understudy.yaml", "ok: 0 services"},
		{"check --effective --config " + root + "/usr/share/doc/understudy/examples/redis.yaml", "lease"},
		{"completion zsh", "#compdef understudy"},
	} {
		if out, err := arm(strings.Fields(c.words)...).Output(); err != nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v, %.300s", c.words, err, out)
		}
	}
	// ZooKeeper in memory and somebody who asks it: both speak the protocol, byte by byte.
	dev := arm("dev", "--listen", "127.0.0.1:0")
	said, err := dev.StderrPipe()
	if err == nil {
		err = dev.Start()
	}
	must.OK(t, err)
	defer func() { cancel(); _ = dev.Wait() }()
	for lines := bufio.NewScanner(said); lines.Scan(); {
		for _, word := range strings.Fields(lines.Text()) {
			if strings.HasPrefix(word, "127.0.0.1:") {
				if out, err := arm("status", "--zk", strings.TrimSuffix(word, ".")).Output(); err != nil || !strings.Contains(string(out), "Nothing of Understudy is below") {
					t.Errorf("status: %v, %s", err, out)
				}
				return
			}
		}
	}
	t.Error("the ZooKeeper in memory does not say where it listens")
}
