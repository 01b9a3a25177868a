package logfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/stuck"
	"understudy/supervisor/wait"
)

// As logrotate does, in each of its ways.
func TestFileThatSomebodyElseMovesIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	l, _ := running(t, Config{Path: path})
	say(t, l, "one\n")
	soon(t, "one", has(path, "one\n"))
	must.OK(t, os.Rename(path, path+".old"))
	say(t, l, "two\n")
	soon(t, "two", has(path, "two\n"))
	must.OK(t, os.Remove(path))
	say(t, l, "three\n")
	soon(t, "three", has(path, "three\n"))
	must.OK(t, os.Truncate(path, 0))
	say(t, l, "four\n")
	soon(t, "four", has(path, "four\n"))
	if got := content(t, path); got != "four\n" {
		t.Errorf("%q", got)
	}
	must.OK(t, errors.Join(os.Rename(path, path+".older"), os.WriteFile(path, nil, 0o640)))
	say(t, l, "half ")
	soon(t, "half a line", has(path, "half "))
	must.OK(t, os.Rename(path, path+".oldest"))
	say(t, l, "a line\n")
	soon(t, "the other half", has(path+".oldest", "half a line\n"))
	must.OK(t, os.RemoveAll(filepath.Dir(path)))
	say(t, l, "five\n")
	soon(t, "five", has(path, "five\n"))
}

