package child

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/containment"
	"understudy/supervisor/child/guardian"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/must"
)

const (
	puppetRole = "child-test-supervisor"
	pid1Role   = "child-test-pid1"
	nobodyRole = "child-test-nobody"
)

// The test binary, re-executed, is the guardian, the stub and the supervisor.
func TestMain(m *testing.M) {
	switch {
	case guardian.Is():
		switch {
		case strings.HasSuffix(os.Args[0], slowNode) && strings.Contains(os.Args[0], "1/2"): // both are waited for by the same lines
			time.Sleep(slowness) // the fault itself
		case strings.HasSuffix(os.Args[0], muteNode):
			time.Sleep(time.Hour) // the fault itself
		}
		os.Exit(guardian.Main(guardian.Duties{Close: recordClosing, Undo: undoFile}))
	case inside.IsInit():
		os.Exit(inside.InitMain())
	case os.Args[0] == pid1Role && inside.IsPID1():
		code, err := inside.PID1Main()
		if err != nil {
			code = 99
		}
		os.Exit(code)
	case os.Args[0] == pid1Role:
		os.Exit(orphanage())
	case os.Args[0] == probingRole:
		os.Exit(probing())
	case os.Args[0] == delegatedRole:
		if err := delegated(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Args[0] == nobodyRole:
		os.Exit(nobodyMain())
	case len(os.Args) == 2 && os.Args[1] == runawayWord:
		runaway()
	case len(os.Args) == 2 && os.Args[1] == headlessWord:
		headless()
	case len(os.Args) == 2 && os.Args[1] == imageWord:
		fmt.Printf("%s: %s", os.Args[0], image())
		os.Exit(0)
	case os.Args[0] == tracerRole:
		os.Exit(tracerMain())
	case os.Args[0] == puppetRole:
		os.Exit(puppetMain())
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // of the processes that are started
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "6") // most of it is waiting
	}
	os.Exit(apart.Run(m))
}

// ticket is what the guardians of these tests close: they write a line to Log, saying whether anybody still holds Held.
type ticket struct {
	Log, Held string
	Fail      int // so many times
}

// closed is one such line.
type closed struct {
	At                     time.Duration
	Pid                    int
	Releases, Undone, Left []string
	AllDead                bool
	Alive                  bool
	Undo                   bool // it is no closing
}

func recordClosing(_ context.Context, order guard.Closing) error {
	var t ticket
	if err := json.Unmarshal(order.Ticket, &t); err != nil {
		return err
	}
	c := closed{At: wire.Now(), Pid: os.Getpid(), AllDead: order.All, Alive: hasWriter(t.Held)}
	for _, r := range order.Releases {
		c.Releases = append(c.Releases, string(r))
	}
	for _, r := range order.Undone {
		c.Undone = append(c.Undone, string(r))
	}
	for _, r := range order.Left {
		c.Left = append(c.Left, string(r))
	}
	slices.Sort(c.Releases)
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(t.Log, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil // the test has ended
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// hasWriter says whether anybody has a FIFO open for writing.
func hasWriter(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, buf)
		if n <= 0 {
			return err == unix.EAGAIN
		}
	}
}

// freeze stops a process. SIGSTOP reaches a thread when it is next scheduled, so it waits until all of them stand still.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil && !errors.Is(err, unix.ESRCH) {
		t.Fatal(err)
	}
	moves := func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		s, err := box.ParseStat(string(text))
		return err != nil || !strings.ContainsRune("TtZX", rune(s.State))
	}
	for limit := time.Now().Add(patience); ; runtime.Gosched() {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		switch {
		case err != nil:
			t.Fatal(err)
		case !slices.ContainsFunc(threads, moves):
			return
		case time.Now().After(limit):
			t.Fatalf("a thread of %d still runs", pid)
		}
	}
}

// kinds runs a test for every kind of containment, all of them at once, and beside other tests: most of it is waiting.
func kinds(t *testing.T, f func(t *testing.T, kind string)) {
	t.Parallel()
	kindsInTurn(t, func(t *testing.T, kind string) { t.Parallel(); f(t, kind) })
}

// kindsInTurn is kinds for tests that look at, or change, what the whole process has.
func kindsInTurn(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range []string{box.KindCgroup, box.KindPidNS, box.KindWalk} {
		t.Run(kind, func(t *testing.T) {
			needKind(t, kind)
			f(t, kind)
		})
	}
}

// needKind leaves out a kind of containment that is not asked for. Walking takes nothing.
func needKind(t *testing.T, kind string) {
	t.Helper()
	if kind != box.KindWalk {
		need.These(t, kind)
	}
}

func probed(t *testing.T, kind string) box.Container {
	t.Helper()
	needKind(t, kind)
	c, err := containment.Choose(t.Context(), kind, nil)
	must.OK(t, err)
	if kind == box.KindCgroup { // what other tests leave, in other processes, is no concern of this one
		c.Base = ownBase(t, c.Base)
	}
	return c
}

// ownBase is a place for cgroups that goes, with all that is in it, when the test ends.
func ownBase(t *testing.T, base string) string {
	t.Helper()
	own, err := os.MkdirTemp(base, "place-")
	if err == nil {
		err = os.Chmod(own, 0o755) // for other users' supervisors as well
	}
	must.OK(t, err)
	t.Cleanup(func() {
		l, err := box.OpenTreeCgroup(own, 0)
		if err != nil {
			return // nothing was left of it
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must.Report(t, box.KillUntilDead(ctx, l, true))
	})
	return own
}

// orphanage makes orphans, waits for its own child, and ends with code 7 on a signal.
func orphanage() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1)
	if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 100 ]; do (true & true &); i=$((i+1)); done; exit 3").Run(); err == nil ||
		err.Error() != "exit status 3" {
		return 1
	}
	_, _ = os.Stdout.WriteString("ready\n")
	<-signals
	if err := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 &").Run(); err != nil {
		return 1
	}
	return 7
}

// caughtUp waits until both guardians have done all that they were told.
func caughtUp(ctx context.Context, g *Guard) error {
	g.guardians.mu.Lock()
	seq := g.guardians.pair.Questions.Rouse(wire.Now())
	g.guardians.unlock()
	return g.guardians.answered(ctx, seq)
}

// bothServe waits until no guardian is being replaced any more, when there are so many trees.
func bothServe(ctx context.Context, g *Guard, trees int) error {
	err := caughtUp(ctx, g)
	for err == nil {
		g.guardians.mu.Lock()
		_, busy := g.guardians.pair.HandOver(wire.Now(), map[uint64]int{1: trees})
		changed := g.guardians.pair.Questions.Changed()
		g.guardians.mu.Unlock()
		if !errors.Is(busy, guard.ErrBusy) {
			return busy
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return err
}
