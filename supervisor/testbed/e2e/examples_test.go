package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// output is what a process has printed so far.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) has(word string) func() bool {
	return func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return strings.Contains(o.text.String(), word)
	}
}

// started runs a command of a newcomer until the test ends.
func started(t *testing.T, env []string, words ...string) (*exec.Cmd, *output) {
	t.Helper()
	out := &output{}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), out, out
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("story: %v:\n%s", words, out.text.String())
		}
	})
	return cmd, out
}

// The examples are typed as they stand, against `understudy dev`.
func TestExamplesRunAsTheyStand(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	zk := listener.Addr().String()
	must.OK(t, listener.Close())
	bin := kit.UnderstudyBinary(t)
	path := "PATH=" + filepath.Dir(bin) + ":" + os.Getenv("PATH")
	_, dev := started(t, nil, bin, "dev", "--listen", zk)
	kit.Until(t, soon, "dev says that it is not for production", dev.has("NOT FOR PRODUCTION"))

	examples := filepath.Join("..", "..", "..", "examples")
	one, first := started(t, []string{path, "UNDERSTUDY_ZK=" + zk, "NODE=one"}, filepath.Join(examples, "wrap.sh"))
	kit.Until(t, soon, "the clock ticks on one", first.has(" on one"))

	text, err := os.ReadFile(filepath.Join(examples, "pair.yaml"))
	must.OK(t, err)
	file := filepath.Join(t.TempDir(), "pair.yaml")
	must.OK(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("127.0.0.1:2181"), []byte(zk)), 0o600))
	_, second := started(t, nil, bin, "run", "--config", file, "--node", "two") // the same service, from a file
	kit.Until(t, soon, "two stands by", second.has("to=standby"))
	must.OK(t, one.Process.Signal(syscall.SIGTERM))
	kit.Until(t, soon, "the clock ticks on two", second.has(" on two"))
}
