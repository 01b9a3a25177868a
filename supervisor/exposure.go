package supervisor

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
)

// exposure looks for znodes that others can change although this node has credentials.
type exposure struct {
	look    chan struct{}   // holds one when keep should look
	names   func() []string // of the services
	notes   *notes
	changed func() // called when other znodes are open
	log     hclog.Logger
}

// How often keep checks whether open znodes are closed by now. A look at a large tree takes long, and must not become ZooKeeper's main load.
const (
	exposedAgain = 10 * time.Second
	exposedShare = 20
)

// keep looks when a session begins, when config or credentials change, and while znodes are open.
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

// lookAt finds the znodes that others can change, and logs when that changes. A tree that was made without credentials, or by a
// stranger, stays open, even if later znodes in it are not.
func (e *exposure) lookAt(ctx context.Context, sess *election.Session) (open bool) {
	all, err := sess.Exposed(ctx, e.names())
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("cannot find out whether others may change the znodes in ZooKeeper", "error", err)
		}
		return true // whether it is open is unknown
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
