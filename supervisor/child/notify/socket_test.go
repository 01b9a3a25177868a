package notify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/must"
)

const (
	patience   = 20 * time.Second
	senderRole = "notify-test-sender"
)

// The test binary, re-executed, is a program that notifies: each argument is a datagram.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case strangerRole:
		os.Exit(strangerMain())
	case userRole:
		os.Exit(userMain())
	case senderRole:
	default:
		os.Exit(apart.Run(m))
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: os.Getenv("NOTIFY_SOCKET"), Net: "unixgram"})
	for _, datagram := range os.Args[1:] {
		if err == nil {
			_, err = conn.Write([]byte(datagram))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, lingers := os.LookupEnv("LINGER"); lingers {
		fmt.Println("sent")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test lets it go
	}
	os.Exit(0)
}

// listening is a socket that is read until the test ends.
func listening(t *testing.T, cfg Config) *Socket {
	t.Helper()
	s := made(t, cfg)
	run(t, s)
	return s
}

func made(t *testing.T, cfg Config) *Socket {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // of a name that is short enough for a socket's, and open to other users
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if cfg.Dir == "" {
		cfg.Dir = dir
	}
	s, err := Listen(cfg)
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	n := new(atomic.Int64)
	counts.Store(s, n)
	s.Claimed = func() { n.Add(1) }
	return s
}

// claim is what a program says that is counted.
const claim = Claimed + "=1"

var counts sync.Map // *Socket: *atomic.Int64

// claims is how often that was heard.
func claims(s *Socket) int64 {
	n, _ := counts.Load(s)
	return n.(*atomic.Int64).Load()
}

func run(t *testing.T, s *Socket) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must.Report(t, <-ran)
	})
}

func sender(s *Socket, datagrams ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{senderRole}, datagrams...)
	cmd.Env = []string{s.Env(), "GORACE=atexit_sleep_ms=0"}
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	return cmd
}

// lingering starts a sender that lives until the test ends, and returns when it has sent everything.
func lingering(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Env = append(cmd.Env, "LINGER=1")
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.OK(t, err)
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, s *Socket, datagrams ...string) {
	t.Helper()
	must.OK(t, sender(s, datagrams...).Run())
}

// speaker sends as this process.
func speaker(t *testing.T, s *Socket) func(datagram string, fds ...int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: s.path()})
	}
	must.OK(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func(datagram string, fds ...int) {
		t.Helper()
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		must.OK(t, unix.Sendmsg(fd, []byte(datagram), rights, nil, 0))
	}
}

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("never: %s", what)
		}
	}
}

func isReady(s *Socket) bool {
	select {
	case <-s.Ready():
		return true
	default:
		return false
	}
}

func TestWhatAProgramSaysIsTakenIn(t *testing.T) {
	s := listening(t, Config{UID: uint32(os.Geteuid())})
	send(t, s, claim)
	soon(t, "the first", func() bool { return claims(s) == 1 })
	if isReady(s) {
		t.Error("ready too early")
	}
	send(t, s, "READY=1\nSTATUS=up", "READY=1", "RELOADING=1", claim)
	soon(t, "all of it", func() bool { return claims(s) == 2 })
	if !isReady(s) {
		t.Error("not ready")
	}
}

// systemd's own client waits until what it said is taken in: it must not wait for ever, or for nothing.
func TestSystemdNotifyIsLetGo(t *testing.T) {
	need.These(t, "systemd-notify")
	s := listening(t, Config{UID: uint32(os.Geteuid()), Belongs: func(int) bool { return true }})
	cmd := exec.Command("systemd-notify", "--ready", "--status=from systemd", claim)
	cmd.Env = append(os.Environ(), s.Env())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// It has ended, so everything is taken in.
	if !isReady(s) || claims(s) != 1 {
		t.Errorf("%v %d", isReady(s), claims(s))
	}
}

