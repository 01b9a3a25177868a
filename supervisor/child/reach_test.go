package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
)

func TestAFileSystemThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reach
		answers := make(chan int)
		late := make(chan int, 1)
		ask := func(ctx context.Context) (int, error) {
			return Reached(ctx, &r, func() (int, error) { return <-answers, nil }, func(v int) { late <- v })
		}
		began := time.Now()
		if _, err := ask(t.Context()); !errors.Is(err, ErrNoAnswer) || time.Since(began) != reachPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		answers <- 7
		if got := <-late; got != 7 {
			t.Errorf("what came late is %d", got)
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if _, err := ask(ctx); !errors.Is(err, stop) {
			t.Errorf("stopped: %v", err)
		}
		go func() { answers <- 0 }()
		<-late
		go func() { answers <- 8 }()
		if v, err := ask(t.Context()); v != 8 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		synctest.Wait() // until none of those before counts any more
		for range mostHung {
			if _, err := ask(ctx); !errors.Is(err, stop) {
				t.Errorf("stopped: %v", err)
			}
		}
		began = time.Now()
		if _, err := ask(t.Context()); !errors.Is(err, ErrNoAnswer) || time.Since(began) != 0 {
			t.Errorf("with many that hang: %v after %v", err, time.Since(began))
		}
		close(answers)
		for range mostHung {
			<-late
		}
	})
}

// hungDir is a directory in which everything hangs: its file system is one that nobody serves.
func hungDir(t *testing.T) string {
	t.Helper()
	need.These(t, "fuse")
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal("no FUSE here: ", err)
	}
	dir := t.TempDir()
	if err := unix.Mount("hung", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())); err != nil {
		_ = server.Close()
		t.Fatal("this takes root: ", err)
	}
	t.Cleanup(func() {
		_ = server.Close() // all that hangs fails now
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// P6: a node that cannot start the program for that must not hold the service, and can be stopped.
func TestAStartThatHangsWithAFileSystemEnds(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		dir := hungDir(t)
		for name, spec := range map[string]Spec{
			"program":   {Argv: []string{filepath.Join(dir, "prog")}},
			"directory": {Argv: []string{"sleep", "1000"}, Dir: filepath.Join(dir, "d")},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			ended := make(chan error, 1)
			go func() {
				_, err := tree.Start(ctx, spec)
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(patience):
				t.Errorf("%s: it hangs", name)
			}
			cancel()
		}
		if err := tree.End(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
