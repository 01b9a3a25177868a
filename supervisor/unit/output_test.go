package unit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child"
	"understudy/supervisor/child/journal"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/safefile"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/wait"
)

// terminal is one of root's, and the end at which a user sits.
func terminal(t *testing.T) (user, tty *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must.OK(t, err)
	must.OK(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, user.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	tty = os.NewFile(fd, "terminal")
	t.Cleanup(func() { _ = errors.Join(tty.Close(), user.Close()) })
	return user, tty
}

// begun is what a program is started with.
type begun struct {
	*stage
	specs chan child.Spec
}

func (b *begun) Start(ctx context.Context, spec child.Spec) (host.Process, error) {
	b.specs <- spec
	return b.stage.Start(ctx, spec)
}

func saved(t *testing.T, name string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), name), flags|os.O_CREATE, 0o600)
	must.OK(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// outputs runs a program of a user with these files as the supervisor's own, and has a look at what it is started with.
func outputs(t *testing.T, user string, stdin, stdout, stderr *os.File, look func(child.Spec)) {
	t.Helper()
	was := [2]*os.File{os.Stdout, os.Stderr}
	defer func() { os.Stdout, os.Stderr = was[0], was[1] }()
	os.Stdout, os.Stderr = stdout, stderr
	u, cfg, s := played(t)
	defer u.Close()
	b := &begun{s, make(chan child.Spec, 1)}
	cfg.Tree, cfg.Stdin = b, stdin
	cfg.Conf = config.Service{Processes: []config.Process{{Name: "p", Program: config.Program{Command: []string{"p"}, User: user}}}}
	run := u.Start(t.Context(), cfg)
	defer run.Close()
	spec := <-b.specs
	<-run.Ready()
	look(spec)
	run.End(errors.New("enough"))
	_ = run.Wait()
}

// A program of another user gets neither our terminal nor our files: it could read what is typed at the one, and empty the others.
func TestAProgramOfAnotherUserGetsAPipeIntoWhatItCouldNotOpen(t *testing.T) {
	need.These(t, "root")
	user, tty := terminal(t)
	file := saved(t, "log", os.O_RDWR|os.O_APPEND)
	outputs(t, "65534", tty, tty, file, func(spec child.Spec) {
		for name, f := range map[string]*os.File{"stdout": spec.Stdout, "stderr": spec.Stderr} {
			var is unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFIFO || is.Uid != 65534 {
				t.Errorf("%s: mode %o of user %d, %v", name, is.Mode, is.Uid, err)
			}
			if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err != nil || flags&(unix.O_ACCMODE|unix.O_NONBLOCK) != unix.O_WRONLY {
				t.Errorf("%s: open with %o, %v", name, flags, err)
			}
			if _, err := f.WriteString("said on " + name + "\n"); err != nil {
				t.Error(err)
			}
		}
		if spec.Stdin != nil {
			t.Error("it reads what is typed at the terminal")
		}
		line := make([]byte, 64)
		_ = user.SetReadDeadline(time.Now().Add(20 * time.Second))
		if n, err := user.Read(line); !strings.HasPrefix(string(line[:n]), "said on stdout") {
			t.Errorf("the terminal shows %q, %v", line[:n], err)
		}
	})
	if got, err := os.ReadFile(file.Name()); string(got) != "said on stderr\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
}

// What others send to a socket, or write into a FIFO that is open for reading, too, is not the program's. It could shut the socket down.
func TestAProgramOfAnotherUserGetsNoOutputThatCanBeRead(t *testing.T) {
	need.These(t, "root")
	name := filepath.Join(t.TempDir(), "fifo")
	must.OK(t, unix.Mkfifo(name, 0o600))
	fifo, err := os.OpenFile(name, os.O_RDWR, 0)
	must.OK(t, err)
	defer fifo.Close()
	socket := aSocket(t)
	t.Setenv("JOURNAL_STREAM", strings.TrimPrefix(journal.Variable(socket), "JOURNAL_STREAM=")) // of a journal that is gone
	outputs(t, "65534", nil, socket, fifo, func(spec child.Spec) {
		for name, f := range map[string]*os.File{"stdout": spec.Stdout, "stderr": spec.Stderr} {
			if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE != unix.O_WRONLY {
				t.Errorf("%s: open with %o, %v", name, flags, err)
			}
		}
	})
}

func aSocket(t *testing.T) *os.File {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	one, other := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "its other end")
	t.Cleanup(func() { _ = errors.Join(one.Close(), other.Close()) })
	return one
}

