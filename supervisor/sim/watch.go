package sim

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"time"

	"understudy/election"
)

const (
	secondCloses = 250 * time.Millisecond
	closesAnyway = 200 * time.Millisecond
	givesUp      = 30 * time.Second
	strikeAgain  = 20 * time.Millisecond
)

// watch is one epoch as a guardian sees it.
type watch struct {
	epoch     uint64
	ticket    []byte
	deadline  time.Duration
	trees     map[uint64]*quarry
	ended     bool
	endedAt   time.Duration
	closeAt   time.Duration
	told      int
	busy      bool
	closed    bool
	forgotten bool
}

// quarry is one tree to be killed when the lease ends.
type quarry struct {
	release []byte
	body    *tree
	dead    bool
	tries   int
	armed   bool          // the watchdog is for it
	after   time.Duration // the lease's end: until then its death has to be proved
}

func (w *watch) inOrder() (all []*quarry) {
	for _, number := range slices.Sorted(maps.Keys(w.trees)) {
		all = append(all, w.trees[number])
	}
	return all
}

func (w *watch) has(t *tree) bool {
	for _, q := range w.trees {
		if q.body == t {
			return true
		}
	}
	return false
}

func (w *watch) end(now time.Duration, index int, first bool) {
	w.ended, w.endedAt, w.closeAt = true, now, now
	if index > 0 && !first {
		w.closeAt = now + secondCloses
	}
	for _, q := range w.inOrder() {
		if q.body != nil {
			q.body.strike()
		}
	}
}

// kill does one turn of killing and says when the next is due.
func (w *watch) kill(now time.Duration) (next time.Duration) {
	for _, q := range w.inOrder() {
		if q.dead {
			continue
		}
		if q.dead = q.body == nil || q.body.look(true); q.dead {
			continue
		}
		patience := strikeAgain
		if q.tries++; q.tries > 200 {
			patience = time.Second
		}
		if at := now + patience; next == 0 || at < next {
			next = at
		}
	}
	return next
}

// close starts the closing of the session when there is something new to tell it, and says when to look again.
func (w *watch) close(now time.Duration, g *guardian) time.Duration {
	if w.busy || w.closed || len(w.ticket) == 0 {
		return 0
	}
	if now < w.closeAt && !g.isFirst {
		return w.closeAt
	}
	var releases [][]byte
	for _, q := range w.inOrder() {
		if q.dead {
			releases = append(releases, q.release)
		}
	}
	allDead := len(releases) == len(w.trees)
	if !allDead {
		if now < w.endedAt+closesAnyway {
			return w.endedAt + closesAnyway
		}
		if len(releases) <= w.told {
			return 0
		}
	}
	w.busy, w.told = true, len(releases)
	g.w.wait.Go(func() {
		g.closeSession(w.ticket, releases, allDead)
		if !g.pass() {
			return
		}
		g.w.mu.Lock()
		defer g.w.mu.Unlock()
		w.busy = false
		w.closed = w.closed || allDead
		g.wake()
	})
	return 0
}

func (w *watch) settled() bool {
	for _, q := range w.trees {
		if !q.dead {
			return false
		}
	}
	return !w.busy && (w.closed || len(w.ticket) == 0)
}

// closeSession is what the guardian does beside its loop: the real one's election.CloseEncoded over this network.
func (g *guardian) closeSession(ticket []byte, releases [][]byte, allDead bool) {
	ctx, cancel := context.WithTimeout(context.Background(), givesUp)
	defer cancel()
	var t election.Ticket
	if err := json.Unmarshal(ticket, &t); err != nil {
		panic(err)
	}
	dead := make([]election.Release, len(releases))
	for i, r := range releases {
		if err := json.Unmarshal(r, &dead[i]); err != nil {
			panic(err)
		}
	}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		if !g.pass() {
			return newTomb(), nil
		}
		return g.w.net.dial(ctx, g.host.index, serverOf(address), g.gate)
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if err := t.Close(ctx, dial, dead, allDead); err == nil || !g.alive() {
			return
		}
		if !g.w.sleep(ctx, pause) {
			return
		}
	}
}