// The barrier is the end of a pipe: its being closed is the answer. It comes after what was said before, and only then.
func TestBarrierIsAnsweredAfterWhatWasSaidBefore(t *testing.T) {
	s := made(t, Config{UID: uint32(os.Geteuid())})
	say := speaker(t, s)
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	say("READY=1")
	say("BARRIER=1", int(w.Fd()))
	_ = w.Close()
	_ = r.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("answered by nobody: %v", err)
	}
	run(t, s)
	_ = r.SetReadDeadline(time.Now().Add(patience))
	if _, err := r.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("not answered: %v", err)
	}
	if !isReady(s) {
		t.Error("answered before what was said")
	}
}

func TestGarbageAndDescriptorsPileUpNowhere(t *testing.T) {
	s := listening(t, Config{UID: uint32(os.Geteuid())})
	say := speaker(t, s)
	send(t, s, claim)
	soon(t, "the first", func() bool { return claims(s) == 1 })
	before := descriptors(t)
	null, err := os.Open(os.DevNull)
	must.OK(t, err)
	defer null.Close()
	many := make([]int, 253) // the kernel's own bound
	for i := range many {
		many[i] = int(null.Fd())
	}
	for range 50 {
		for _, datagram := range []string{"", "\x00\xff", "STATUS=" + strings.Repeat("x", 100_000), strings.Repeat("=\n", 5000), "FDSTORE=1\nFDNAME=x"} {
			say(datagram, many...)
		}
	}
	send(t, s, claim)
	soon(t, "the last", func() bool { return claims(s) == 2 })
	if after := descriptors(t); after > before+1 {
		t.Errorf("descriptors: %d, then %d", before, after)
	}
	if isReady(s) {
		t.Error("ready by garbage")
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must.OK(t, err)
	return len(entries)
}

// Only the program is heard; the kernel says who speaks.
func TestOnlyTheProgramIsHeard(t *testing.T) {
	s := listening(t, Config{UID: uint32(os.Geteuid()), Belongs: func(pid int) bool { return pid == os.Getpid() }})
	lingering(t, sender(s, "READY=1"))
	say := speaker(t, s)
	say(claim)
	soon(t, "the program", func() bool { return claims(s) == 1 })
	if isReady(s) {
		t.Error("a stranger has made it ready")
	}
}

func as(cmd *exec.Cmd, uid uint32) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return cmd
}

// A program of another user, or one that started as root and became another one, reaches the socket; one that has ended is known by
// its user.
func TestProgramOfAnotherUserIsHeard(t *testing.T) {
	need.These(t, "root")
	for _, uid := range []uint32{65534, 0} {
		s := listening(t, Config{UID: uid, Belongs: func(int) bool { return true }})
		must.OK(t, as(sender(s, "READY=1"), 65534).Run())
		soon(t, "ready", func() bool { return isReady(s) })
	}
	for uid, want := range map[uint32]int64{65534: 1, 0: 0} {
		late := made(t, Config{UID: uid, Belongs: func(int) bool { return false }})
		must.OK(t, as(sender(late, claim), 65534).Run())
		send(t, late, "READY=1") // root's
		run(t, late)             // all have ended by now
		soon(t, "root's", func() bool { return isReady(late) })
		if heard := claims(late); heard != want {
			t.Errorf("user %d: %d messages of another one are heard", uid, heard)
		}
	}
}

func TestSocketIsRemoved(t *testing.T) {
	s := made(t, Config{})
	must.OK(t, s.Close())
	if err := s.Run(t.Context()); err != nil {
		t.Errorf("run after close: %v", err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if _, err := Listen(Config{Dir: deep}); err == nil {
		t.Error("a path that no socket can have")
	} else if left, _ := os.ReadDir(deep); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Where the kernel can refuse them, a program sends no descriptors to whoever wants none.
func TestDescriptorsAreRefused(t *testing.T) {
	s := listening(t, Config{RefuseFiles: true})
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	defer unix.Close(fd)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) != nil {
		return // an older kernel
	}
	if err := unix.Sendmsg(fd, []byte("READY=1"), unix.UnixRights(fd), &unix.SockaddrUnix{Name: s.path()}, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("a descriptor can be sent: %v", err)
	}
}
