package election

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// errUnsure says that a session may not be stale any more.
var errUnsure = errors.New("it is not sure any more that the session is stale")

// longerError says that a session's breadcrumb names a longer timeout than we knew.
type longerError time.Duration

// Error implements error.
func (e longerError) Error() string { return "its session timeout is " + time.Duration(e).String() }

// clearService deletes a stale session's znodes of one service.
func (l *lookout) clearService(ctx context.Context, id int64, g *sign, p Paths) error {
	if err := l.clearLock(ctx, id, g, p); err != nil {
		return wrap("delete "+p.Lock(), err)
	}
	places, err := l.s.children(ctx, p.Queue())
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	var paths []string
	for _, name := range places {
		paths = append(paths, p.Queue()+"/"+name)
	}
	if g.node != "" && (g.path != "" || !l.present(g.node)) { // else the node's new session replaces these, maybe right now
		marks, err := l.s.children(ctx, p.Preferred())
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		for _, name := range marks {
			if _, node, _ := strings.Cut(name, "-"); node == g.node {
				paths = append(paths, p.Preferred()+"/"+name)
			}
		}
		paths = append(paths, p.Members()+"/"+g.node)
	}
	for _, path := range paths {
		v, err := l.s.read(ctx, path)
		if err == nil && v.exists && v.stat.EphemeralOwner == id {
			err = l.delete(ctx, l.silent(g), &zk.DeleteRequest{Path: path, Version: -1})
		}
		if err != nil {
			return wrap("delete "+path, err)
		}
	}
	return nil
}

// present reports whether a node has a registered session.
func (l *lookout) present(node string) bool {
	for _, g := range l.signs {
		if g.node == node && g.path != "" {
			return true
		}
	}
	return node == l.s.cfg.Node.Node
}

// clearLock deletes the lock if it is the session's. We read the lock last, and it is older than the first look: so it has been
// this very lock all the while, and the transaction succeeds only while nobody has claimed it since.
//
// P1: the breadcrumb says that the lock did not go with its session, which may still be there: a claimant that waits by time adds a
// session timeout, as after a deletion by hand.
func (l *lookout) clearLock(ctx context.Context, id int64, g *sign, p Paths) error {
	s := l.s
	dir, err := s.read(ctx, p.Dir())
	if err != nil || !dir.exists {
		return err
	}
	trail, err := s.read(ctx, p.Crumb())
	if err != nil {
		return err
	}
	lock, err := s.read(ctx, p.Lock())
	if err != nil || !lock.exists || lock.stat.EphemeralOwner != id {
		return err
	}
	if lock.stat.Czxid > g.zxid {
		return errUnsure
	}
	ops := append(l.silent(g), &zk.CheckVersionRequest{Path: p.Dir(), Version: dir.stat.Version})
	if crumb, err := ReadBreadCrumb(trail.data); trail.exists && err == nil && crumb.Session == SessionName(id) {
		if told := time.Duration(crumb.SessionMs) * time.Millisecond; told > max(g.timeout, s.Timeout()) {
			return longerError(told)
		}
		ops = append(ops, &zk.SetDataRequest{Path: p.Crumb(), Data: outlived(trail.data), Version: trail.stat.Version})
	}
	if err := l.delete(ctx, ops, &zk.DeleteRequest{Path: p.Lock(), Version: -1}); err != nil {
		return err
	}
	s.log.Warn("deleted the lock of a supervisor that shows no sign of life", "service", p.Service, "node", g.node, "session", SessionName(id))
	return nil
}

// silent is a check for transactions that succeeds as long as the session has sent no heartbeat.
func (l *lookout) silent(g *sign) []any {
	if g.path == "" {
		return nil
	}
	return []any{&zk.CheckVersionRequest{Path: g.path, Version: g.version}}
}

// delete deletes one znode, if the other operations succeed, and our own heartbeats are still acknowledged.
func (l *lookout) delete(ctx context.Context, ops []any, what *zk.DeleteRequest) error {
	if _, ok := l.s.steady.since(l.s.cfg.Now(), l.s.Timeout()); !ok || l.interrupted() {
		return errUnsure
	}
	ops = append(ops, what)
	failed, err := l.s.multi(ctx, ops...)
	if failed == len(ops)-1 && errors.Is(err, zk.ErrNoNode) {
		return nil // by somebody else
	}
	return err
}

// outlived makes a breadcrumb say that its lock was deleted while its session lives.
func outlived(crumb []byte) []byte { return merge(crumb, map[string]bool{"outlived": true}) }
