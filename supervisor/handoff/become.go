package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// Sender is the image that hands over.
type Sender struct {
	service.Session
	Guard  host.Guard
	Write  func() Envelope             // all but the session and the guard
	Become func(envelope []byte) error // execs; returns only if that fails
	Hangs  func() bool                 // a thread is where no signal ends it; nil: none ever is
	Now    func() time.Duration        // CLOCK_BOOTTIME
	Log    hclog.Logger
}

// fresh tells whether the lease was extended not long ago: the rest of it has to suffice for the exec and for the next image's first
// heartbeat.
func (s Sender) fresh() bool {
	return s.Backed()-s.Now() > s.LeaseLength()/2
}

// plain fails while the guardians know another deadline than ZooKeeper's own. P3: the next image does not know of that, and would start
// programs that no promise covers.
func (s Sender) plain() error {
	unlock, ok := s.Gate.TryPlain()
	if !ok {
		return errHeld
	}
	unlock()
	return nil
}

// become hands over to another image of this process, and returns only if that fails. No service runs.
func (s Sender) become(ctx context.Context) error {
	for until := time.Now().Add(busyFor); ; {
		err := s.try(ctx)
		if !errors.Is(err, child.ErrBusy) && !errors.Is(err, ErrNotNow) || time.Now().After(until) || !wait.For(ctx, Look) {
			return err
		}
	}
}

func (s Sender) try(ctx context.Context) error {
	if !s.fresh() {
		return errStale
	}
	if wait.Stuck.Load() > 0 || s.Hangs != nil && s.Hangs() {
		return errStuck
	}
	e := s.Write()
	e.Epoch = s.Epoch
	trees := e.number()
	s.Log.Info("handing over to the installed version", "from", e.Build, "running", e.Running())
	ctx, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	return s.Guard.HandOver(ctx, trees, func(guard json.RawMessage) error {
		unlock, ok := s.Gate.TryPlain()
		if !ok {
			return errHeld
		}
		defer unlock()
		var err error
		if e.Session, err = s.Carry(); err != nil {
			return err
		}
		if !s.Gate.Plain() { // a server has granted less meanwhile, which the guardians do not know yet
			return errHeld
		}
		e.Guard = guard
		for _, run := range e.runs() {
			kept, err := run.Keep()
			defer func() {
				for _, fd := range kept {
					_ = unix.Close(fd)
				}
			}()
			if err != nil {
				return err
			}
		}
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return s.Become(raw)
	})
}
