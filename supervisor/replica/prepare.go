package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/supervisor/config"
	"understudy/supervisor/host"
)

// Before a copy follows a primary, the data that it has and the primary has not is taken out of it: by prepare, or all of it by reclone.
// Both run while the program is stopped, and end when another copy is promoted. A copy whose data one of them has begun to change is not
// started before one has succeeded.

const (
	byPrepare = "prepare"
	byReclone = "reclone"

	unchanged = 75 // is the exit code of one that has changed nothing (EX_TEMPFAIL)
)

var (
	errDiverges     = errors.New("it was the primary, and has to be prepared before it follows another one")
	errCannotFollow = errors.New("it could not follow the primary")
)

// mending is what was tried since the copy had the primary's data last.
type mending struct {
	failed   int    // so often in a row prepare has failed
	prepared bool   // prepare or reclone has succeeded
	reclones bool   // reclone is next
	recloned bool   // it has succeeded, and is not tried once more
	why      string // follow, or role, has failed so often in a row; "": it has not
	doubtful bool   // the program has ended by itself before it had the primary's data again, or was a primary itself
}

// mender has the copy's data made such that it can follow a primary. Copy.mu guards its fields.
type mender struct {
	mending
	c    *Copy
	runs bool // prepare or reclone does
}

// noteEnd notes why the program, which has begun then, has ended.
func (m *mender) noteEnd(began time.Time, why error) {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	m.doubtful = c.active.Node != "" && c.asked.Before(began) || errors.Is(why, errPrimary)
}

// Fails is why the copy has not been able to follow the primary elsewhere for long; "": it is, or was not tried so often.
func (c *Copy) Fails() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active.Node == "" {
		return ""
	}
	return c.mends.why
}

// diverges reports whether a copy has to be prepared before it follows. The caller holds mu.
func (m *mender) diverges(active Active) bool {
	kept, _ := m.c.data.known()
	return kept.Diverges && len(m.c.conf.Replicated.Prepare) > 0 && active.Node != ""
}

// gaveUp reports, after so many failures of follow or role, whether the copy's data has to be changed first.
func (m *mender) gaveUp(failures int, why string) bool {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.conf.Replicated
	if failures < r.Attempts {
		return false
	}
	if m.why == "" {
		defer c.cfg.News()
	}
	m.why, m.doubtful = why, true
	if m.recloned {
		return false
	}
	m.reclones = len(r.Reclone) > 0 && (len(r.Prepare) == 0 || m.prepared)
	return len(r.Prepare) > 0 || m.reclones
}

// remedy is what has to run before the program may start. needed without a command: it has to wait for a primary. The caller holds mu.
func (m *mender) remedy() (way string, command config.Command, needed bool) {
	c := m.c
	kept, unread := c.data.known()
	r, torn := c.conf.Replicated, kept.Torn
	if unread != nil { // it may be torn
		torn = byPrepare
	}
	switch {
	case len(r.Reclone) > 0 && (m.reclones || c.orders.current().clones() || torn == byReclone):
		way, command, needed = byReclone, r.Reclone, true
	case len(r.Prepare) > 0:
		way, command, needed = byPrepare, r.Prepare, kept.Diverges || m.doubtful || !kept.has(c.active)
	case len(r.Reclone) > 0 && torn != "" && unread == nil: // prepare is in the config no more
		way, command, needed = byReclone, r.Reclone, true
	}
	if c.active.Node == "" {
		return way, nil, torn != "" && way != ""
	}
	return way, command, needed
}

