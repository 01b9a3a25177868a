package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/supervisor/service"
)

// Served is a service that is served in the session.
type Served interface {
	Name() string
	Upgrade() service.UpgradeState
}

// Serving is a service that is served, and how to have it leave.
type Serving struct {
	Served
	Leave context.CancelCauseFunc
}

// Move is an upgrade under way in a session.
type Move struct {
	step  step
	since time.Time
	told  []Served // to leave
}

type step int

const (
	waiting       step = iota // for what is passing
	endingPassing             // what does not pass is stopped in the usual way
	letting                   // all leave the session, and their children run on
)

const (
	// Look is how often a move looks whether it can go on.
	Look = 10 * time.Millisecond
	// PassingFor is how long an upgrade waits for what passes; then it is stopped.
	PassingFor = 10 * time.Second
	// LeavingFor is how long services may take to leave: nobody looks after their children meanwhile.
	LeavingFor = 2 * time.Second
	busyFor    = time.Second
)

// ErrNotNow says that an upgrade has to be asked for again.
var ErrNotNow = errors.New("not now")

// Why an upgrade has to be asked for again.
var (
	ErrUnshown = fmt.Errorf("%w: changed credentials are not taken up yet", ErrNotNow)
	errStale   = fmt.Errorf("%w: ZooKeeper has acknowledged nothing for a while", ErrNotNow)
	errStuck   = fmt.Errorf("%w: a thread hangs in the kernel, as with a locked pipe, and the exec would wait for it", ErrNotNow)
	errHeld    = fmt.Errorf("%w: a service runs without ZooKeeper, or did a moment ago (failsafe)", ErrNotNow)
)

// Begin is an upgrade that has just been asked for.
func Begin() *Move { return &Move{since: time.Now()} }

// On goes on with an upgrade, and hands over when no service runs in the session any more. An error says that there will be none: the
// services go on as before. unsettled tells what the upgrade waits for besides them.
func (m *Move) On(ctx context.Context, s Sender, all []Serving, unsettled func() error) error {
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
		if err != nil && (errors.Is(err, ErrUnshown) || errors.Is(err, errHeld)) && time.Since(m.since) < PassingFor {
			return nil // that passes
		}
		if err != nil {
			return err
		}
	}
	ready, err := m.advance(all)
	if err != nil || !ready {
		return err
	}
	return s.become(ctx)
}

// advance does what is due, and tells whether nothing runs in the session any more: then it can be handed over.
func (m *Move) advance(all []Serving) (ready bool, err error) {
	leave := func(which func(Serving) bool) (left int) {
		for _, v := range all {
			if !which(v) {
				continue
			}
			left++
			if !slices.Contains(m.told, v.Served) {
				m.told = append(m.told, v.Served)
				v.Leave(service.ErrHandover)
			}
		}
		return left
	}
	next := func(to step) { m.step, m.since = to, time.Now() }
	for _, v := range all {
		if why := v.Upgrade().Blocks(v.Name()); why != "" {
			return false, fmt.Errorf("%w: %s", ErrNotNow, why)
		}
	}
	if m.step == waiting {
		for _, v := range all {
			if v.Upgrade() == service.Passing && time.Since(m.since) < PassingFor {
				return false, nil
			}
		}
		next(endingPassing)
	}
	if m.step == endingPassing {
		if leave(func(v Serving) bool { return v.Upgrade() == service.Passing }) > 0 {
			return false, nil
		}
		next(letting)
	}
	if leave(func(Serving) bool { return true }) == 0 {
		return true, nil
	}
	if time.Since(m.since) > LeavingFor {
		return false, ErrNotNow
	}
	return false, nil
}
