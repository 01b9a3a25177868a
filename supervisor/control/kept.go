package control

import (
	"context"
	"fmt"

	"understudy/election"
)

// Kept is a znode that blocks other nodes: its supervisor is gone, and ZooKeeper keeps its session, or did not delete it with its session.
// No node deletes it.
type Kept struct {
	Path, Node, Session, Server string
	Auth                        bool // it takes credentials to delete it
}

// Heartbeat is what the znode of a supervisor shows of its session. Times are ZooKeeper's, in ms.
type Heartbeat struct{ Session, At, Timeout int64 }

// silent lists, by session, nodes without a heartbeat for two session timeouts before the newest one of all nodes. A lock that is that old
// and whose session has no node counts as well: a live supervisor makes its znode again with its next heartbeat.
func silent(nodes []NodeStatus, lock Heartbeat, holder string) map[int64]string {
	newest, timeout := int64(0), lock.Timeout
	for _, n := range nodes {
		newest, timeout = max(newest, n.Beat.At), max(timeout, n.Beat.Timeout)
	}
	gone, registered := map[int64]string{}, lock.Session == 0
	stale := func(h Heartbeat) bool { return timeout > 0 && newest-h.At > 2*timeout }
	for _, n := range nodes {
		registered = registered || n.Beat.Session == lock.Session
		if n.Beat.Session != 0 && stale(n.Beat) {
			gone[n.Beat.Session] = n.Node
		}
	}
	if !registered && stale(lock) {
		gone[lock.Session] = holder
	}
	return gone
}

// keep finds what silent sessions keep of a service. While nobody has the lock, that can be a place in the queue of a session whose node is
// gone as well.
func (c *Cluster) keep(ctx context.Context, s *ServiceStatus, nodes []NodeStatus) error {
	gone := silent(nodes, s.Held, s.Lock)
	if len(gone) == 0 && s.Held.Session != 0 {
		return nil
	}
	p := election.Paths{Root: c.root, Service: s.Service}
	paths := []string{p.Lock()} // it may have ended with its session since it was read
	for _, dir := range []string{p.Queue(), p.Preferred()} {
		names, err := c.children(ctx, dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			paths = append(paths, dir+"/"+name)
		}
	}
	for _, path := range paths {
		n, err := c.read(ctx, path)
		if err != nil {
			return err
		}
		owner := n.stat.EphemeralOwner
		node, ok := gone[owner]
		if !ok {
			node, ok = silent(nodes, Heartbeat{Session: owner, At: n.stat.Mtime}, "an unknown node")[owner]
		}
		if n.exists && ok {
			s.Kept = append(s.Kept, Kept{path, node, election.SessionName(owner), c.conn.Server(), c.auth != nil})
		}
	}
	return nil
}

// problem tells an operator how to delete it. The breadcrumb stays, so that the next node fences the one that is gone.
func (k Kept) problem() Problem {
	f := Problem{
		Level: Fault, What: fmt.Sprintf("Session %s of %s has sent no heartbeat for two session timeouts, but ZooKeeper keeps its znode %s, "+
			"which blocks other nodes.", k.Session, k.Node, k.Path),
		Hint: "If this lasts, delete it:", Do: remedy("zkCli.sh -server "+k.Server, "delete", k.Path),
	}
	f.Do.Here = true
	if k.Auth && len(f.Do.Words) > 0 {
		f.Hint = "If this lasts, type `addauth digest USER:PASSWORD` and `delete " + k.Path + "` in:"
		f.Do.Words = f.Do.Words[:1]
	}
	return f
}
