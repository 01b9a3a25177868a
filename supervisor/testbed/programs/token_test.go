package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// receipts is a connection to app.py, which gives a receipt for each entry that its store has taken.
type receipts struct {
	url    string
	client *http.Client
	got    *[]string
}

func (r *receipts) Close() error { r.client.CloseIdleConnections(); return nil }

func (r *receipts) Put(int64) error {
	answer, err := r.ask()
	if err == nil {
		*r.got = append(*r.got, answer)
	}
	return err
}

func (r *receipts) All() ([]int64, error) { return nil, errors.New("the store tells") }

// errOld is what the program answers whose token the store refuses.
var errOld = errors.New("its token is old")

// ask has an entry made, and returns the receipt, which is the entry's name.
func (r *receipts) ask() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), watch.AnswerWithin)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return "", err
	}
	a, err := r.client.Do(q)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	switch {
	case err != nil || a.StatusCode == http.StatusOK:
		return string(text), err
	case a.StatusCode == http.StatusConflict:
		return "", errOld
	}
	return "", errors.New(a.Status)
}

// serveStore starts the store of the examples, and returns its address and its file.
func serveStore(t *testing.T, host string) (addr, file string) {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	must.OK(t, err)
	addr, file = l.Addr().String(), filepath.Join(t.TempDir(), "kept.db")
	must.OK(t, l.Close())
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(python, "../../../examples/token-store.py", port, file)
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	return addr, file
}

// A program that outlives its supervisor and both guardians, killed at once, is beyond the reach of everything but the store.
func TestNothingThatATokenCheckingStoreTookIsLost(t *testing.T) {
	need.These(t, "cgroup")
	s := newSet(t, "clock", python)
	at, file := serveStore(t, s.Lab.Addr())
	app, err := filepath.Abs(filepath.Join("testdata", "app.py"))
	must.OK(t, err)
	for _, h := range []*kit.Host{s.a, s.b} {
		h.PowerOn(t) // in a cgroup of its own: supervisors of other hosts must not find what is left here, and end it
		s.example(t, h, "pair.yaml", `[sh, -c, 'while :; do echo "token $UNDERSTUDY_TOKEN on $UNDERSTUDY_NODE"; sleep 1; done']`,
			fmt.Sprintf("[%s, %s, '8000', %q]\n    ready: {tcp: '127.0.0.1:8000', timeout: 10s}", python, app, at))
	}
	var got []string // a ledger's sessions follow one another
	dial := func(addr string) *receipts {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return &receipts{"http://" + addr + "/", client, &got}
	}
	first := s.start(t, s.a)
	s.role(t, s.a, "active")
	second := s.start(t, s.b)
	s.role(t, s.b, "standby")
	a, b := s.a.Addr+":8000", s.b.Addr+":8000"
	l := watch.NewLedger(t, func(addr string) (watch.Store, error) { return dial(addr), nil }, a, b)
	l.Served(t, a)
	first.Stop(t)
	t.Logf("supervisor stopped: no entry was kept for %v", l.Served(t, b))
	first = s.start(t, s.a)
	s.role(t, s.a, "standby")
	second.Kill9()
	t.Logf("supervisor killed: no entry was kept for %v", l.Served(t, a))
	s.start(t, s.b)
	s.role(t, s.b, "standby")
	all := append(first.TwoGuardians(t), first.Pid)
	kit.Signal(syscall.SIGSTOP, all...)
	kit.Until(t, soon, "all are frozen", func() bool { return !slices.ContainsFunc(all, moves) })
	kit.Signal(syscall.SIGKILL, all...)
	l.Served(t, a) // the old program lives, and serves, and the store takes it: nobody else is active yet
	t.Logf("all killed: no entry was kept for %v", l.Served(t, b))
	survivor := dial(a)
	var answer string
	kit.Reached(soon, func() bool { // until the program has had a turn to answer
		answer, err = survivor.ask()
		late := net.Error(nil)
		return !errors.As(err, &late) || !late.Timeout()
	})
	if !errors.Is(err, errOld) {
		t.Errorf("the old program's store says %q, %v", answer, err)
	}
	l.Stop()
	checkKept(t, file, got)
}

// moves tells whether a thread of a process is not stopped.
func moves(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(threads, func(file string) bool {
		text, _ := os.ReadFile(file) // it may be gone
		return !bytes.Contains(text, []byte(") T "))
	})
}

// checkKept demands that all receipts are of entries that the store has.
func checkKept(t *testing.T, file string, got []string) {
	t.Helper()
	const names = "import sqlite3, sys; print(*(name for name, in sqlite3.connect(sys.argv[1]).execute('SELECT name FROM kept')))"
	out, err := exec.Command(python, "-c", names, file).Output()
	must.OK(t, err)
	kept := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		kept[name] = true
	}
	for _, receipt := range got {
		if !kept[receipt] {
			t.Errorf("%q was acknowledged, and is lost", receipt)
		}
	}
	t.Logf("%d acknowledged, %d kept", len(got), len(kept))
	if len(got) < 100 {
		t.Error("that shows nothing")
	}
}
