package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"understudy/supervisor/keyfile"
)

const (
	prefix      = "usnotify-" // a socket's path has to be short
	inTheMaking = "bound"
	longestPath = 107 // of a socket, without the NUL at its end
)

// DefaultDir is where sockets are made unless the config says otherwise: a place that nobody else can have made before us. Without
// a runtime directory of our own that is the one for temporary files itself: of a folder's name in it that can be guessed somebody
// else may be the owner.
func DefaultDir() string {
	if dir := os.Getenv(keyfile.RunVariable); unusable(dir) == nil {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/run/understudy"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); unusable(dir) == nil {
		return filepath.Join(dir, "understudy")
	}
	return tempDir()
}

// Ignored is why the folder that UNDERSTUDY_RUN_DIR names is not used; empty: it is, or none is named.
func Ignored() string {
	dir := os.Getenv(keyfile.RunVariable)
	if dir == "" || unusable(dir) == nil {
		return ""
	}
	return fmt.Sprintf("%s: %v; %s is used", keyfile.RunVariable, unusable(dir), DefaultDir())
}

// unusable is why a folder that the environment names is not taken: su leaves that of another user.
func unusable(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%q is not an absolute path: name a folder of this user", dir)
	}
	folder, err := keyfile.Folder(dir, true)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s: mkdir -m 700 %s", dir, dir)
	case err != nil:
		return err
	}
	_ = folder.Close()
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("cannot write to %s: %w: name another folder", dir, err)
	}
	return nil
}

func tempDir() string {
	dir := os.TempDir()
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}

// temporary opens root's directory for temporary files, though without its sticky bit, as an emptyDir of Kubernetes: others could take our
// folder away, and its socket is out of reach then, but its name is told to the program alone. nil: it is another one.
func temporary(dir string) *os.Root {
	if os.Geteuid() == 0 || dir != tempDir() {
		return nil
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	if info, err := folder.Stat("."); err == nil && info.Sys().(*syscall.Stat_t).Uid == 0 {
		return folder
	}
	_ = folder.Close()
	return nil
}

// prepare makes and opens a directory, and refuses one in which others could put something in our socket's place.
func prepare(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	folder, err := keyfile.Folder(dir, true)
	if err == nil {
		return folder, nil
	}
	if folder = temporary(dir); folder != nil {
		return folder, nil
	}
	return nil, fmt.Errorf("%w, or set XDG_RUNTIME_DIR to a directory that is yours alone", err)
}

// newFolder makes a folder of our own in an open one.
func newFolder(base *os.Root, name string) (*os.File, error) {
	if err := base.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	folder, err := keyfile.FolderIn(base, name)
	if err != nil {
		return nil, err
	}
	return opened(folder)
}

func opened(folder *os.Root) (*os.File, error) {
	itself, err := folder.Open(".")
	return itself, errors.Join(err, folder.Close())
}

// in is the path of a file in an open folder, wherever the folder's own path leads to by now.
func in(folder *os.File, name string) string {
	return filepath.Join("/proc/self/fd", strconv.FormatUint(uint64(folder.Fd()), 10), name)
}

// removeFolder removes the socket in an open folder, and the folder from its path, and nothing else that somebody may have put there.
func removeFolder(folder *os.File, dir, socket string) error {
	err := unix.Unlink(in(folder, socket))
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

// sweepFolder removes the folder of a socket that was taken over, once nobody listens at that. What others own is not looked into.
func sweepFolder(dir string) error {
	judged, err := keyfile.Folder(dir, true)
	if err != nil {
		return nil
	}
	folder, err := opened(judged)
	if err != nil {
		return err
	}
	defer folder.Close()
	sockets, err := os.ReadDir(in(folder, ""))
	if err != nil || len(sockets) != 1 || sockets[0].Type() != fs.ModeSocket || sockets[0].Name() == inTheMaking {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: in(folder, sockets[0].Name()), Net: "unixgram"})
	if errors.Is(err, unix.ECONNREFUSED) {
		return removeFolder(folder, dir, sockets[0].Name())
	}
	if err == nil {
		_ = conn.Close()
	}
	return nil
}
