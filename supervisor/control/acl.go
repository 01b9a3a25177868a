package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

// Repair is what came of RepairACL.
type Repair struct {
	Seen     int      // znodes
	Repaired []string // those that were open to others, and are their owner's alone now
	Refused  []string // those that are somebody else's
}

// RepairACL makes all that is below the root, and the root itself, the credentials' alone: a tree that was made without them
// is open to everybody.
func (c *Cluster) RepairACL(ctx context.Context) (Repair, error) {
	var r Repair
	if c.auth == nil {
		return r, errors.New("no credentials to give the znodes to: set zookeeper.auth")
	}
	ours := c.auth.ACL()
	for paths := []string{c.root}; len(paths) > 0; paths = paths[1:] {
		path := paths[0]
		acl, err := insist(ctx, "read the ACL of "+path, func() ([]zk.ACL, error) {
			acl, _, err := c.conn.GetACL(path)
			return acl, err
		})
		if errors.Is(err, zk.ErrNoNode) {
			continue // an ephemeral that has gone
		}
		if err == nil && !slices.Equal(election.Sorted(acl), ours) {
			if _, err = insist(ctx, "set the ACL of "+path, func() (*zk.Stat, error) {
				return c.conn.SetACL(path, c.acl, -1)
			}); err == nil {
				r.Repaired = append(r.Repaired, path)
			}
		}
		var names []string
		if err == nil {
			names, err = c.children(ctx, path)
		}
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			r.Refused = append(r.Refused, path)
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return r, fmt.Errorf("repair %s: %w", path, err)
		}
		r.Seen++
		for _, name := range names {
			paths = append(paths, path+"/"+name)
		}
	}
	return r, nil
}