// What leads to another process, or belongs to the program's user, is passed on with no copy in between.
func TestAProgramWritesToOurOutputItself(t *testing.T) {
	need.These(t, "root")
	_, tty := terminal(t)
	theirs := saved(t, "theirs", os.O_WRONLY)
	ours := saved(t, "ours", os.O_RDONLY)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must.OK(t, err)
	defer null.Close()
	r, pipe, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	defer pipe.Close()
	socket := aSocket(t)
	must.OK(t, theirs.Chown(65534, -1))
	for what, c := range map[string]struct {
		user                  string
		stdin, stdout, stderr *os.File
	}{
		"our own user":        {"0", tty, tty, ours},
		"no user":             {"", tty, tty, ours},
		"the user's file":     {"65534", theirs, theirs, theirs},
		"other processes":     {"65534", r, pipe, pipe},
		"a socket to read":    {"65534", socket, null, null},
		"nowhere":             {"65534", null, null, null},
		"a file that it gets": {"65534", ours, null, null},
	} {
		t.Run(what, func(t *testing.T) {
			outputs(t, c.user, c.stdin, c.stdout, c.stderr, func(spec child.Spec) {
				if spec.Stdin != c.stdin || spec.Stdout != c.stdout || spec.Stderr != c.stderr {
					t.Errorf("it has %v, %v, %v", spec.Stdin, spec.Stdout, spec.Stderr)
				}
			})
		})
	}
}

// Both outputs to one file stay in their order.
func TestOnePipeLeadsIntoOneFile(t *testing.T) {
	need.These(t, "root")
	file := saved(t, "log", os.O_WRONLY|os.O_APPEND)
	outputs(t, "65534", nil, file, file, func(spec child.Spec) {
		for range 1000 {
			_, _ = io.WriteString(spec.Stdout, "out\n")
			_, _ = io.WriteString(spec.Stderr, "err\n")
		}
	})
	if got, err := os.ReadFile(file.Name()); string(got) != strings.Repeat("out\nerr\n", 1000) {
		t.Errorf("%d bytes in another order, %v", len(got), err)
	}
}

// An upgrade keeps such a pipe, with what is in it.
func TestAPipeIntoOurOutputOutlivesAnUpgrade(t *testing.T) {
	was := os.Stdout
	defer func() { os.Stdout = was }()
	os.Stdout = saved(t, "log", os.O_WRONLY|os.O_APPEND)
	previous, next := new(logs), new(logs)
	var reach wait.Reach
	log, err := previous.open(t.Context(), &reach, config.LogFile{File: "stdout:1"}, safefile.Who{}, hclog.NewNullLogger())
	must.OK(t, err)
	_, _ = io.WriteString(log.Writer(), "before\n")
	pipes, err := previous.part()
	if err != nil || len(pipes) != 1 {
		t.Fatalf("%d pipes, %v", len(pipes), err)
	}
	_, _ = io.WriteString(pipes[0].w, "meanwhile\n")
	must.OK(t, next.resume(t.Context(), &reach, pipes[0], hclog.NewNullLogger()))
	_, _ = io.WriteString(pipes[0].w, "after\n")
	must.OK(t, next.close())
	if got, err := os.ReadFile(os.Stdout.Name()); string(got) != "before\nmeanwhile\nafter\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
}
