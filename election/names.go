package election

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Names are the empty znodes of a service that transactions check, as one look at its folder shows them. ZooKeeper checks existence and
// versions, and versions begin anew with each znode: so what a transaction relies on has a name that never comes again.
type Names struct {
	// Claims is one claim-<guid>: of the newest claim, whether or not its lock is there. Each claim deletes what it has seen, and makes its
	// own. None, or more: somebody deleted or made one by hand.
	Claims  []string
	Records []string // one record-<guid> if there is a breadcrumb, which gives it
	Folder  zk.Stat
	dir     string
}

// NamesIn sorts out the names among the children of a service's folder.
func NamesIn(dir string, children []string, folder zk.Stat) Names {
	n := Names{Folder: folder, dir: dir}
	for _, child := range children {
		switch {
		case strings.HasPrefix(child, claimPrefix):
			n.Claims = append(n.Claims, path.Join(dir, child))
		case strings.HasPrefix(child, recordPrefix):
			n.Records = append(n.Records, path.Join(dir, child))
		}
	}
	return n
}

func (p Paths) newClaim() string { return path.Join(p.Dir(), claimPrefix+rand.Text()) }

// record is the path of a breadcrumb's name.
func (p Paths) record(name string) string { return recordIn(p.Dir(), name) }

func recordIn(dir, name string) string { return path.Join(dir, recordPrefix+name) }

func there(path string) any { return &zk.CheckVersionRequest{Path: path, Version: -1} }

// unclaimed is checks that succeed as long as nobody has claimed since the look. Without a name, the folder's version shows it, which each
// claim raises.
func (n Names) unclaimed() (ops []any) {
	if len(n.Claims) == 0 {
		return []any{&zk.CheckVersionRequest{Path: n.dir, Version: n.Folder.Version}}
	}
	for _, claim := range n.Claims {
		ops = append(ops, there(claim))
	}
	return ops
}

// Change is a transaction that changes or deletes the breadcrumb that was read after this look, with its version, and no other: P2. It is
// for nodes and operators that do not hold the lock, so it checks that nobody has claimed since, and the breadcrumb's name. If an operator
// has deleted the name, the transaction only makes it again, and the caller has to look again.
func (n Names) Change(b BreadCrumb, version int32, acl []zk.ACL, write any) (ops []any, again bool) {
	ops = n.unclaimed()
	if b.Name == "" { // it was made by hand
		return append(ops, write), false
	}
	name := recordIn(n.dir, b.Name)
	if !slices.Contains(n.Records, name) {
		same := &zk.CheckVersionRequest{Path: path.Join(n.dir, crumbName), Version: version}
		return append(ops, same, &zk.CreateRequest{Path: name, Acl: acl}), true
	}
	if _, removes := write.(*zk.DeleteRequest); removes {
		return append(ops, remove(name), write), false
	}
	return append(ops, there(name), write), false
}

// newest is another one after each claim.
func (n Names) newest() string { return fmt.Sprint(n.Folder.Version, n.Claims) }

func remove(path string) *zk.DeleteRequest { return &zk.DeleteRequest{Path: path, Version: -1} }

// names looks at a service's folder.
func (c *client) names(ctx context.Context, p Paths) (Names, error) {
	return call(ctx, c, func() (Names, error) {
		children, folder, err := c.conn.Children(p.Dir())
		if err != nil {
			return Names{}, err
		}
		return NamesIn(p.Dir(), children, *folder), nil
	})
}

// change carries out a Change.
func (c *client) change(ctx context.Context, n Names, b BreadCrumb, version int32, write any) error {
	ops, again := n.Change(b, version, c.acl, write)
	if _, err := c.multi(ctx, ops...); err != nil || !again {
		return err
	}
	return errUnanswered // it was not done yet
}

// claimOf returns which of the claims made this lock: one transaction makes both. "": none did.
func (c *client) claimOf(ctx context.Context, n Names, lock zk.Stat) (string, error) {
	for _, claim := range n.Claims {
		v, err := c.exists(ctx, claim)
		if err != nil {
			return "", err
		}
		if v.exists && v.stat.Czxid == lock.Czxid {
			return claim, nil
		}
	}
	return "", nil
}

// recheck looks at the names, the breadcrumb, and, last, the lock: if that is the very lock that we claimed, nobody had claimed before. A
// name of the breadcrumb that was deleted by hand is made again.
func (c *Claim) recheck(ctx context.Context) error {
	look, err := outcome(ctx, c.s.client, func() (Names, error) { return c.s.names(ctx, c.paths) })
	if errors.Is(err, zk.ErrNoNode) {
		c.gone = true
		return ErrLost // and the lock with the folder
	}
	if err != nil {
		return wrap("read "+c.paths.Dir(), err)
	}
	if err := c.reread(ctx); err != nil {
		return wrap("read the breadcrumb", err)
	}
	if err := c.verify(ctx); err != nil {
		return err
	}
	if !slices.Contains(look.Claims, c.name) { // P1: the lock may be gone at the leader, or a later one. It goes with the session alone
		c.s.Expire(ErrTorn)
		return ErrTorn
	}
	if c.record == "" || slices.Contains(look.Records, c.paths.record(c.record)) {
		return nil
	}
	_, err = c.s.multi(ctx, there(c.name), &zk.CheckVersionRequest{Path: c.paths.Crumb(), Version: c.version},
		&zk.CreateRequest{Path: c.paths.record(c.record), Acl: c.s.acl})
	if err != nil && (&pacing{}).passes(err) { // it has changed again: the caller's transaction shows how
		return nil
	}
	return wrap("make the breadcrumb's name again", err)
}
