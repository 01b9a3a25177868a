package election

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A session may outlast its supervisor: a stranger attaches to it and sends pings, or the servers forget to delete an ephemeral
// znode. Its lock would block the service for ever. So every session looks at the heartbeats of the others, and deletes the
// znodes of one that has sent none for two session timeouts.

// sign is the newest sign of life of another session.
type sign struct {
	node    string
	path    string        // nodes/<node>; empty: it is missing, or another session's
	version int32         // of that
	mzxid   int64         // of the newest heartbeat that was seen; 0: none was
	timeout time.Duration // the session's longest known one
	since   time.Duration // when we first saw this state
	zxid    int64         // the newest by then: we do not delete a younger lock
	waited  bool          // register has waited for it
	told    bool          // the log has it
}

// steadiness notes since when our own heartbeats have been acknowledged without a gap.
//
// P1: after a gap of GoneAfter we may have promised the active node of a failsafe service to start nothing. That node may have had the
// same gap, and then it must get the time to come back.
type steadiness struct {
	mu    sync.Mutex // guards the fields below
	acked time.Duration
	from  time.Duration
}

// heard notes that a write sent at that time was acknowledged.
func (y *steadiness) heard(sent, now, session time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if now-y.acked > GoneAfter(session) {
		y.from = now
	}
	y.acked = max(y.acked, sent)
}

// since reports false when nothing has been acknowledged for too long.
func (y *steadiness) since(now, session time.Duration) (time.Duration, bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.from, now-y.acked <= GoneAfter(session)
}

// waits are the sessions whose end our candidates wait for.
type waits struct {
	mu   sync.Mutex // guards the fields below
	of   map[int64]string
	many map[int64]int
}

// add notes that a candidate waits for a znode of another session, until the returned function is called. The znode's data names the
// node.
func (w *waits) add(v view) (done func()) {
	owner := v.stat.EphemeralOwner
	if owner == 0 {
		return func() {} // made by hand: it belongs to no session
	}
	holder, _ := decode[Lock](v.data) // without a name there is only less to delete
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of, w.many = map[int64]string{}, map[int64]int{}
	}
	w.of[owner] = holder.Node
	w.many[owner]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.many[owner]--; w.many[owner] == 0 {
			delete(w.of, owner)
			delete(w.many, owner)
		}
	}
}

func (w *waits) all() map[int64]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.of)
}

// lookout watches the other sessions, in one of ours.
type lookout struct {
	s       *Session
	signs   map[int64]*sign
	resumed <-chan struct{}
	anew    time.Duration // when we were connected last: earlier signs do not count
}

// ClearStale deletes the locks, and other znodes that candidates wait for, of sessions that send no heartbeats any more, until ctx or
// the session ends. It costs a read of each supervisor's znode in a session timeout, however many services
// there are.
func (s *Session) ClearStale(ctx context.Context) {
	l := &lookout{s: s, signs: map[int64]*sign{}, resumed: s.Resumed(), anew: s.cfg.Now()}
	maps.Copy(l.signs, s.former)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			timer.Reset(l.look(ctx))
		case <-l.resumed:
			l.resumed, l.anew = s.Resumed(), s.cfg.Now()
		case <-s.Ended():
			return
		case <-ctx.Done():
			return
		}
	}
}

// look takes one look, deletes stale znodes, and returns how long to wait for the next one.
func (l *lookout) look(ctx context.Context) time.Duration {
	session := l.s.Timeout()
	asked := l.s.cfg.Now()
	if err := l.read(ctx); err != nil {
		l.s.log.Debug("cannot look at the heartbeats of other nodes", "error", err)
		return session
	}
	next := session
	for _, id := range slices.Sorted(maps.Keys(l.signs)) {
		g := l.signs[id]
		left := l.left(g, asked)
		if left > 0 {
			next = min(next, left)
			continue
		}
		if err := l.clear(ctx, id, g); err != nil {
			l.failed(id, g, err)
			continue
		}
		if left := l.left(g, asked); left > 0 { // a breadcrumb names a longer timeout
			next = min(next, left)
			continue
		}
		delete(l.signs, id)
	}
	return max(next, session/10)
}

// left is how much longer a session has to be silent until it is stale: by then a live supervisor would have stopped its programs and
// come back. Our own heartbeats must be acknowledged all the while.
func (l *lookout) left(g *sign, now time.Duration) time.Duration {
	session := l.s.Timeout()
	span := 2 * max(g.timeout, session)
	steady, ok := l.s.steady.since(l.s.cfg.Now(), session)
	switch {
	case !ok || l.interrupted():
		return span
	case g.waited:
		return 0
	}
	return span - (now - max(g.since, steady, l.anew))
}

