package demo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/demo"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/itself"
	"understudy/supervisor/testbed/must"
)

// Supervisors, guardians and the program are made of the test binary.
func TestMain(m *testing.M) { itself.Main(m) }

// paper is what a demo prints on; it may be read meanwhile.
type paper struct {
	mu sync.Mutex // guards what follows
	b  bytes.Buffer
}

func (p *paper) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(data)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

func stage(t *testing.T, out *paper) demo.Config {
	if testing.Short() {
		t.Skip("takes as long as a user has to watch it")
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", "") // so that what a node notes is in TMPDIR as well, unless root runs it
	return demo.Config{
		Nodes: 2, Exe: kit.UnderstudyBinary(t), Call: "understudy", Out: out, Hurry: make(chan struct{}), Pause: 100 * time.Millisecond,
	}
}

// leftovers are processes and files of demos in a temporary directory.
func leftovers(dir string) []string {
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, proc := range procs {
		line, _ := os.ReadFile(proc)
		if strings.Contains(string(line), dir) {
			left = append(left, proc+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}

func nothingIsLeft(t *testing.T) {
	t.Helper()
	var left []string
	gone := func() bool { left = leftovers(os.Getenv("TMPDIR")); return len(left) == 0 }
	if !kit.Reached(kit.Soon, gone) { // a guardian ends a moment after its supervisor
		t.Errorf("left behind: %v", left)
	}
}

func TestTheDemoBreaksTheActiveNodeInEveryWayAndNothingOverlaps(t *testing.T) {
	var out paper
	report, err := demo.Run(t.Context(), stage(t, &out))
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if len(report.Faults) != 4 || report.OverlapMs != 0 || report.Runs < 5 {
		t.Errorf("report %+v", report)
	}
	for _, r := range report.Faults {
		t.Logf("%s: gap %.1f ms", r.Fault, r.GapMs)
		if r.GapMs <= 0 || r.From == r.To {
			t.Errorf("%+v", r)
		}
	}
	nothingIsLeft(t)
}

func TestAnInterruptedDemoLeavesNothingBehind(t *testing.T) {
	for _, hurried := range []bool{false, true} {
		t.Run(fmt.Sprintf("hurried %v", hurried), func(t *testing.T) {
			var out paper
			cfg := stage(t, &out)
			hurry := make(chan struct{})
			cfg.Hurry = hurry
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := demo.Run(ctx, cfg)
				done <- err
			}()
			for !strings.Contains(out.String(), "is asked to stop") {
				select {
				case err := <-done:
					t.Fatalf("it ended: %v\n%s", err, out.String())
				case <-time.After(10 * time.Millisecond):
				}
			}
			cancel()
			if hurried {
				close(hurry)
			}
			select {
			case err := <-done:
				if err == nil || errors.Is(err, demo.ErrOverlap) {
					t.Errorf("got %v", err)
				}
			case <-time.After(kit.Soon):
				t.Fatal("it does not end")
			}
			nothingIsLeft(t)
		})
	}
}

func TestADemoThatHoldsSaysWhatToTryAndStartsAgainWhatIsEnded(t *testing.T) {
	var out paper
	cfg := stage(t, &out)
	cfg.Hold, cfg.Command = true, []string{"sleep", "1000"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := demo.Run(ctx, cfg)
		done <- err
	}()
	saw := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(out.String(), text); {
			select {
			case err := <-done:
				t.Fatalf("it ended: %v\n%s", err, out.String())
			case <-time.After(10 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %q in\n%s", text, out.String())
			}
		}
	}
	saw("Ctrl-C here ends everything")
	_, page, _ := strings.Cut(out.String(), "node-1: ")
	page, _, _ = strings.Cut(page, "\n")
	if r, err := http.Get(page); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("the page %q: %v", page, err)
	} else {
		_ = r.Body.Close()
	}
	_, rest, _ := strings.Cut(out.String(), "\n  kill -9 ")
	pid, err := strconv.Atoi(rest[:strings.IndexByte(rest, ' ')])
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	victim, err := os.FindProcess(pid)
	must.OK(t, err)
	must.OK(t, victim.Kill())
	saw("is started again")
	cancel()
	must.Report(t, <-done)
	nothingIsLeft(t)
}
