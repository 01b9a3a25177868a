package logfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/safefile"
	"understudy/supervisor/testbed/must"
)

const deadline = 60 * time.Second

// running is a log whose Run goes on until end is called.
func running(t *testing.T, cfg Config) (l *Log, end func()) {
	t.Helper()
	l, err := Open(cfg)
	must.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	done := false
	end = func() {
		t.Helper()
		if done {
			return
		}
		done = true
		_ = l.CloseWriter()
		select {
		case err := <-ran:
			must.Report(t, err)
		case <-time.After(deadline):
			t.Error("it does not end")
		}
		cancel()
	}
	t.Cleanup(end)
	return l, end
}

func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must.OK(t, err)
	return string(raw)
}

func say(t *testing.T, l *Log, text string) {
	t.Helper()
	if _, err := l.Writer().WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(deadline)
	defer end.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("never: %s", what)
		}
	}
}

func has(path, text string) func() bool {
	return func() bool {
		raw, _ := os.ReadFile(path)
		return strings.Contains(string(raw), text)
	}
}

func TestOutputOfProgramsIsInTheFileWhenTheyHaveEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "app.log")
	defer unix.Umask(unix.Umask(0o077))
	l, end := running(t, Config{Path: path})
	cmd := exec.Command("sh", "-c", `for i in 1 2 3; do echo out $i; echo err $i >&2; done; (sleep 0.2; echo late) & printf "no end of line"`)
	cmd.Stdout, cmd.Stderr = l.Writer(), l.Writer()
	must.OK(t, cmd.Run())
	end()
	if got, want := content(t, path), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nno end of linelate\n"; got != want {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm()&0o027 != 0 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// A program that lives on does not keep its log's end waiting.
func TestEndIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	l, err := Open(Config{Path: path, Drain: time.Second})
	must.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	say(t, l, "last words\n")
	cancel()
	select {
	case err := <-ran:
		must.Report(t, err)
	case <-time.After(deadline):
		t.Fatal("it does not end")
	}
	if got := content(t, path); got != "last words\n" {
		t.Errorf("%q", got)
	}
}

// numbered writes lines that tell their number, of changing length, through a real process.
func numbered(t *testing.T, l *Log, lines int) {
	t.Helper()
	cmd := exec.Command("awk", "-v", fmt.Sprint("n=", lines), `BEGIN { for (i = 1; i <= n; i++) { printf "%d ", i; for (j = i % 50; j > 0; j--) printf "x"; print "." } }`)
	cmd.Stdout, cmd.Stderr = l.Writer(), os.Stderr
	must.OK(t, cmd.Run())
}

func dirOf(t *testing.T, path string) *safefile.Dir {
	t.Helper()
	dir, _, err := safefile.DirOf(path, safefile.Who{})
	must.OK(t, err)
	return dir
}

// files lists a log's files, oldest first.
func files(t *testing.T, path string) (all []string) {
	t.Helper()
	f := &file{path: path}
	dir := dirOf(t, path)
	defer dir.Close()
	old, err := f.rotatedFiles(dir)
	must.OK(t, err)
	for _, r := range old {
		all = append(all, filepath.Join(filepath.Dir(path), r.name))
	}
	return append(all, path)
}

// A second pump keeps its lines until the first has ended.
func TestOneFileHasOneWriter(t *testing.T) {
	for _, other := range []string{"app.log", "link/app.log", "./x/../app.log"} {
		t.Run(other, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			must.OK(t, os.Symlink(dir, filepath.Join(dir, "link")))
			first, end := running(t, Config{Path: path})
			second, endSecond := running(t, Config{Path: dir + "/" + other})
			if err := second.Fault(); !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
			say(t, second, "second\n")
			say(t, first, "first\n")
			end()
			endSecond()
			if got := content(t, path); got != "first\nsecond\n" {
				t.Errorf("%q", got)
			}
		})
	}
}

