package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
)

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
