package child

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// guarded runs a guard inside the test process until the test ends.
func guarded(t *testing.T, kind string) *Guard {
	t.Helper()
	return guardedAs(t, GuardConfig{Container: probed(t, kind), Name: "test"})
}

func guardedAs(t *testing.T, cfg GuardConfig) *Guard {
	t.Helper()
	g, stop := running(t, cfg)
	t.Cleanup(func() {
		must.Report(t, stop())
	})
	return g
}

// running is a guard that runs until stop is called, which returns what its Run does.
func running(t *testing.T, cfg GuardConfig) (g *Guard, stop func() error) {
	t.Helper()
	g, err := StartGuard(t.Context(), cfg)
	must.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	return g, func() error {
		cancel()
		return <-ran
	}
}

// planted is a tree under a lease that lasts.
func planted(t *testing.T, g *Guard) *Tree {
	t.Helper()
	must.OK(t, errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+time.Minute)))
	tree, err := g.NewTree(t.Context(), 1, "svc", nil)
	must.OK(t, err)
	return tree
}

// started runs a script and returns the reading end of its stdout, which is at its end once the whole tree is dead. The script opens the
// writing end itself: a pipe's would be in each process that this one is forking meanwhile, for another test, until that has its program.
func started(t *testing.T, tree *Tree, script string) (*Process, *os.File) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	must.OK(t, unix.Mkfifo(out, 0o600))
	opened := make(chan *os.File, 1)
	go func() { // returns when there is a writer
		fd, err := unix.Open(out, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.SetNonblock(fd, true) // so that it can have a deadline
		}
		must.Report(t, err)
		opened <- os.NewFile(uintptr(fd), "stdout of "+script)
	}()
	p, err := tree.Start(t.Context(), Spec{Argv: []string{"sh", "-c", `exec >"$0"; ` + script, out}, Env: os.Environ()})
	var r *os.File
	if err == nil {
		select {
		case r = <-opened:
		case <-p.Done():
		}
	}
	if r == nil { // it has not opened it, or has done so and ended
		if fd, err := unix.Open(out, unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
			defer unix.Close(fd)
		}
		r = <-opened
	}
	t.Cleanup(func() { _ = r.Close() })
	must.OK(t, err)
	return p, r
}

func await(t *testing.T, r *os.File, word string) {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(patience))
	var got strings.Builder
	buf := make([]byte, 256)
	for !strings.Contains(got.String(), word) {
		n, err := r.Read(buf)
		if err != nil {
			t.Fatalf("%q instead of %q: %v", got.String(), word, err)
		}
		got.Write(buf[:n])
	}
}

// deadNow checks that at this very moment nobody holds the pipe: death was claimed, not merely ordered.
func deadNow(t *testing.T, r *os.File) {
	t.Helper()
	conn, err := r.SyscallConn()
	must.OK(t, err)
	buf := make([]byte, 4096)
	_ = conn.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Read(int(fd), buf)
			if n > 0 || err == unix.EINTR {
				continue
			}
			if err != nil {
				t.Errorf("a process of the tree is alive after its death was claimed: %v", err)
			}
			return true
		}
	})
}

const crowd = `trap "" TERM; i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; echo ready; while :; do sleep 1000; done`

// storm is 50 chains of processes that fork a successor and go; whoever is seen is gone already.
const storm = `cat > "$DIR/link" <<'X'
#!/bin/sh
sleep 0.002
"$0" "$@" &
X
chmod +x "$DIR/link"
i=0; while [ $i -lt 50 ]; do setsid "$DIR/link" "$MARK" & i=$((i+1)); done
echo ready; while :; do sleep 1000; done`

// P2: nil from Kill and End is proof, whatever the program does to stay alive.
func TestKillIsProof(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		for name, script := range map[string]string{"stubborn": stubborn, "crowd": crowd, "storm": storm} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				t.Setenv("DIR", dir)
				tree := planted(t, guarded(t, kind))
				for range 2 {
					_, r := started(t, tree, script)
					await(t, r, "ready")
					since := wire.Now()
					must.OK(t, tree.Kill(t.Context()))
					t.Logf("killed in %v", wire.Now()-since)
					deadNow(t, r)
				}
				must.OK(t, tree.End(t.Context()))
				if err := tree.End(t.Context()); err != nil {
					t.Fatalf("the second time: %v", err)
				}
				if _, err := tree.Start(t.Context(), Spec{Argv: []string{"true"}}); !errors.Is(err, ErrTreeEnded) {
					t.Fatalf("started in an ended tree: %v", err)
				}
			})
		}
	})
}

// P4: a storm of forks does not outrun the guardians.
func TestStormDiesWithItsSupervisor(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		for name, script := range map[string]string{"crowd": crowd, "storm": storm} {
			t.Run(name, func(t *testing.T) {
				t.Setenv("DIR", t.TempDir())
				p := newPuppet(t, kind)
				p.raise(time.Minute, script)
				since := wire.Now()
				kill9(p.cmd.Process.Pid)
				p.diesAndCloses(since)
			})
		}
	})
}

func TestProgramCanBeStartedAgainAfterAKill(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		id := tree.ID()
		for range 3 {
			p, r := started(t, tree, "echo ready; exec sleep 1000")
			await(t, r, "ready")
			pause := time.NewTimer(20 * time.Millisecond)
			select {
			case <-p.Done():
				t.Fatalf("it died by itself: %+v", p.status)
			case <-pause.C:
			}
			must.OK(t, tree.Kill(t.Context()))
			if status, err := p.Wait(t.Context()); err != nil || status.Signal != unix.SIGKILL || status.Code != 137 {
				t.Fatalf("%+v %v", status, err)
			}
		}
		if tree.ID() != id {
			t.Fatal("what the breadcrumb says is no longer true")
		}
	})
}

