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
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	kept "understudy/supervisor/testbed/kit/store"
)

// receipts is a connection to app.py, which gives a receipt for each entry that its store has taken.
type receipts struct {
	url    string
	client *http.Client
	got    *[]string
}

func (r *receipts) close() { r.client.CloseIdleConnections() }

func (r *receipts) write(int64) error {
	answer, err := r.ask()
	if err == nil {
		*r.got = append(*r.got, answer)
	}
	return err
}

func (r *receipts) all() ([]int64, error) { return nil, errors.New("the journal tells") }

// ask has an entry made, and returns the receipt, or what was said in its place as an error.
func (r *receipts) ask() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
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
	if err == nil && a.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return string(text), err
}

// serveStore starts a store, and returns its address and its journal.
func serveStore(t *testing.T, host string) (addr, journal string) {
	t.Helper()
	journal = filepath.Join(t.TempDir(), "journal")
	f, err := os.Create(journal)
	must(t, err)
	l, err := net.Listen("tcp", host+":0")
	must(t, err)
	go func() { _ = kept.New(f).Serve(l) }() // until it is closed
	t.Cleanup(func() { l.Close(); f.Close() })
	return l.Addr().String(), journal
}

// A program that outlives its supervisor and both guardians, killed at once, is beyond the reach of everything but the store.
func TestNothingThatATokenCheckingStoreTookIsLost(t *testing.T) {
	need.These(t, "cgroup")
	s := newSet(t, "clock", python)
	at, journal := serveStore(t, s.Lab.Addr())
	app, err := filepath.Abs(filepath.Join("testdata", "app.py"))
	must(t, err)
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
	l := newLedger(t, func(addr string) (store, error) { return dial(addr), nil }, a, b)
	l.served(t, a)
	first.Stop(t)
	t.Logf("supervisor stopped: no entry was kept for %v", l.served(t, b))
	first = s.start(t, s.a)
	s.role(t, s.a, "standby")
	second.Kill9()
	t.Logf("supervisor killed: no entry was kept for %v", l.served(t, a))
	s.start(t, s.b)
	s.role(t, s.b, "standby")
	all := append(first.TwoGuardians(t), first.Pid)
	kit.Signal(syscall.SIGSTOP, all...)
	kit.Until(t, soon, "all are frozen", func() bool { return !slices.ContainsFunc(all, moves) })
	kit.Signal(syscall.SIGKILL, all...)
	l.served(t, a) // the old program lives, and serves, and the store takes it: nobody else is active yet
	t.Logf("all killed: no entry was kept for %v", l.served(t, b))
	survivor := dial(a)
	var answer string
	kit.Reached(soon, func() bool { // until the program has had a turn to answer
		answer, err = survivor.ask()
		late := net.Error(nil)
		return !errors.As(err, &late) || !late.Timeout()
	})
	if err == nil || !strings.HasPrefix(err.Error(), string(kept.Old)+" ") {
		t.Errorf("the old program's store says %q, %v", answer, err)
	}
	l.stop()
	checkJournal(t, journal, got)
}

// moves tells whether a thread of a process is not stopped.
func moves(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(threads, func(file string) bool {
		text, _ := os.ReadFile(file) // it may be gone
		return !bytes.Contains(text, []byte(") T "))
	})
}

// checkJournal demands that all receipts are in the journal, and that tokens never went back.
func checkJournal(t *testing.T, journal string, got []string) {
	t.Helper()
	writes, err := kept.ReadJournal(journal)
	must(t, err)
	var taken []string
	var highest int64
	old := 0
	for _, w := range writes {
		switch w.Verdict {
		case kept.Taken:
			taken = append(taken, fmt.Sprintf("taken %s %d\n", w.Run, w.N))
			if w.Token < highest {
				t.Errorf("token %d was taken after %d", w.Token, highest)
			}
			highest = w.Token
		case kept.Old:
			old++
		default:
			t.Errorf("the store says %+v", w)
		}
	}
	slices.Sort(taken)
	for _, receipt := range got {
		if _, ok := slices.BinarySearch(taken, receipt); !ok {
			t.Errorf("%q was acknowledged, and is lost", receipt)
		}
	}
	t.Logf("%d acknowledged, %d taken, %d refused", len(got), len(taken), old)
	if old == 0 || len(got) < 100 {
		t.Error("that shows nothing")
	}
}
