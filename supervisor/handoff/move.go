package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/supervisor/service"
)

// Move is an upgrade under way in a session.
type Move struct {
	step  step
	since time.Time
	stops []*service.Service // which were told to end
}

type step int

const (
	waiting       step = iota // for what is passing
	endingPassing             // what does not pass is stopped, as ever
	letting                   // all leave the session, children go on
)

const (
	// Look is how often it is looked how far a move is.
	Look       = 10 * time.Millisecond
	passingFor = 10 * time.Second // what is not over by then is stopped
	leavingFor = 2 * time.Second  // children are looked after by nobody then
	busyFor    = time.Second
)

// ErrNotNow says that an upgrade has to be asked for again.
var ErrNotNow = errors.New("not now")

// Why it has to be.
var (
	ErrUnshown = fmt.Errorf("%w: changed credentials are not taken up yet", ErrNotNow)
	errStale   = fmt.Errorf("%w: ZooKeeper has acknowledged nothing for a while", ErrNotNow)
	errHeld    = fmt.Errorf("%w: what runs goes on by promises, or did a moment ago (failsafe)", ErrNotNow)
)

// Begin is an upgrade that has just been asked for.
func Begin() *Move { return &Move{since: time.Now()} }

// On goes on with an upgrade, and hands over when no service runs in the session any more. An error says that there will be none: the
// services go on as before. unsettled tells what the upgrade waits for besides them.
func (m *Move) On(ctx context.Context, s Sender, stops map[*service.Service]context.CancelCauseFunc, unsettled func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if m.step == waiting {
		if !s.fresh() {
			return errStale
		}
		err := unsettled()
		if err == nil {
			err = s.plain()
		}
		if err != nil && (errors.Is(err, ErrUnshown) || errors.Is(err, errHeld)) && time.Since(m.since) < passingFor {
			return nil // that passes
		}
		if err != nil {
			return err
		}
	}
	ready, err := m.advance(stops)
	if err != nil || !ready {
		return err
	}
	return s.become(ctx)
}

// advance does what is due, and tells whether nothing runs in the session any more: then it can be handed over.
func (m *Move) advance(stops map[*service.Service]context.CancelCauseFunc) (ready bool, err error) {
	stop := func(which func(*service.Service) bool) (left int) {
		for v, end := range stops {
			if !which(v) {
				continue
			}
			if left++; !slices.Contains(m.stops, v) {
				m.stops = append(m.stops, v)
				end(service.ErrHandover)
			}
		}
		return left
	}
	next := func(to step) { m.step, m.since = to, time.Now() }
	for v := range stops {
		if v.Stance() == service.Stuck { // nobody knows for how long
			return false, fmt.Errorf("%w: the child of %s is not proved dead, or its lock cannot be given back", ErrNotNow, v.Name())
		}
	}
	if m.step == waiting {
		for v := range stops {
			if v.Stance() == service.Passing && time.Since(m.since) < passingFor {
				return false, nil
			}
		}
		next(endingPassing)
	}
	if m.step == endingPassing {
		if stop(func(v *service.Service) bool { return v.Stance() == service.Passing }) > 0 {
			return false, nil
		}
		next(letting)
	}
	if stop(func(*service.Service) bool { return true }) == 0 {
		return true, nil
	}
	if time.Since(m.since) > leavingFor {
		return false, ErrNotNow
	}
	return false, nil
}