// A disk that is full holds nobody up, and what is missing is told where it is missing.
func TestFullDiskIsSurvived(t *testing.T) {
	need.These(t, "root", "namespaces") // where they may be made, a disk may be mounted
	dir := t.TempDir()
	must.OK(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	must.OK(t, os.WriteFile(ballast, make([]byte, 128<<10), 0o600))
	path := filepath.Join(dir, "app.log")
	fault := make(chan error, 100)
	l, end := running(t, Config{Path: path, MaxSize: 1 << 30, Keep: 3, Failing: func(err error) { fault <- err }})
	const lines = 400_000 // about 14 MB: more than the disk, the pipe and the memory together
	began := time.Now()
	numbered(t, l, lines)
	t.Logf("%d lines written in %v to a full disk", lines, time.Since(began))
	soon(t, "the loss", func() bool { return l.Lost() > 0 && errors.Is(l.Fault(), unix.ENOSPC) })
	pipe, err := l.r.SyscallConn()
	must.OK(t, err)
	lost, looks := uint64(0), 0
	soon(t, "all is read", func() bool {
		waits := 0
		_ = pipe.Control(func(fd uintptr) { waits, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if now := l.Lost(); waits > 0 || now != lost {
			lost, looks = now, 0
		}
		looks++
		return looks > 100
	})
	must.OK(t, errors.Join(os.Remove(ballast), unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=32m")))
	soon(t, "the note", has(path, "lines lost: no space left on device\n"))
	say(t, l, "afterwards\n")
	end()
	text := content(t, path)
	if first, last := <-fault, <-fault; !errors.Is(first, unix.ENOSPC) || last != nil || len(fault) > 0 {
		t.Errorf("told is %v, %v, and %d more", first, last, len(fault))
	}
	if !strings.HasSuffix(text, "device\nafterwards\n") || l.Fault() != nil {
		t.Errorf("it ends with %q; %v", text[len(text)-100:], l.Fault())
	}
	last, told := 0, 0
	for line := range strings.Lines(text) {
		var n int
		if c, _ := fmt.Sscanf(line, "understudy: %d lines lost", &n); c == 1 {
			told += n
			continue
		}
		if line == "afterwards\n" {
			continue
		}
		if _, err := fmt.Sscanf(line, "%d", &n); err != nil || line != fmt.Sprintf("%d %s.\n", n, strings.Repeat("x", n%50)) || n <= last {
			t.Fatalf("%q after %d", line, last)
		}
		last = n
	}
	if got := strings.Count(text, ".\n"); got+told != lines || uint64(told) != l.Lost() {
		t.Errorf("%d lines there, %d told as lost, of %d", got, told, lines)
	}
}

// A directory that cannot be written to, or is not there to be made, is tried again.
func TestDirectoryThatCannotBeWrittenToIsSurvived(t *testing.T) {
	need.These(t, "root", "namespaces") // where they may be made, a disk may be mounted
	dir := t.TempDir()
	must.OK(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, ""))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "sub", "app.log")
	l, end := running(t, Config{Path: path, MaxSize: 100, Keep: 2})
	say(t, l, "kept meanwhile\n")
	if !errors.Is(l.Fault(), unix.EROFS) {
		t.Errorf("%v", l.Fault())
	}
	must.OK(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, ""))
	soon(t, "the first line", has(path, "kept meanwhile\n"))
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err == nil {
		t.Error("the file is not open")
	}
	// It cannot be rotated, but written to: it grows on.
	must.OK(t, os.Mkdir(path+".2", 0o700))
	must.OK(t, os.WriteFile(path+".1", nil, 0o600))
	numbered(t, l, 100)
	soon(t, "the last line", has(path, "100 .\n"))
	end()
	if l.Lost() > 0 {
		t.Errorf("%d lost", l.Lost())
	}
}

// A program that writes as fast as it can comes to its end, and costs no memory.
func TestFastWriterCostsNoMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	l, end := running(t, Config{Path: path, MaxSize: 20 << 20, Keep: 2})
	cmd := exec.Command("sh", "-c", "yes 'a line of some length, as logs have them, again and again' | head -c 100000000")
	cmd.Stdout = l.Writer()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	must.OK(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var most uint64
	for over := false; !over; {
		select {
		case err := <-ended:
			must.Report(t, err)
			over = true
		case <-time.After(50 * time.Millisecond):
			runtime.GC() // what is not needed any more does not count
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}
	end()
	t.Logf("%d lines lost, heap at most %d MB", l.Lost(), most>>20)
	if most > before.HeapAlloc+64<<20 {
		t.Errorf("%d MB of memory", most>>20)
	}
}

// A process that keeps a program's pipe locked in the kernel holds up neither the end of its log nor that it is handed on.
func TestAPipeThatCannotBeReadHoldsNobodyUp(t *testing.T) {
	need.These(t, "root")
	for what, end := range map[string]func(l *Log, cancel func()) error{
		"end":  func(l *Log, cancel func()) error { cancel(); return l.CloseWriter() },
		"part": func(l *Log, _ func()) error { r, w, err := l.Part(); return errors.Join(err, r.Close(), w.Close()) },
	} {
		t.Run(what, func(t *testing.T) {
			l, err := Open(Config{Path: filepath.Join(t.TempDir(), "app.log"), Drain: time.Millisecond})
			must.OK(t, err)
			free := stuck.Pipe(t, l.Writer())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ran := make(chan error, 1)
			go func() { ran <- l.Run(ctx) }()
			soon(t, "it is read", stuck.Hangs)
			must.Report(t, end(l, cancel))
			select {
			case <-ran:
			case <-time.After(20 * time.Second):
				t.Error("it does not end")
			}
			if !l.Locked() || wait.Stuck.Load() != 1 {
				t.Errorf("locked: %v, and %d threads", l.Locked(), wait.Stuck.Load())
			}
			free()
			soon(t, "the reader ends", func() bool { return wait.Stuck.Load() == 0 })
		})
	}
}

// A process that has the pipe open anew keeps it from being closed, too, although nobody reads it. An exec would wait for that.
func TestAPipeThatCannotBeClosedHoldsNobodyUp(t *testing.T) {
	need.These(t, "root")
	l, err := Open(Config{Path: filepath.Join(t.TempDir(), "app.log"), Drain: time.Millisecond})
	must.OK(t, err)
	its, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", l.Writer().Fd()), os.O_WRONLY, 0)
	must.OK(t, err)
	defer its.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ran, ended := make(chan error, 1), make(chan struct{})
	go func() { ran <- l.Run(ctx) }()
	free := stuck.Pipe(t, its)
	go func() {
		defer close(ended)
		_ = l.CloseWriter()
		cancel()
		<-ran
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
	if wait.Stuck.Load() == 0 {
		t.Error("an exec would wait for it")
	}
	free()
	soon(t, "it is closed", func() bool { return wait.Stuck.Load() == 0 })
	<-ended
}

// A directory that does not answer does not hold up the end of a log.
func TestADirectoryThatHangsHoldsNobodyUp(t *testing.T) {
	need.These(t, "fuse")
	dir := filepath.Join(t.TempDir(), "logs")
	must.OK(t, os.Mkdir(dir, 0o755))
	l, err := Open(Config{Path: filepath.Join(dir, "app.log"), MaxSize: 100, Keep: 2})
	must.OK(t, err)
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	must.OK(t, err)
	must.OK(t, unix.Mount("hung", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())))
	t.Cleanup(func() {
		_ = errors.Join(server.Close(), unix.Unmount(dir, unix.MNT_DETACH)) // all that hangs fails, and may go on in what lay below
		soon(t, "the directory's end", func() bool { return os.RemoveAll(dir) == nil })
	})
	ran := make(chan error, 1)
	go func() { ran <- l.Run(t.Context()) }()
	say(t, l, "never written\n")
	_ = l.CloseWriter()
	select {
	case err := <-ran:
		if err == nil {
			t.Error("the lines are lost without a word")
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
}