func (l *lookout) interrupted() bool {
	select {
	case <-l.resumed:
		return true
	default:
		return false
	}
}

// read looks at nodes/ for signs of life. A follower that lags behind is asked to catch up first.
func (l *lookout) read(ctx context.Context) error {
	s := l.s
	dir := NodesDir(s.cfg.Root)
	if err := s.sync(ctx, dir); err != nil {
		return err
	}
	names, err := s.children(ctx, dir)
	if err != nil {
		return err
	}
	found := map[int64]string{}
	for _, name := range names {
		v, err := s.read(ctx, dir+"/"+name)
		if err != nil {
			return err
		}
		if v.exists && v.stat.EphemeralOwner != s.ID() && v.stat.EphemeralOwner != 0 {
			found[v.stat.EphemeralOwner] = name
			l.saw(name, dir+"/"+name, v)
		}
	}
	waited := s.waits.all()
	maps.DeleteFunc(l.signs, func(id int64, g *sign) bool {
		_, wanted := waited[id]
		return found[id] == "" && !wanted && !g.waited
	})
	for _, id := range slices.Sorted(maps.Keys(waited)) {
		if id == s.ID() || found[id] != "" {
			continue
		}
		missing := &sign{node: waited[id], since: s.cfg.Now(), zxid: s.dialer.seen.Load()}
		if g := l.signs[id]; g != nil {
			if g.path == "" {
				continue
			}
			missing.timeout = g.timeout
		}
		l.signs[id] = missing // it may have sent many heartbeats before its znode was deleted
	}
	return nil
}

// saw notes the sign of life in nodes/<node>.
func (l *lookout) saw(node, path string, v view) {
	g := l.signs[v.stat.EphemeralOwner]
	if g == nil || g.mzxid != v.stat.Mzxid {
		g = &sign{node: node, mzxid: v.stat.Mzxid, since: l.s.cfg.Now(), zxid: l.s.dialer.seen.Load()}
		l.signs[v.stat.EphemeralOwner] = g
	}
	g.path, g.version, g.timeout = path, v.stat.Version, max(g.timeout, timeoutOf(v.data))
}

// timeoutOf is the session timeout in nodes/<node>; 0: none.
func timeoutOf(data []byte) time.Duration {
	n, err := decode[Node](data)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(n.SessionMs, 0), math.MaxInt32)) * time.Millisecond
}

// clearing is how many services we look at at a time.
const clearing = 16

// clear deletes all znodes of a stale session, its supervisor's last.
func (l *lookout) clear(ctx context.Context, id int64, g *sign) error {
	s := l.s
	if !g.told {
		g.told = true
		s.log.Warn("a supervisor has sent no heartbeat for two session timeouts, but ZooKeeper keeps its session or its znodes: deleting them",
			"node", g.node, "session", SessionName(id))
	}
	services, err := s.children(ctx, ServicesDir(s.cfg.Root))
	if err != nil {
		return err
	}
	slices.Sort(services)
	waits := false // for longer
	errs := make([]error, len(services))
	slots := make(chan struct{}, clearing)
	var wg sync.WaitGroup
	for i, name := range services {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = l.clearService(ctx, id, g, Paths{Root: s.cfg.Root, Service: name})
			<-slots
		})
	}
	wg.Wait()
	for i, err := range errs {
		var longer longerError
		if errors.As(err, &longer) {
			g.timeout, g.waited, errs[i] = max(g.timeout, time.Duration(longer)), false, nil
			waits = true
		}
	}
	if err := errors.Join(errs...); err != nil || waits || g.path == "" {
		return err
	}
	err = l.delete(ctx, nil, &zk.DeleteRequest{Path: g.path, Version: g.version})
	return wrap("delete "+g.path, err)
}

// failed notes that we could not delete all. If another node was quicker, or the session lives after all, the next look shows it.
func (l *lookout) failed(id int64, g *sign, err error) {
	facts := []any{"node", g.node, "session", SessionName(id), "error", err}
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
		l.s.log.Debug("the znodes of a session without heartbeats have changed", facts...)
		return
	}
	l.s.log.Warn("cannot delete all znodes of a session without heartbeats, waiting again", facts...)
	g.since, g.zxid, g.waited = l.s.cfg.Now(), l.s.dialer.seen.Load(), false
}
