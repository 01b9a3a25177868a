package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"understudy/supervisor/keyfile"
)

const (
	prefix      = "usnotify-" // a socket's path has to be short
	inTheMaking = "bound"
	longestPath = 107 // of a socket, without the NUL at its end
)

// leftBehind: once for each process is enough.
var leftBehind sync.Once

// DefaultDir is where sockets are made unless the config says otherwise: a place that nobody else can have made before us. Without
// a runtime directory of our own that is the one for temporary files itself: of a folder's name in it that can be guessed somebody
// else may be the owner.
func DefaultDir() string {
	if os.Geteuid() == 0 {
		return "/run/understudy"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && ours(dir) == nil && unix.Access(dir, unix.W_OK|unix.X_OK) == nil { // su leaves that of another user
		return filepath.Join(dir, "understudy")
	}
	return tempDir()
}

func tempDir() string {
	dir := os.TempDir()
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}

// temporary tells whether a directory is root's one for temporary files, though without its sticky bit, as an emptyDir of Kubernetes:
// others could take our folder away, and its socket is out of reach then, but its name is told to the program alone.
func temporary(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || os.Geteuid() == 0 || dir != tempDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && stat.Uid == 0
}

// prepare makes a directory, and refuses one in which others could put something in our socket's place.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := ours(dir); err != nil && !temporary(dir) {
		return fmt.Errorf("%w, or set XDG_RUNTIME_DIR to a directory that is yours alone", err)
	}
	return nil
}

// removeFolder removes a folder and the socket in it, and nothing else that somebody may have put in its place.
func removeFolder(dir, socket string) error {
	err := unix.Unlink(filepath.Join(dir, socket))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if gone := unix.Rmdir(dir); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

func ours(dir string) error { return keyfile.Folder(dir, true) }

// Sweep removes what supervisors left behind that were killed: sockets that nobody listens at. What others own is not looked into.
func Sweep(dir string) error {
	if dir == "" {
		dir = DefaultDir()
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for sockets left behind: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		at := filepath.Join(dir, entry.Name())
		if !strings.HasPrefix(entry.Name(), prefix) || ours(at) != nil {
			continue
		}
		sockets, err := os.ReadDir(at)
		if err != nil || len(sockets) != 1 || sockets[0].Type() != fs.ModeSocket || sockets[0].Name() == inTheMaking {
			continue
		}
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: filepath.Join(at, sockets[0].Name()), Net: "unixgram"})
		if err == nil {
			_ = conn.Close()
		} else if errors.Is(err, unix.ECONNREFUSED) {
			errs = append(errs, removeFolder(at, sockets[0].Name()))
		}
	}
	return errors.Join(errs...)
}
