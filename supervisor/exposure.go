package supervisor

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
)

// exposure looks for znodes that others can change although this node has credentials.
type exposure struct {
	look    chan struct{}   // holds one when it is to be looked at
	names   func() []string // of the services
	notes   *notes
	changed func() // called when something else is open
	log     hclog.Logger
}

// How often keep looks whether what was open is closed by now. A look at a large tree takes long, and must not be ZooKeeper's main work.
const (
	exposedAgain = 10 * time.Second
	exposedShare = 20
)

// keep looks when a session begins, when config or credentials change, and while something is open.
func (e *exposure) keep(ctx context.Context, sess *election.Session) {
	for {
		began := time.Now()
		open := e.lookAt(ctx, sess)
		again := time.NewTimer(max(exposedAgain, exposedShare*time.Since(began)))
		if !open {
			again.Stop()
		}
		select {
		case <-again.C:
		case <-e.look:
			again.Stop()
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// lookAt looks which znodes others can change, and logs when that changes: a tree that was made without credentials, or by a stranger,
// stays open, whatever is created in it.
func (e *exposure) lookAt(ctx context.Context, sess *election.Session) (open bool) {
	all, err := sess.Exposed(ctx, e.names())
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("cannot find out whether others may change the znodes in ZooKeeper", "error", err)
		}
		return true // nobody knows that it is not
	}
	note := election.ExposedNote(all)
	was := e.notes.expose(note)
	if note != was {
		e.changed()
	}
	switch {
	case note == was:
	case note != "":
		e.log.Warn("ZooKeeper is open to others", "note", note)
	default:
		e.log.Info("ZooKeeper is not open to others any more")
	}
	return note != ""
}
