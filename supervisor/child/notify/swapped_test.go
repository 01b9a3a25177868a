package notify

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// swapping exchanges two paths as fast as it can, as who may rename in the folder above can, until the function that it returns is called.
func swapping(one, other string) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			_ = unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			select {
			case <-over:
				return
			default:
			}
		}
	}()
	return func() { close(over); <-done }
}

func dirFor(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "n")
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Where /run is open to all, its folders can be swapped at any time. A socket is made in the one that was judged.
func TestNoSocketIsMadeInAFolderThatWasSwappedIn(t *testing.T) {
	need.These(t, "root")
	run := dirFor(t)
	ours, theirs := filepath.Join(run, "understudy"), filepath.Join(run, "theirs")
	must.OK(t, errors.Join(os.Mkdir(ours, 0o755), os.Mkdir(theirs, 0o777), os.Chmod(theirs, 0o777), os.Chown(theirs, 65533, 65533)))
	stop := swapping(ours, theirs)
	made := 0
	for range 1000 {
		if s, err := Listen(Config{Dir: ours}); err == nil {
			_ = s.conn.Close()
			made++
		}
	}
	stop()
	for _, dir := range []string{ours, theirs} {
		var st unix.Stat_t
		entries, err := os.ReadDir(dir)
		if err = errors.Join(err, unix.Stat(dir, &st)); err != nil {
			t.Fatal(err)
		}
		if st.Uid != 0 && len(entries) > 0 {
			t.Errorf("a stranger has %d of the sockets", len(entries))
		}
	}
	if made == 0 {
		t.Error("none was made at all")
	}
}

// What is removed is in the folder that was judged.
func TestNothingIsRemovedBehindALinkThatWasSwappedIn(t *testing.T) {
	need.These(t, "root")
	run := dirFor(t)
	alive, elsewhere, link := filepath.Join(run, prefix+"alive"), filepath.Join(run, "elsewhere"), filepath.Join(run, "link")
	err := errors.Join(os.Mkdir(alive, 0o700), os.Mkdir(elsewhere, 0o700), os.Symlink(elsewhere, link))
	for _, dir := range []string{alive, elsewhere} {
		conn, listening := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
		if err = errors.Join(err, listening); err != nil {
			t.Fatal(err)
		}
		if dir == alive {
			t.Cleanup(func() { _ = conn.Close() })
		} else {
			_ = conn.Close()
		}
	}
	stop := swapping(alive, link)
	for range 20000 {
		if _, err := os.Lstat(filepath.Join(elsewhere, "s")); err != nil {
			break
		}
		_ = sweepFolder(alive)
	}
	stop()
	if _, err := os.Lstat(filepath.Join(elsewhere, "s")); err != nil {
		t.Error(err)
	}
}
