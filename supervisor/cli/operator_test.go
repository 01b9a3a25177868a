package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/election/zkmem"
)

// says runs a command line in this process and returns its code and what it printed.
func says(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	was := [2]*os.File{os.Stdout, os.Stderr}
	var files [2]*os.File
	for i, name := range []string{"out", "err"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	os.Stdout, os.Stderr = files[0], files[1]
	code = Main("1.2.3", args)
	os.Stdout, os.Stderr = was[0], was[1]
	read := func(f *os.File) string {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return code, read(files[0]), read(files[1])
}

func emptyCluster(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := zkmem.New(zkmem.Config{})
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().String()
}

func TestWhatIsWrongIsToldInOneLineWithItsExitCode(t *testing.T) {
	zk := emptyCluster(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("UNDERSTUDY_ZK", "")
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"status", 2, "which ZooKeeper?"},
		{"status a b --zk " + zk, 2, "one service at most"},
		{"status db --zk " + zk, 1, `no service "db": there is none yet`},
		{"status --timeout 0s --zk " + zk, 2, "--timeout must be"},
		{"status --watch --zk " + zk, 2, "--watch is for a terminal"},
		{"status --timeout 300ms --zk 127.0.0.1:1", 1, "127.0.0.1:1"},
		{"history --timeout 300ms --zk " + silent.Addr().String(), 1, "no ZooKeeper server of"},
		{"history db --zk " + zk, 1, `no service "db"`},
		{"history -n -1 --zk " + zk, 2, "--number"},
		{"fence confirm --zk " + zk, 2, "one service"},
		{"fence confirm db --zk " + zk, 2, "--node"},
		{"fence confirm db --node a --zk " + zk, 1, `no service "db"`},
		{"dev --listen " + zk, 1, "another one running"},
		{"dev --listen nowhere", 2, "--listen"},
		{"dev more", 2, "no arguments"},
		{"demo --nodes 1", 2, "--nodes must be from 2 to 9"},
		{"demo sleep 1", 2, "after `--`"},
		{"demo -- no-such-program", 2, "no-such-program"},
	} {
		code, out, errs := says(t, strings.Fields(c.line)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: code %d, out %q, err %q; want %d, %q", c.line, code, out, errs, c.code, c.want)
		}
	}
}

func TestEveryTableIsThereAsJSON(t *testing.T) {
	zk := emptyCluster(t)
	for line, want := range map[string]string{
		"status --json --zk " + zk:  `{"nodes":[],"services":[]}`,
		"history --json --zk " + zk: `{"activations":[]}`,
	} {
		code, out, errs := says(t, strings.Fields(line)...)
		var v any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
			t.Fatalf("%s: code %d, %q, %q: %v", line, code, out, errs, err)
		}
		if got, _ := json.Marshal(v); string(got) != want {
			t.Errorf("%s: %s", line, got)
		}
	}
	_, out, _ := says(t, "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(out), &b); err != nil || b.Version != "1.2.3" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("version is %q: %v", out, err)
	}
	if _, out, _ = says(t, "version"); !strings.HasPrefix(out, "understudy 1.2.3, commit ") || strings.Count(out, "\n") != 1 {
		t.Errorf("version is %q", out)
	}
}

func TestEveryCommandOfAnOperatorHasHelpWithAnExample(t *testing.T) {
	for _, line := range []string{"status", "history", "fence", "fence confirm", "dev", "demo", "version"} {
		code, out, _ := says(t, append(strings.Fields(line), "--help")...)
		if code != 0 || !strings.Contains(out, "Examples:\n  understudy "+line) {
			t.Errorf("%s --help: code %d\n%s", line, code, out)
		}
	}
}

func TestDevServesUntilItIsInterrupted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- dev(ctx, io.Discard, addr) }()
	var c net.Conn
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err = net.Dial("tcp", addr); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "ruok"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "imok" {
		t.Errorf("got %q, %v", got, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if words := devWords(addr); !strings.Contains(words, "NOT FOR PRODUCTION") || !strings.Contains(words, "--zk "+addr) {
		t.Errorf("it says %q", words)
	}
}
