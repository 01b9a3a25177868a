package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// The messages between a supervisor and its stubs and launchers.
const (
	opReady  guard.Op = "ready"  // stub -> supervisor: waiting at the gate; launcher: everything is prepared
	opOpen   guard.Op = "open"   // supervisor -> stub: run the program that comes along; to a launcher: you are held
	opSignal guard.Op = "signal" // supervisor -> stub: pass this signal on
	opRuns   guard.Op = "runs"   // stub -> supervisor: the program runs
	opFailed guard.Op = "failed" // the program could not be started, because of this step
	opExited guard.Op = "exited" // the program ended
)

// fileOf is the file that came with a message, or goes with it (SCM_RIGHTS); nil: none.
func fileOf(m *guard.Message) *os.File {
	file, _ := m.Along.(*os.File)
	return file
}

const maxPacket = 64 << 10

var errPacketTooLarge = errors.New("message too large for one packet")

// socketPair makes two connected packet sockets. The end of either process closes its end, which the other one notices.
func socketPair() (ours, theirs *os.File, err error) {
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

// sendFD never blocks: a full socket is unix.EAGAIN.
func sendFD(fd int, m *guard.Message) error {
	packet, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.Op, err)
	}
	if len(packet) > maxPacket {
		return errPacketTooLarge
	}
	file := fileOf(m)
	if file == nil {
		return sendPacket(fd, packet, nil)
	}
	return using(file, func(along int) error { return sendPacket(fd, packet, unix.UnixRights(along)) })
}

func sendPacket(fd int, packet, rights []byte) error {
	for {
		err := unix.Sendmsg(fd, packet, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// recvFD never blocks. A closed socket is unix.ECONNRESET, in whichever way it was closed.
func recvFD(fd int, buf []byte) (m guard.Message, err error) {
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
		return m, errPacketTooLarge
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

// link is this process's end of a packet socket, waited on by the runtime's poller.
type link struct{ file *os.File }

func (l link) send(m *guard.Message) error {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = sendFD(int(fd), m) }); err != nil {
		return err
	}
	return sent
}

// receive waits for the next message; closing the link, or a read deadline, ends the wait.
func (l link) receive(buf []byte) (guard.Message, error) {
	return l.receiveAnd(buf, new(sync.Mutex), func(*guard.Message) {})
}

// receiveAnd is receive for messages that must be acted upon before others see a change: it holds mu meanwhile.
func (l link) receiveAnd(buf []byte, mu *sync.Mutex, act func(*guard.Message)) (m guard.Message, err error) {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return m, err
	}
	var got error
	err = conn.Read(func(fd uintptr) bool {
		mu.Lock()
		defer mu.Unlock()
		if m, got = recvFD(int(fd), buf); got == nil {
			act(&m)
		}
		return !errors.Is(got, unix.EAGAIN)
	})
	if err != nil {
		return m, err
	}
	return m, got
}
