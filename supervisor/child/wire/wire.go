package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// The messages between a supervisor and its stubs.
const (
	OpReady  guard.Op = "ready"  // stub -> supervisor: waiting at the gate
	OpOpen   guard.Op = "open"   // supervisor -> stub: run the program that comes along
	OpSignal guard.Op = "signal" // supervisor -> stub: pass this signal on
	OpRuns   guard.Op = "runs"   // stub -> supervisor: the program runs
	OpFailed guard.Op = "failed" // the program could not be started, because of this step
	OpExited guard.Op = "exited" // the program ended
)

// FileOf is the file that came with a message, or goes with it (SCM_RIGHTS); nil: none.
func FileOf(m *guard.Message) *os.File {
	file, _ := m.Along.(*os.File)
	return file
}

// MaxPacket is the longest message in bytes.
const MaxPacket = 64 << 10

// ErrPacketTooLarge says that a message is longer than MaxPacket.
var ErrPacketTooLarge = errors.New("message too large for one packet")

// SocketPair makes two connected packet sockets. The end of either process closes its end, which the other one notices.
func SocketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}

// SendFD sends a message. It never blocks: a full socket is unix.EAGAIN.
func SendFD(fd int, m *guard.Message) error {
	packet, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.Op, err)
	}
	if len(packet) > MaxPacket {
		return ErrPacketTooLarge
	}
	file := FileOf(m)
	if file == nil {
		return SendPacket(fd, packet, nil)
	}
	return Using(file, func(along int) error { return SendPacket(fd, packet, unix.UnixRights(along)) })
}

// SendPacket sends bytes, with descriptors, as SendFD does.
func SendPacket(fd int, packet, rights []byte) error {
	for {
		err := unix.Sendmsg(fd, packet, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// RecvFD receives a message. It never blocks. A closed socket is unix.ECONNRESET, in whichever way it was closed.
func RecvFD(fd int, buf []byte) (m guard.Message, err error) {
	oob := make([]byte, unix.CmsgSpace(4*4))
	var n, oobn, flags int
	for {
		n, oobn, flags, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return m, err
	}
	if n == 0 {
		return m, unix.ECONNRESET
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return m, ErrPacketTooLarge
	}
	if err := json.Unmarshal(buf[:n], &m); err != nil {
		return m, fmt.Errorf("decode message: %w", err)
	}
	if file, err := firstRight(oob[:oobn]); err != nil {
		return m, err
	} else if file != nil {
		m.Along = file
	}
	return m, nil
}

func firstRight(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	parts, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("decode descriptors: %w", err)
	}
	for _, part := range parts {
		fds, err := unix.ParseUnixRights(&part)
		if err != nil {
			return nil, fmt.Errorf("decode descriptors: %w", err)
		}
		if len(fds) > 0 {
			return os.NewFile(uintptr(fds[0]), "received"), nil
		}
	}
	return nil, nil
}

// Link is this process's end of a packet socket, waited on by the runtime's poller.
type Link struct{ File *os.File }

// Send sends a message, as SendFD does. os.ErrClosed: the link is closed, or what goes along is.
func (l Link) Send(m *guard.Message) error {
	return Using(l.File, func(fd int) error { return SendFD(fd, m) })
}

// SendPatiently waits until the socket takes a message, or nobody is left at its other end.
func (l Link) SendPatiently(m *guard.Message) error {
	conn, err := l.File.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = conn.Write(func(fd uintptr) bool {
		sent = SendFD(int(fd), m)
		return !errors.Is(sent, unix.EAGAIN)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", os.ErrClosed, err) // the only reason there is
	}
	return sent
}

// Receive waits for the next message; closing the link, or a read deadline, ends the wait.
func (l Link) Receive(buf []byte) (guard.Message, error) {
	return l.ReceiveAnd(buf, new(sync.Mutex), func(*guard.Message) {})
}

// ReceiveAnd is Receive for messages that must be acted upon before others see a change: it holds mu meanwhile.
func (l Link) ReceiveAnd(buf []byte, mu *sync.Mutex, act func(*guard.Message)) (m guard.Message, err error) {
	conn, err := l.File.SyscallConn()
	if err != nil {
		return m, err
	}
	var got error
	err = conn.Read(func(fd uintptr) bool {
		mu.Lock()
		defer mu.Unlock()
		if m, got = RecvFD(int(fd), buf); got == nil {
			act(&m)
		}
		return !errors.Is(got, unix.EAGAIN)
	})
	if err != nil {
		return m, err
	}
	return m, got
}
