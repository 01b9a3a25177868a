// Package mistakes holds wrong uses, and what a user sees of each: the exit code and the line that helps. Each is a case of a table. The
// package runs commands and supervisors against the embedded server, as any user.
package mistakes

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/keyfile"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/itself"
	"understudy/supervisor/testbed/must"
)

func TestMain(m *testing.M) { itself.Main(m) }

// answer is what a command printed on both outputs, and its exit code.
type answer struct {
	code int
	text string
}

// flat is the text in one line, wherever the lines were broken.
func (a answer) flat() string {
	return strings.Join(strings.Fields(strings.ReplaceAll(a.text, "\\\n", " ")), " ")
}

// wants demands a code and all the words. Nothing that only a contributor understands may be there.
func (a answer) wants(t *testing.T, what string, code int, words ...string) {
	t.Helper()
	for _, word := range words {
		if a.code != code || !strings.Contains(a.flat(), word) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s", what, a.code, code, word, a.text)
		}
	}
	for _, word := range []string{"strconv", "read secret: open", "start in tree", "zk: ", "invalid syntax", "panic"} {
		if strings.Contains(a.text, word) {
			t.Errorf("%s: %q is on the screen:\n%s", what, word, a.text)
		}
	}
}

// runs runs the binary to its end.
func runs(t *testing.T, words ...string) answer {
	t.Helper()
	binary := kit.UnderstudyBinary(t)
	ctx, cancel := context.WithTimeout(t.Context(), kit.Soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, words...)
	cmd.Env = append(os.Environ(), "UNDERSTUDY_ZK=")
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return answer{cmd.ProcessState.ExitCode(), string(out)}
}

// unprivileged has a command run as a user without rights, in a copy of the binary that this user can reach.
func unprivileged(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	binary := kit.UnderstudyBinary(t)
	if os.Geteuid() != 0 {
		return exec.Command(binary, words...)
	}
	dir, err := os.MkdirTemp("", "understudy-mistakes-")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chmod(dir, 0o755))
	data, err := os.ReadFile(binary)
	must.OK(t, err)
	binary = filepath.Join(dir, "understudy")
	must.OK(t, os.WriteFile(binary, data, 0o755))
	must.OK(t, os.Chmod(binary, 0o755))
	for i, word := range words {
		if text, err := os.ReadFile(word); err == nil {
			words[i] = filepath.Join(dir, filepath.Base(word))
			must.OK(t, os.WriteFile(words[i], text, 0o600))
			must.OK(t, os.Chown(words[i], nobody, nobody))
		}
	}
	cmd := exec.Command(binary, words...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

const nobody = 65534

// started is an understudy that runs until the test ends.
type started struct {
	cmd *exec.Cmd
	log string // the file of its outputs
}

func start(t *testing.T, words ...string) *started {
	t.Helper()
	return startCommand(t, exec.Command(kit.UnderstudyBinary(t), words...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	s := &started{cmd, filepath.Join(t.TempDir(), "log")}
	out, err := os.Create(s.log)
	must.OK(t, err)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.Env = append(s.cmd.Environ(), keyfile.RunVariable+"="+notes(t))
	must.OK(t, s.cmd.Start())
	must.OK(t, out.Close())
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("%v:\n%s", cmd.Args[1:], s.said(t))
		}
	})
	return s
}

// notes is a test's own folder for what supervisors note: tests that run beside each other have the same nodes and services, and other servers.
func notes(t *testing.T) string {
	t.Helper()
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name()))
	dir := filepath.Join(os.Getenv(keyfile.RunVariable), strconv.FormatUint(h.Sum64(), 36))
	must.OK(t, os.MkdirAll(dir, 0o755))
	return dir
}

// said is all that it has logged.
func (s *started) said(t *testing.T) string {
	data, err := os.ReadFile(s.log)
	must.OK(t, err)
	return string(bytes.ToValidUTF8(data, nil))
}

// logs waits for a line of the log that has all the words.
func (s *started) logs(t *testing.T, what string, words ...string) {
	t.Helper()
	kit.Until(t, kit.Soon, what+" is logged with "+strings.Join(words, ", "), func() bool { return s.has(t, words) })
}

// has tells whether a line of the log has all the words.
func (s *started) has(t *testing.T, words []string) bool {
	for line := range strings.Lines(s.said(t)) {
		if all(line, words) {
			return true
		}
	}
	return false
}

func all(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	must.OK(t, l.Close())
	return l.Addr().String()
}

// listens takes connections, and answers each with the text; with "" it never answers.
func listens(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if text == "" {
				defer conn.Close()
				continue
			}
			_, _ = conn.Write([]byte(text))
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// server is the embedded ZooKeeper.
func server(t *testing.T) (addr string, dev *started) {
	t.Helper()
	addr = free(t)
	dev = start(t, "dev", "--listen", addr)
	kit.Until(t, kit.Soon, "the server serves", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return addr, dev
}

// write writes a file below a folder of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
