package election

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

const placeMark = "-n_"

// reachHead waits until we are the first in the queue. Each candidate watches only its predecessor, so a failover costs the
// same few requests whatever the number of standbys.
func (c *Candidate) reachHead(ctx context.Context) error {
	for {
		ahead, err := c.predecessor(ctx)
		if err == nil && ahead == "" {
			return nil
		}
		var v view
		if err == nil {
			v, err = c.s.probe(ctx, ahead)
		}
		if err == nil && v.exists {
			if err := c.s.await(ctx, v.changed); err != nil {
				return err
			}
		}
		if unknown(err) {
			if err := c.s.retry(ctx); err != nil {
				return err
			}
		} else if err != nil {
			return fmt.Errorf("stand in the queue: %w", err)
		}
	}
}

// predecessor tells who is just ahead of us, joining the queue at its end when we are not in it.
func (c *Candidate) predecessor(ctx context.Context) (string, error) {
	if c.guid == "" {
		c.guid = rand.Text()
	}
	for {
		names, err := c.s.children(ctx, c.paths.Queue())
		if err != nil {
			return "", err
		}
		names = inOrder(names)
		// The guid finds a place whose creation was answered to nobody.
		mine := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, c.guid+placeMark) })
		switch {
		case mine < 0:
			c.place = ""
			err := c.s.create(ctx, c.paths.Queue()+"/"+c.guid+placeMark, encode(c.s.cfg.Node), zk.FlagEphemeral|zk.FlagSequence)
			if err != nil {
				return "", err
			}
		case mine == 0:
			c.place = c.paths.Queue() + "/" + names[0]
			return "", nil
		default:
			c.place = c.paths.Queue() + "/" + names[mine]
			return c.paths.Queue() + "/" + names[mine-1], nil
		}
	}
}

// Withdraw leaves the queue.
func (c *Candidate) Withdraw(ctx context.Context) error {
	if c.place == "" {
		return nil
	}
	_, err := call(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.s.conn.Delete(c.place, -1) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("leave the queue: %w", err)
	}
	c.place = ""
	return nil
}

// inOrder sorts places by their sequence numbers, and drops what is none.
func inOrder(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := sequence(n); return !ok })
	slices.SortFunc(names, func(a, b string) int {
		na, _ := sequence(a)
		nb, _ := sequence(b)
		return cmp.Compare(na, nb)
	})
	return names
}

// sequence is the number that the server gave to a place.
func sequence(name string) (int64, bool) {
	_, digits, ok := strings.Cut(name, placeMark)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}
