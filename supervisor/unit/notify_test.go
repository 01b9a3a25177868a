package unit

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/testbed/must"
)

// lingering is a socket whose close takes hours: it lingers, and nobody reads what is sent. It does so until the test ends.
func lingering(t *testing.T) *os.File {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	must.OK(t, err)
	peer, err := l.Accept()
	must.OK(t, err)
	t.Cleanup(func() { _ = peer.Close() }) // unread data: the kernel resets the connection
	file, err := c.(*net.TCPConn).File()
	if err == nil {
		hours := &unix.Linger{Onoff: 1, Linger: 30000}
		err = errors.Join(c.Close(), unix.SetsockoptLinger(int(file.Fd()), unix.SOL_SOCKET, unix.SO_LINGER, hours))
	}
	must.OK(t, err)
	for chunk := make([]byte, 1<<16); err == nil; {
		_, err = unix.SendmsgN(int(file.Fd()), chunk, nil, nil, unix.MSG_DONTWAIT)
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	return file
}

// notifying has programs that notify, and keeps the address of the socket.
type notifying struct {
	*stage
	socket chan string
}

func (*notifying) Owns(int) bool { return true }

func (n *notifying) Start(ctx context.Context, spec child.Spec) (host.Process, error) {
	for _, entry := range spec.Env {
		if at, ok := strings.CutPrefix(entry, "NOTIFY_SOCKET="); ok {
			n.socket <- at
		}
	}
	return n.stage.Start(ctx, spec)
}

// What a program sends to its socket, one that takes hours to close among it, does not delay the end of its run.
func TestADescriptorThatDoesNotCloseDelaysNobody(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	u, cfg, s := played(t)
	n := &notifying{s, make(chan string, 1)}
	cfg.Tree = n
	cfg.Conf = config.Service{Processes: []config.Process{{Name: "bad", Program: config.Program{
		Command: []string{"bad"}, Ready: config.Ready{Notify: true, Timeout: time.Hour},
	}}}}
	run := u.Start(t.Context(), cfg)
	at := <-n.socket
	say := speaker(t, at)
	for range 3 { // one is read, and the others are in the queue when the socket is closed
		file := lingering(t)
		must.OK(t, say("READY=1", int(file.Fd())))
		go file.Close()
	}
	s.actor("bad").end(1)
	if why := (*Ended)(nil); !errors.As(run.Wait(), &why) {
		t.Errorf("it ended because of %v", run.Wait())
	}
	closed := make(chan struct{})
	go func() { defer close(closed); run.Close() }()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("the service waits for a descriptor that its program has sent")
	}
	for _, gone := range []string{at, filepath.Dir(at)} {
		if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}

	// The next start is heard, and sends no descriptor if the kernel can refuse it. Whoever lets a descriptor go last waits for it, which may
	// have been this test.
	waits := u.deaf.Hung()
	run = u.Start(t.Context(), cfg)
	say = speaker(t, <-n.socket)
	can, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	knows := unix.SetsockoptInt(can, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) == nil
	if err := say("READY=1", can); knows && waits && !errors.Is(err, unix.EPERM) {
		t.Errorf("a descriptor can be sent again: %v", err)
	}
	must.Report(t, errors.Join(unix.Close(can), say("READY=1")))
	<-run.Ready()
	run.Close()
	u.Close()
}

// speaker sends to a socket for notifications.
func speaker(t *testing.T, at string) func(text string, fds ...int) error {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: at})
	}
	must.OK(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func(text string, fds ...int) error {
		return unix.Sendmsg(fd, []byte(text), unix.UnixRights(fds...), nil, 0)
	}
}