func TestExitStatusAndSignalsArePassedOn(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		p, _ := started(t, tree, "exit 7")
		if status, err := p.Wait(t.Context()); err != nil || status != (ExitStatus{Code: 7}) {
			t.Errorf("%+v %v", status, err)
		}
		if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("signal to a program that has ended: %v", err)
		}
		p, r := started(t, tree, `trap "exit 9" USR1; echo ready; while :; do sleep 0.01; done`)
		await(t, r, "ready")
		must.Report(t, p.Signal(syscall.SIGUSR1))
		if status, err := p.Wait(t.Context()); err != nil || status != (ExitStatus{Code: 9}) {
			t.Errorf("%+v %v", status, err)
		}
		p, r = started(t, tree, "echo ready; exec sleep 1000")
		await(t, r, "ready")
		if s, err := box.StatOf(p.Pid()); err != nil || s.Comm != "sleep" && s.Comm != "sh" {
			t.Errorf("the pid is not the program's: %+v %v", s, err)
		}
		must.Report(t, p.Signal(syscall.SIGTERM))
		if status, err := p.Wait(t.Context()); err != nil || status.Signal != syscall.SIGTERM || status.Code != 143 {
			t.Errorf("%+v %v", status, err)
		}
	})
}

func TestProgramThatCannotStartSaysWhy(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		must.OK(t, g.Begin(1, nil))
		tree, err := g.NewTree(t.Context(), 1, "svc", nil)
		must.OK(t, err)
		if _, err := tree.Start(t.Context(), Spec{Argv: []string{"true"}}); !errors.Is(err, ErrNoLease) {
			t.Errorf("before a lease has arrived: %v", err)
		}
		must.OK(t, g.Extend(1, wire.Now()+time.Minute))
		garbage := filepath.Join(t.TempDir(), "garbage")
		must.OK(t, os.WriteFile(garbage, []byte("garbage"), 0o755))
		for _, c := range []struct {
			argv []string
			dir  string
			want error
		}{
			{nil, "", inside.ErrNotFound},
			{[]string{"no-such-program"}, "", inside.ErrNotFound},
			{[]string{"/no/such/program"}, "", inside.ErrNotFound},
			{[]string{"/etc/passwd"}, "", inside.ErrNotExecutable},
			{[]string{"/etc"}, "", inside.ErrNotExecutable},
			{[]string{garbage}, "", inside.ErrNotExecutable},
		} {
			if _, err := tree.Start(t.Context(), Spec{Argv: c.argv, Dir: c.dir}); !errors.Is(err, c.want) {
				t.Errorf("%q: %v, not %v", c.argv, err, c.want)
			}
		}
		if _, err := g.NewTree(t.Context(), 2, "svc", nil); err == nil {
			t.Error("a tree in an epoch that has not begun")
		}
		if err := g.Finish(1); err == nil {
			t.Error("finished with a tree left")
		}
	})
}

func TestProgramSeesNothingOfTheSupervisor(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		stray, err := unix.Open("/dev/zero", unix.O_RDONLY, 0) // as if inherited from whoever started the supervisor
		must.OK(t, err)
		defer unix.Close(stray)
		signal.Ignore(unix.SIGHUP) // as by nohup
		defer signal.Reset(unix.SIGHUP)
		tree := planted(t, guarded(t, kind))
		r, w, err := os.Pipe()
		must.OK(t, err)
		defer r.Close()
		script := `ls -l /proc/self/fd/ | grep -c -v -e "-> /proc/" -e total; readlink /proc/self/fd/0; echo "[$NOTIFY_SOCKET$WATCHDOG_USEC$LISTEN_FDS]"; ` +
			`cut -d " " -f 6 /proc/$$/stat; echo $$; grep -e SigIgn /proc/$$/status; pwd; echo end`
		for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS"} {
			t.Setenv(name, "x")
		}
		env := runas.Environ()
		_, err = tree.Start(t.Context(), Spec{Argv: []string{"sh", "-c", script}, Dir: "/usr", Env: env, Stdout: w, Stderr: w})
		must.OK(t, errors.Join(err, w.Close()))
		_ = r.SetReadDeadline(time.Now().Add(patience))
		var out strings.Builder
		if _, err := (&copier{r}).WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if len(lines) < 7 || lines[0] != "3" || lines[1] != "/dev/null" || lines[2] != "[]" || lines[3] != lines[4] ||
			lines[5] != ignoredHere(t) || lines[6] != "/usr" {
			t.Errorf("descriptors, stdin, environment, session, ignored signals or directory:\n%s", out.String())
		}
	})
}

// ignoredHere is what this process was started to ignore, which a program inherits; nothing is to be added to it.
func ignoredHere(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must.OK(t, err)
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "SigIgn:") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("no SigIgn in /proc/self/status")
	return ""
}

type copier struct{ r *os.File }

func (c *copier) WriteTo(w *strings.Builder) (int64, error) {
	buf := make([]byte, 4096)
	for {
		n, err := c.r.Read(buf)
		w.Write(buf[:n])
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return 0, err
		}
	}
}
