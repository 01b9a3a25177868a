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
	for again := (pacing{}); ; {
		ahead, err := c.predecessor(ctx)
		if err == nil && ahead == "" {
			return nil
		}
		var v view
		if err == nil {
			v, err = c.s.shadow(ctx, ahead)
		}
		switch {
		case err == nil && v.exists && v.stat.EphemeralOwner == 0:
			c.s.log.Warn("a place in the queue is no session's, and is passed over", "path", ahead)
			if c.nobodys == nil {
				c.nobodys = map[string]bool{}
			}
			c.nobodys[ahead] = true
		case err == nil && v.exists:
			done := c.s.awaits(v.stat.EphemeralOwner, v.data)
			err = c.s.await(ctx, v.changed)
			done()
		case err == nil || unknown(err):
			err = again.wait(ctx, c.s, err)
		default:
			err = fmt.Errorf("stand in the queue: %w", err)
		}
		if err != nil {
			return err
		}
	}
}

// predecessor tells who is just ahead of us, but for nobody's places, joining the queue at its end when we are not in it.
func (c *Candidate) predecessor(ctx context.Context) (string, error) {
	for synced := false; ; {
		names, err := c.s.children(ctx, c.paths.Queue())
		if err != nil {
			return "", err
		}
		names = inOrder(names)
		place := slices.IndexFunc(names, func(n string) bool { return c.owns(n) && rank(n) == c.priority })
		for i, n := range names {
			if i != place && c.owns(n) { // of another priority, or one too many, behind which we would wait ourselves
				if err := c.leavePlace(ctx, c.paths.Queue()+"/"+n); err != nil {
					return "", err
				}
			}
		}
		switch {
		case place >= 0:
			c.place, c.left = c.paths.Queue()+"/"+names[place], false
			for place--; place >= 0; place-- {
				if ahead := c.paths.Queue() + "/" + names[place]; !c.owns(names[place]) && !c.nobodys[ahead] {
					return ahead, nil
				}
			}
			return "", nil
		case !synced: // a place whose creation was answered to nobody may not be seen yet
			synced = true
			if err := c.s.sync(ctx, c.paths.Queue()); err != nil {
				return "", err
			}
		default:
			c.place, c.left, synced = "", false, false
			err := c.s.create(ctx, c.paths.Queue()+"/"+c.mark()+c.rank()+placeMark, encode(c.s.cfg.Node), zk.FlagEphemeral|zk.FlagSequence)
			if err != nil {
				return "", err
			}
		}
	}
}

// mark begins the names of our places. It is the session's, which stands for a service once at a time: what an earlier candidate
// of it could not take back is found.
func (c *Candidate) mark() string {
	if c.guid == "" {
		c.guid = strings.TrimPrefix(SessionName(c.s.ID()), "0x")
	}
	return c.guid
}

func (c *Candidate) owns(place string) bool {
	name, ours := strings.CutPrefix(place, c.mark())
	return ours && strings.HasPrefix(name, "-")
}

func (c *Candidate) leavePlace(ctx context.Context, path string) error {
	_, err := call(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.s.conn.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// Withdraw leaves the queue: nothing of ours is in it afterwards, behind which others would wait.
func (c *Candidate) Withdraw(ctx context.Context) error {
	if c.left || c.order != Queue && c.guid == "" {
		return nil
	}
	_, err := outcome(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.leaveQueue(ctx) })
	if err != nil {
		return fmt.Errorf("leave the queue: %w", err)
	}
	c.place, c.left = "", true
	return nil
}

func (c *Candidate) leaveQueue(ctx context.Context) error {
	if err := c.s.sync(ctx, c.paths.Queue()); err != nil {
		return err
	}
	names, err := c.s.children(ctx, c.paths.Queue())
	if errors.Is(err, zk.ErrNoNode) { // deleted by hand
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		if c.owns(n) {
			if err := c.leavePlace(ctx, c.paths.Queue()+"/"+n); err != nil {
				return err
			}
		}
	}
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
