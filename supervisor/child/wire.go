package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// op says what a message between the supervisor, its guardians and its stubs is about.
type op string

const (
	opSetup   op = "setup"   // supervisor -> guardian: who you are
	opTwin    op = "twin"    // the other guardian; its pidfd comes along
	opBegin   op = "begin"   // a new epoch, with the ticket that closes its session
	opExtend  op = "extend"  // the epoch's deadline
	opShorten op = "shorten" // the same, earlier than it was; Grace is until when after it a death has to be proved
	opFinish  op = "finish"  // the epoch is over and nothing is to be closed
	opEnd     op = "end"     // end the epoch now
	opTree    op = "tree"    // a new tree
	opStub    op = "stub"    // a stub, or the first process of a run, joins a tree; a stub's witness comes along
	opShed    op = "shed"    // one of those is proved dead
	opDrop    op = "drop"    // the tree is proved dead and its container removed
	opLend    op = "lend"    // answer at the listener that comes along when the supervisor does not
	opDog     op = "dog"     // feed the watchdog that comes along
	opUndog   op = "undog"   // let go of it
	opArm     op = "arm"     // the watchdog is for this tree; Grace is until when after the lease
	opHeed    op = "heed"    // answer, to show that you are awake

	opAck    op = "ack"    // guardian -> supervisor: everything up to Seq is done
	opNack   op = "nack"   // Seq is refused; of a new tree, Tree says which
	opEnded  op = "ended"  // the epoch has ended; every tree of it is being killed
	opCloser op = "closer" // how closing the epoch's session went

	opReady  op = "ready"  // stub -> supervisor: waiting at the gate; launcher: everything is prepared
	opOpen   op = "open"   // supervisor -> stub: run the program that comes along; to a launcher: you are held
	opSignal op = "signal" // supervisor -> stub: pass this signal on
	opRuns   op = "runs"   // stub -> supervisor: the program runs
	opFailed op = "failed" // the program could not be started, because of this step
	opExited op = "exited" // the program ended

	opCatch op = "catch" // supervisor -> catcher: keep signals from me; it answers ready or failed, and then a signal each
)

// message is what travels, one a packet. Packets keep their order, so one acknowledgement covers all before it.
type message struct {
	Op       op            `json:"op"`
	Seq      uint64        `json:"seq,omitempty"`
	Epoch    uint64        `json:"epoch,omitempty"`
	Tree     uint64        `json:"tree,omitempty"`
	Deadline time.Duration `json:"deadline,omitempty"`
	Ticket   []byte        `json:"ticket,omitempty"`
	Release  []byte        `json:"release,omitempty"`
	Body     *bodyRef      `json:"body,omitempty"`
	Mark     string        `json:"mark,omitempty"` // of a tree that has no cgroup
	Why      string        `json:"why,omitempty"`
	Index    int           `json:"index,omitempty"` // of a guardian, or of a step
	Grace    time.Duration `json:"grace,omitempty"`
	Number   int           `json:"number,omitempty"` // a signal, errno, wait status or pid
	OK       bool          `json:"ok,omitempty"`

	file *os.File // travels along (SCM_RIGHTS)
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
func sendFD(fd int, m *message) error {
	packet, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.Op, err)
	}
	if len(packet) > maxPacket {
		return errPacketTooLarge
	}
	if m.file == nil {
		return sendPacket(fd, packet, nil)
	}
	return using(m.file, func(along int) error { return sendPacket(fd, packet, unix.UnixRights(along)) })
}

func sendPacket(fd int, packet, rights []byte) error {
	for {
		err := unix.Sendmsg(fd, packet, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// recvFD never blocks. A closed socket is unix.ECONNRESET, whatever way it was closed.
func recvFD(fd int, buf []byte) (m message, err error) {
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
	m.file, err = firstRight(oob[:oobn])
	return m, err
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

func (l link) send(m *message) error {
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
func (l link) receive(buf []byte) (message, error) {
	return l.receiveAnd(buf, new(sync.Mutex), func(*message) {})
}

// receiveAnd is receive for what nobody may see taken and not acted upon: mu is held meanwhile.
func (l link) receiveAnd(buf []byte, mu *sync.Mutex, act func(*message)) (m message, err error) {
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
