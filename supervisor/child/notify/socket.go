package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/loglimit"
)

const maxDatagram = 4096

// Config is what a socket needs to know.
type Config struct {
	Dir     string             // where a directory of its own is made; default: DefaultDir
	UID     uint32             // who the program starts as; only that user reaches the socket, and root
	Belongs func(pid int) bool // says whether a living process is the program's; nil: its user decides
	Logger  hclog.Logger
	// Senders of descriptors get EPERM, where the kernel can (Linux 6.16). Not by default: systemd-notify fails without its barrier.
	RefuseFiles bool
}

// Socket is what one start of a program notifies.
type Socket struct {
	Claimed func()           // by Run, when the program says that another machine claims its address; nil: nobody asks
	Lost    func(why string) // by Run, when it says that its address has no link, or "" that it has one again; nil: nobody asks

	why     atomic.Pointer[string] // as the program said
	cfg     Config
	dir     string
	folder  *os.File // dir, as it was judged; nil: of a socket that was taken over
	name    string   // of the socket in it; "": of one that was taken over
	conn    *net.UnixConn
	flood   flood
	ignored loglimit.Line // messages of processes that are not the program's
	ready   chan struct{}
	closed  chan struct{}
	closing sync.Once
	isReady sync.Once
}

// Listen makes a socket, before the program is started.
func Listen(cfg Config) (*Socket, error) {
	if cfg.Dir == "" {
		cfg.Dir = DefaultDir()
	}
	s := newSocket(cfg)
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("make a socket for notifications: %w", err)
	}
	return s, nil
}

func newSocket(cfg Config) *Socket {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return &Socket{
		cfg: cfg, ready: make(chan struct{}), closed: make(chan struct{}),
		ignored: loglimit.Line{Log: cfg.Logger, Words: "ignoring notifications from processes that are not the program's",
			Window: time.Minute},
	}
}

func (s *Socket) listen() error {
	base, err := prepare(s.cfg.Dir)
	if err != nil {
		return err
	}
	defer base.Close()
	own := prefix + rand.Text()[:10]
	if s.folder, err = newFolder(base, own); err != nil {
		return err
	}
	s.dir, s.name = filepath.Join(s.cfg.Dir, own), rand.Text()[:16]
	passCredentials := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var set error
		err := conn.Control(func(fd uintptr) { // before it has an address that anybody could send to
			set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
			if s.cfg.RefuseFiles {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0)
			}
		})
		return errors.Join(err, set)
	}}
	// Everybody can read in /proc/net/unix what it was bound to. That is not what it is called in the end.
	bound := in(s.folder, inTheMaking)
	conn, err := passCredentials.ListenPacket(context.Background(), "unixgram", bound) // does not wait for anything
	if err != nil {
		return errors.Join(err, removeFolder(s.folder, s.dir, inTheMaking), s.folder.Close())
	}
	s.conn = conn.(*net.UnixConn)
	if err = os.Chmod(bound, 0o600); err == nil { // before anybody else can enter the folder
		err = os.Rename(bound, in(s.folder, s.name))
	}
	if err == nil {
		err = s.open()
	}
	if err == nil && len(s.path()) > longestPath {
		err = unix.ENAMETOOLONG
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// open lets the program in, and nobody else. A program that starts as root may become anybody before it says that it is ready: it
// is let in by its socket's name, which only it is told, and which the folder's mode does not tell.
func (s *Socket) open() error {
	if os.Geteuid() != 0 {
		return nil // it is our own user's
	}
	if s.cfg.UID != 0 {
		err := os.Chown(in(s.folder, s.name), int(s.cfg.UID), -1)
		if err == nil {
			return s.folder.Chmod(0o711)
		}
		if !errors.Is(err, fs.ErrPermission) { // a container may be without CAP_CHOWN
			return err
		}
	}
	return errors.Join(os.Chmod(in(s.folder, s.name), 0o666), s.folder.Chmod(0o711))
}

// Adopt goes on with a socket of another image of this process, that of File, which is taken over, at Dir.
func Adopt(cfg Config, dir string, file *os.File) (*Socket, error) {
	defer file.Close()
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, fmt.Errorf("go on with a socket for notifications: %w", err)
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("go on with a socket for notifications: it is not one"), conn.Close())
	}
	s := newSocket(cfg)
	s.dir, s.conn = dir, unixConn
	s.nowReady() // it was, or it would not have been handed over
	return s, nil
}

