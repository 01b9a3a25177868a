package guardian

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// upLine is a guardian's line to its supervisor.
type upLine struct {
	sock   int
	parent *os.File         // pidfd of the supervisor
	gone   bool             // the supervisor is
	unsaid []*guard.Message // messages that its socket did not take yet
}

// receive takes the next message. EAGAIN: there is none. P4: after any other error, there is no supervisor behind the line to rely on.
func (u *upLine) receive(buf []byte) (guard.Message, error) {
	dead := wire.Readable(int(u.parent.Fd())) // checked first: messages from before its death count
	m, err := wire.RecvFD(u.sock, buf)
	if errors.Is(err, unix.EAGAIN) && dead {
		err = os.ErrClosed
	}
	u.gone = err != nil && !errors.Is(err, unix.EAGAIN)
	return m, err
}

// send sends a message. What a full socket does not take follows later.
func (u *upLine) send(m *guard.Message) {
	// An acknowledgement covers all before it.
	if last := len(u.unsaid) - 1; last >= 0 && m.Op == guard.OpAck && u.unsaid[last].Op == guard.OpAck {
		u.unsaid[last] = m
	} else {
		u.unsaid = append(u.unsaid, m)
	}
	u.flush()
}

// flush sends the waiting messages, as far as the socket takes them.
func (u *upLine) flush() {
	for len(u.unsaid) > 0 && !u.gone {
		if err := wire.SendFD(u.sock, u.unsaid[0]); errors.Is(err, unix.EAGAIN) {
			return
		}
		u.unsaid = u.unsaid[1:] // other failures show as the supervisor's end
	}
	u.unsaid = nil
}