// Whoever may only read a log can lock it, and keeps it neither from being opened nor from being rotated.
func TestALockOfAReaderHoldsNoLogUp(t *testing.T) {
	read := unix.Flock_t{Type: unix.F_RDLCK}
	for what, lock := range map[string]func(fd int) error{
		"flock, shared": func(fd int) error { return unix.Flock(fd, unix.LOCK_SH) },
		"flock":         func(fd int) error { return unix.Flock(fd, unix.LOCK_EX) },
		"fcntl":         func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &read) },
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			must.OK(t, os.WriteFile(path, nil, 0o640))
			reader, err := os.Open(path)
			must.OK(t, err)
			defer reader.Close()
			must.OK(t, lock(int(reader.Fd())))
			l, end := running(t, Config{Path: path, MaxSize: 1000, Keep: 1000})
			numbered(t, l, 1000)
			end()
			if n := len(files(t, path)); n < 10 || l.Lost() > 0 {
				t.Errorf("%d files, %d lines lost", n, l.Lost())
			}
		})
	}
}

func TestOnlyARegularFileIsALog(t *testing.T) {
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	must.OK(t, errors.Join(os.Symlink("/etc/passwd", link), unix.Mkfifo(fifo, 0o600)))
	for _, path := range []string{link, fifo, dir, "/dev/null"} {
		if _, err := Open(Config{Path: path}); !errors.Is(err, ErrNotFile) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Open(Config{Path: "app.log"}); err == nil {
		t.Error("a relative path")
	}
}

// One that is killed in the middle of a line leaves what it said.
func TestLastWordsOfAKilledProgramAreThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	l, end := running(t, Config{Path: path, MaxSize: 1 << 30})
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	cmd := exec.Command("sh", "-c", `seq 1 20000; printf "cut he"; echo said >&2; exec sleep 1000`)
	cmd.Stdout, cmd.Stderr = l.Writer(), w
	must.OK(t, errors.Join(cmd.Start(), w.Close()))
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	end()
	if got := content(t, path); !strings.HasSuffix(got, "\n19999\n20000\ncut he") {
		t.Errorf("%q", got[max(0, len(got)-40):])
	}
}

// A file that cannot be written at the end either does not keep the end waiting, and is told.
func TestEndThatCannotBeWrittenIsTold(t *testing.T) {
	l, err := Open(Config{Path: "/proc/no/such/app.log", Drain: 50 * time.Millisecond})
	must.OK(t, err)
	say(t, l, "never to be seen\n")
	_ = l.CloseWriter()
	ran := make(chan error, 1)
	go func() { ran <- l.Run(t.Context()) }()
	select {
	case err := <-ran:
		if err == nil || !strings.Contains(err.Error(), "its end is lost: no such file") {
			t.Error(err)
		}
	case <-time.After(deadline):
		t.Fatal("it does not end")
	}
}

// A program of another user can open its own output anew, as many do with /dev/stderr.
func TestGrantedUserCanOpenItsOutput(t *testing.T) {
	need.These(t, "root")
	path := filepath.Join(t.TempDir(), "app.log")
	l, end := running(t, Config{Path: path})
	must.OK(t, l.Grant(65534, 65534))
	cmd := exec.Command("sh", "-c", "echo opened > /proc/self/fd/1")
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = l.Writer(), l.Writer()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	must.Report(t, cmd.Run())
	end()
	if got := content(t, path); got != "opened\n" {
		t.Errorf("%q", got)
	}
}

func TestLogsLeakNothing(t *testing.T) {
	dir := t.TempDir()
	count := func() (int, int) {
		entries, err := os.ReadDir("/proc/self/fd")
		must.OK(t, err)
		return len(entries), runtime.NumGoroutine()
	}
	one := func(i int) {
		l, end := running(t, Config{Path: filepath.Join(dir, fmt.Sprint(i)), MaxSize: 100, Keep: 2})
		say(t, l, strings.Repeat("x\n", 500))
		end()
		if _, err := Open(Config{Path: dir}); err == nil {
			t.Fatal("a directory")
		}
		unused, err := Open(Config{Path: filepath.Join(dir, "unused")})
		must.OK(t, err)
		_ = unused.Close()
	}
	one(0)
	fds, goroutines := count()
	for i := range 20 {
		one(i)
	}
	soon(t, "nothing is left", func() bool {
		fds2, goroutines2 := count()
		return fds2 <= fds && goroutines2 <= goroutines
	})
}