// File is a copy of the socket, and Dir where it is, for Adopt.
func (s *Socket) File() (*os.File, error) { return s.conn.File() }

// UID is who the program was started as.
func (s *Socket) UID() uint32 { return s.cfg.UID }

// Dir is the socket's own folder.
func (s *Socket) Dir() string { return s.dir }

func (s *Socket) path() string { return filepath.Join(s.dir, s.name) }

// Env is the entry of the environment that tells the program.
func (s *Socket) Env() string { return "NOTIFY_SOCKET=" + s.path() }

// Ready is closed when the program has said that it is ready.
func (s *Socket) Ready() <-chan struct{} { return s.ready }

// Close removes the socket, and ends Run. It hangs for as long as a descriptor in the socket's queue takes to close.
func (s *Socket) Close() error {
	s.closing.Do(func() { close(s.closed) })
	if s.folder == nil {
		return errors.Join(s.conn.Close(), sweepFolder(s.dir))
	}
	return errors.Join(removeFolder(s.folder, s.dir, s.name), s.folder.Close(), s.conn.Close())
}

// Run takes in what the program says, until ctx ends or the socket is closed. It hangs for as long as the kernel takes to close a
// descriptor that came along, and receives nothing meanwhile.
func (s *Socket) Run(ctx context.Context) error {
	_ = s.conn.SetReadDeadline(time.Time{}) // it may have run before
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	defer s.ignored.End()
	buf := make([]byte, maxDatagram)
	// The sender has room in it, and no descriptor: the kernel closes those, so that no process that is forked has a copy of one, whose
	// close could keep it from its program.
	oob := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	for {
		n, oobn, _, _, err := s.conn.ReadMsgUnix(buf, oob)
		switch {
		case err == nil:
			s.hear(buf[:n], oob[:oobn])
			if pause := s.flood.pause(time.Now()); pause > 0 && !s.sleep(ctx, pause) {
				return nil
			}
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return nil
		default:
			return fmt.Errorf("read notifications: %w", err)
		}
	}
}

// sleep leaves what is sent in the kernel's short queue, where its sender waits.
func (s *Socket) sleep(ctx context.Context, pause time.Duration) (goes bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.closed:
	}
	return false
}

// hear takes in one datagram.
func (s *Socket) hear(datagram, oob []byte) {
	sender := senderOf(oob)
	if !s.trusts(sender) {
		from := "an unknown process"
		if sender != nil {
			from = fmt.Sprintf("pid %d of user %d", sender.Pid, sender.Uid)
		}
		s.ignored.Say(from)
		return
	}
	m := Parse(datagram)
	if m.Claimed && s.Claimed != nil {
		s.Claimed()
	}
	if m.Lost != nil && s.Lost != nil {
		s.Lost(*m.Lost)
	}
	if m.Why != "" {
		s.why.Store(&m.Why)
	}
	if m.Ready {
		s.nowReady()
	}
}

// Why is why the program fails, as it has said; "": it has not.
func (s *Socket) Why() string {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return ""
}

func (s *Socket) nowReady() { s.isReady.Do(func() { close(s.ready) }) }

// trusts says whether a sender is of the program.
func (s *Socket) trusts(sender *unix.Ucred) bool {
	if sender == nil || sender.Pid <= 0 {
		return false // of another PID namespace, which nobody here knows
	}
	if s.cfg.Belongs != nil {
		if s.cfg.Belongs(int(sender.Pid)) {
			return true
		}
		if err := unix.Kill(int(sender.Pid), 0); err != unix.ESRCH {
			return false
		}
	}
	return sender.Uid == s.cfg.UID || sender.Uid == 0
}

// senderOf takes the sender out of a datagram's ancillary data.
func senderOf(oob []byte) *unix.Ucred {
	parts, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil // the kernel's own writing
	}
	for _, part := range parts {
		if who, err := unix.ParseUnixCredentials(&part); err == nil {
			return who
		}
	}
	return nil
}