// prepare has the data of the stopped copy made such that it can follow the primary. It reports whether the program may start.
func (m *mender) prepare(ctx context.Context, tree host.Tree) bool {
	c := m.c
	var pause time.Duration
	for ctx.Err() == nil {
		c.mu.Lock()
		way, command, needed := m.remedy()
		active, a, turned, lent := c.active, c.asking(c.active), c.turned, c.lending.now()
		c.mu.Unlock()
		switch {
		case lent.held:
			return false
		case !needed:
			return true
		case command == nil:
			c.show(func(s *Shown) {
				*s = Shown{Role: Unknown, Why: "it is stopped until another copy is promoted: " + way + " has not succeeded"}
			})
			m.pause(ctx, turned, lent.talk, endless)
			continue
		}
		err := m.mend(ctx, turned, lent.talk, tree, a, active, way, command)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil || turned.Err() != nil || lent.talk.Err() != nil:
			continue
		case ended(err):
			c.end(ctx)
			return false
		}
		pause = min(max(2*pause, a.conf.Replicated.Interval), longestPause)
		c.show(func(s *Shown) { *s = Shown{Role: Unknown, Why: way + ": " + err.Error()} })
		c.log.Warn("this node's copy cannot be prepared to follow the primary, trying again",
			"by", way, "active", active.Node, "error", err, "after", pause)
		m.pause(ctx, turned, lent.talk, pause)
	}
	return false
}

// pause waits for d, or until something has changed.
func (m *mender) pause(ctx, turned, talk context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-m.c.poke:
	case <-turned.Done():
	case <-talk.Done():
	case <-ctx.Done():
	}
}

func (m *mender) noteRuns(yes bool) {
	m.c.mu.Lock()
	m.runs = yes
	m.c.mu.Unlock()
}

// mend runs prepare or reclone once. It is killed when another copy is promoted, or a term takes this one. What it leaves behind is killed.
func (m *mender) mend(
	ctx, turned, talk context.Context, tree host.Tree, a asking, active Active, way string, command config.Command,
) error {
	c := m.c
	var before state
	m.noteRuns(true)
	defer m.noteRuns(false)
	err := c.data.keep(func(s *state) {
		before = *s
		s.heads(active)
		s.Torn = way
	})
	if err != nil {
		return err
	}
	if way == byReclone {
		c.log.Warn("cloning this node's copy from the primary, to replace its data", "active", active.Node, "address", active.Address)
	} else {
		c.log.Info("preparing this node's copy to follow the primary", "active", active.Node, "address", active.Address)
	}
	c.show(func(s *Shown) { *s = Shown{Role: Unknown, Why: way + " runs, to have it follow " + active.Node} })
	running, enough := context.WithCancel(ctx)
	defer context.AfterFunc(turned, enough)()
	defer context.AfterFunc(talk, enough)()
	began := time.Now()
	said, code, err := a.runFor(running, command, lasts)
	enough()
	if said != "" {
		c.log.Info("output of "+way, "output", said)
	}
	err = failure(said, code, err)
	if c.isHeld() || !c.kills(ctx, tree.Kill) { // then the term ends the tree
		return errHeld
	}
	if turned.Err() != nil || talk.Err() != nil {
		return errors.Join(err, errHeld)
	}
	c.mu.Lock()
	if err == nil {
		m.mending = mending{why: m.why, prepared: true, recloned: way == byReclone}
		if now := c.orders.current(); now != nil && way == byReclone {
			now.cloned.Store(true)
		}
	} else if m.failed++; m.failed >= a.conf.Replicated.Attempts {
		m.reclones = len(a.conf.Replicated.Reclone) > 0
	}
	if err != nil && c.orders.current().clones() && way == byReclone {
		c.orders.answer(fmt.Errorf("reclone: %w", err))
	}
	c.mu.Unlock()
	if err != nil && code == unchanged {
		return errors.Join(err, c.data.keep(func(s *state) {
			before.Saw = s.Saw
			*s = before
		}))
	}
	if err != nil {
		return err
	}
	c.log.Info("this node's copy can follow the primary",
		"by", way, "active", active.Node, "took", time.Since(began).Round(time.Millisecond))
	return c.data.keep(func(s *state) { s.Torn, s.Diverges = "", false })
}
