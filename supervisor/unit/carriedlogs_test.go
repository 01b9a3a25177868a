package unit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/logfile"
	"understudy/supervisor/config"
	"understudy/supervisor/safefile"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/stuck"
	"understudy/supervisor/wait"
)

// An upgrade neither waits for a full disk nor loses the lines that wait for it: they go over to the next image.
func TestAFullDiskLosesNothingOfAPipeThatIsHandedOn(t *testing.T) {
	need.These(t, "root", "namespaces") // where they may be made, a disk may be mounted
	dir := t.TempDir()
	must.OK(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "log")
	previous := new(logs)
	var reach wait.Reach
	file, err := previous.open(t.Context(), &reach, config.LogFile{File: path}, safefile.Who{}, hclog.NewNullLogger())
	must.OK(t, err)
	w := file.Writer()
	var want strings.Builder
	say := func() {
		for n := range 20_000 { // more than the disk takes
			line := fmt.Sprintln("line", want.Len(), n)
			want.WriteString(line)
			if _, err := w.WriteString(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	say()
	for again := time.Tick(time.Millisecond); file.Fault() == nil; {
		<-again
	}
	for range 3 {
		began := time.Now()
		pipes, err := previous.part()
		if err != nil || len(pipes) != 1 {
			t.Fatalf("%d pipes, %v", len(pipes), err)
		}
		if took := time.Since(began); took > time.Minute/2 {
			t.Errorf("an upgrade would be refused after %v", took)
		}
		next := new(logs)
		must.OK(t, next.resume(t.Context(), &reach, pipes[0], hclog.NewNullLogger()))
		previous, w = next, pipes[0].w
		say()
	}
	must.OK(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=32m"))
	must.OK(t, previous.close())
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want.String() {
		t.Errorf("%d bytes are written, %v, instead of %d", len(got), err, want.Len())
	}
}

// A pipe that cannot be read is not handed on: the exec would wait for its reader. The program is stopped, and its next start has another one.
func TestAPipeThatCannotBeReadIsNotHandedOn(t *testing.T) {
	need.These(t, "root")
	l := new(logs)
	var reach wait.Reach
	conf := config.LogFile{File: filepath.Join(t.TempDir(), "log")}
	open := func() *os.File {
		log, err := l.open(t.Context(), &reach, conf, safefile.Who{}, hclog.NewNullLogger())
		must.OK(t, err)
		return log.Writer()
	}
	first, err := logfile.Open(logfile.Config{Path: conf.File + ".0"})
	must.OK(t, err)
	r, w, err := first.Part()
	must.OK(t, err)
	free := stuck.Pipe(t, w)
	must.OK(t, errors.Join(first.Close(), l.resume(t.Context(), &reach, carriedPipe{Conf: conf, r: r, w: w}, hclog.NewNullLogger())))
	for again := time.Tick(time.Millisecond); !stuck.Hangs(); {
		<-again
	}
	began := time.Now()
	if _, err := l.part(); !errors.Is(err, logfile.ErrLocked) {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute/2 {
		t.Errorf("an upgrade would be refused after %v", took)
	}
	if _, err := open().WriteString("next\n"); err != nil {
		t.Error(err)
	}
	free()
	must.Report(t, l.close())
	if got, err := os.ReadFile(conf.File); string(got) != "next\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// A run that is not continued lets go of a pipe that a program keeps locked, and waits for nobody.
func TestAPipeThatCannotBeClosedIsLeftBehind(t *testing.T) {
	need.These(t, "root")
	r, w, err := os.Pipe()
	must.OK(t, err)
	its, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), os.O_WRONLY, 0)
	must.OK(t, err)
	defer its.Close()
	free := stuck.Pipe(t, its)
	discarded := make(chan struct{})
	go func() {
		defer close(discarded)
		(&CarriedRun{Pipes: []carriedPipe{{r: r, w: w}}}).Discard()
	}()
	select {
	case <-discarded:
	case <-time.After(20 * time.Second):
		t.Error("it waits")
	}
	free()
	<-discarded
}
