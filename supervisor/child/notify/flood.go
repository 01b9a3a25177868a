package notify

import (
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// What reaches a socket costs little, however much is sent: so many are read in a while, and what is ignored is told so often.
const (
	mostInAWhile = 64
	while        = 100 * time.Millisecond
	toldEach     = time.Minute
)

// flood keeps both. It belongs to who runs the socket.
type flood struct {
	began  time.Time // of the while that goes on
	read   int
	told   time.Time
	untold int
	sender unix.Ucred // the last one that was ignored
}

// pause is how long nothing more is to be read, after one was.
func (f *flood) pause(now time.Time) time.Duration {
	if since := now.Sub(f.began); since < 0 || since >= while {
		f.began, f.read = now, 0
	}
	if f.read++; f.read < mostInAWhile {
		return 0
	}
	return while - now.Sub(f.began)
}

// ignored notes a message of a process that is not the program's.
func (f *flood) ignored(log hclog.Logger, now time.Time, sender *unix.Ucred) {
	f.untold++
	f.sender = unix.Ucred{}
	if sender != nil {
		f.sender = *sender
	}
	if f.told.IsZero() || now.Sub(f.told) >= toldEach {
		f.told = now
		f.end(log)
	}
}

// end tells what has not been told yet.
func (f *flood) end(log hclog.Logger) {
	if f.untold > 0 {
		log.Warn("notifications from processes that are not the program's are ignored", "count", f.untold, "last_pid", f.sender.Pid, "last_uid", f.sender.Uid)
		f.untold = 0
	}
}
