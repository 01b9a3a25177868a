package guardian

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/guard"
)

// Undoer gets a guardian ready to undo what a note describes, so that it needs as little as possible later. It must not wait.
type Undoer func(note []byte) (Effects, error)

// Effects are what a tree's processes may have done beside themselves. Undo runs in a goroutine of its own, and is called again after an
// error. nil: they are undone. Other processes may do the same; it makes sure that only one does at a time.
type Effects interface {
	Undo(ctx context.Context) error
	Close()
}

// undoLimit bounds an attempt whose own timeouts do not.
const undoLimit = time.Hour

var errNoUndoer = errors.New("this guardian undoes nothing")

// undoing runs attempts to undo effects in goroutines of their own: the guardian's loop must not wait for one.
type undoing struct {
	undoer  Undoer // nil: there is none
	bell    int    // eventfd: an attempt has ended
	results chan guard.Undone
}

// start begins an attempt.
func (u *undoing) start(tree uint64, e Effects) {
	go func() {
		u.results <- guard.Undone{Tree: tree, Err: try(e)}
		_ = box.Ring(u.bell)
	}()
}

func try(e Effects) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), undoLimit)
	defer cancel()
	defer func() {
		if r := recover(); r != nil { // kills go on after any fault here
			err = fmt.Errorf("undo: panic: %v", r)
		}
	}()
	return e.Undo(ctx)
}

// ended returns the results of attempts that have ended.
func (u *undoing) ended() (all []guard.Undone) {
	for {
		select {
		case one := <-u.results:
			all = append(all, one)
		default:
			return all
		}
	}
}

// Hold implements guard.Hands.
func (g *guardian) Hold(m *guard.Message) (guard.Effects, error) {
	if g.undoing.undoer == nil {
		return nil, errNoUndoer
	}
	return g.undoing.undoer(m.Ticket)
}

// Undo implements guard.Hands.
func (g *guardian) Undo(tree uint64, e guard.Effects) { g.undoing.start(tree, e.(Effects)) }
