package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

const (
	placeMark    = "-n_"
	priorityMark = "-p"
)

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
			v, err = c.s.shadow(ctx, ahead)
		}
		if err == nil && v.exists {
			done := c.s.awaits(v.stat.EphemeralOwner, v.data)
			err = c.s.await(ctx, v.changed)
			if done(); err != nil {
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
		// Of the session, which stands for a service once at a time: what an earlier candidate of it could not take back is found.
		c.guid = strings.TrimPrefix(SessionName(c.s.ID()), "0x")
	}
	for {
		names, err := c.s.children(ctx, c.paths.Queue())
		if err != nil {
			return "", err
		}
		names = inOrder(names)
		// The guid finds a place whose creation was answered to nobody.
		mine := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, c.guid+"-") })
		if mine >= 0 && rank(names[mine]) != c.priority { // it has changed
			c.place = c.paths.Queue() + "/" + names[mine]
			if err := c.Withdraw(ctx); err != nil {
				return "", err
			}
			continue
		}
		switch {
		case mine < 0:
			c.place = ""
			err := c.s.create(ctx, c.paths.Queue()+"/"+c.guid+c.rank()+placeMark, encode(c.s.cfg.Node), zk.FlagEphemeral|zk.FlagSequence)
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
	if c.guid == "" {
		return nil
	}
	if c.place == "" { // its creation may have been answered to nobody
		names, err := c.s.children(ctx, c.paths.Queue())
		if err != nil {
			return fmt.Errorf("leave the queue: %w", err)
		}
		mine := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, c.guid+"-") })
		if mine < 0 {
			return nil
		}
		c.place = c.paths.Queue() + "/" + names[mine]
	}
	_, err := call(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.s.conn.Delete(c.place, -1) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("leave the queue: %w", err)
	}
	c.place = ""
	return nil
}

// rank is how a place tells our priority: ahead of all lower ones, whoever came first.
func (c *Candidate) rank() string {
	if c.priority == 0 {
		return ""
	}
	return priorityMark + strconv.Itoa(c.priority)
}

// rank is the priority that a place tells.
func rank(name string) int {
	front, _, _ := strings.Cut(name, placeMark)
	_, digits, _ := strings.Cut(front, priorityMark)
	p, _ := strconv.Atoi(digits)
	return p
}

// inOrder sorts places by their priorities, then by their sequence numbers, and drops what is none.
func inOrder(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := sequence(n); return !ok })
	slices.SortFunc(names, func(a, b string) int {
		na, _ := sequence(a)
		nb, _ := sequence(b)
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(na, nb), cmp.Compare(a, b)) // a tie is nobody's but a hand's, and all see it alike
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
