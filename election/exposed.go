package election

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// ACLReader reads the ACLs of a tree of znodes.
type ACLReader struct {
	ACL      func(path string) ([]zk.ACL, error)
	Children func(path string) ([]string, error)
}

// Exposed finds the znodes of services that clients without the credentials may change. The right to delete in a service's folder
// is the right to delete its lock and breadcrumb, even if others own these. It looks at the folders, and at the znodes in those of
// services. The folders above the root do not matter: only an empty root can be deleted. services nil: all.
func (t ACLReader) Exposed(root string, a *Auth, services []string) (open []string, err error) {
	look := func(path string) (is bool, err error) {
		acl, err := t.ACL(path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case err != nil && !errors.Is(err, zk.ErrNoAuth): // a znode that we cannot read is not ours
			return false, fmt.Errorf("read the ACL of %s: %w", path, err)
		case err != nil || a.exposed(acl):
			open, is = append(open, path), true
		}
		return is, nil
	}
	list := func(path string) ([]string, error) {
		names, err := t.Children(path)
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
			return nil, nil
		}
		slices.Sort(names)
		return names, err
	}
	folders := []string{root}
	if services == nil {
		if services, err = list(ServicesDir(root)); err != nil {
			return nil, err
		}
	}
	for _, name := range services {
		folders = append(folders, Paths{root, name}.Dir())
	}
	for _, folder := range folders {
		is, err := look(folder)
		var names []string
		if err == nil && !is { // in an open folder a stranger can make any number
			names, err = list(folder)
		}
		for _, name := range names {
			if err == nil {
				_, err = look(folder + "/" + name)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return open, nil
}

// exposed reports whether an ACL lets others do more than read.
func (a *Auth) exposed(acl []zk.ACL) bool {
	ours := a.ACL()
	return slices.ContainsFunc(acl, func(entry zk.ACL) bool {
		return entry.Perms&^zk.PermRead != 0 &&
			!slices.ContainsFunc(ours, func(o zk.ACL) bool { return o.Scheme == entry.Scheme && o.ID == entry.ID })
	})
}

const longestPath = 80

// ExposedNote is a warning about open znodes, with the command to type; "" if none is open.
func ExposedNote(open []string) string {
	if len(open) == 0 {
		return ""
	}
	more := ""
	if n := len(open) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	first := open[0]
	if len(first) > longestPath { // the command to type follows it
		first = first[:longestPath] + "..."
	}
	note := fmt.Sprintf("clients without the credentials in zookeeper.auth may change %s%s in ZooKeeper, "+
		"and so make two copies of a service run; once all nodes have the credentials, type `understudy check --repair-acl`", first, more)
	return Line(note) // it has names of znodes that a stranger may have made
}

// tree reads in a session, and repeats each read until it is answered.
func (c *client) tree(ctx context.Context) ACLReader {
	return ACLReader{
		ACL: func(path string) ([]zk.ACL, error) {
			return insist(ctx, c, func() ([]zk.ACL, error) { acl, _, err := c.conn.GetACL(path); return acl, err })
		},
		Children: func(path string) ([]string, error) {
			return outcome(ctx, c, func() ([]string, error) { return c.children(ctx, path) })
		},
	}
}

// Exposed is ACLReader.Exposed in this session.
func (s *Session) Exposed(ctx context.Context, services []string) ([]string, error) {
	a := s.dialer.shown()
	if a == nil {
		return nil, nil
	}
	return s.tree(ctx).Exposed(s.cfg.Root, a, services)
}
