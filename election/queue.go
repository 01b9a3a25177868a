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

	"understudy/supervisor/printable"
)

const (
	placeMark    = "-n_"
	priorityMark = "-p"
)

// queue is our place in the queue of candidates.
type queue struct {
	s   *Session
	dir string

	mark string // the prefix of our places' names: the session's, so that we find those of its earlier candidate

	priority int             // our place is ahead of lower ones
	place    string          // our znode
	left     bool            // we have no place in the queue
	nobodys  map[string]bool // places that no session owns, since a restore has made them, or whose node sends no heartbeats
}

// inherit takes over the place of another candidate of the session, if it had joined.
func (q *queue) inherit(joined bool, place string) {
	q.place, q.left = place, q.left && !joined
}

// reachHead waits until we are the first in the queue. Each candidate watches only its predecessor, so a failover costs the
// same few requests whatever the number of standbys.
func (q *queue) reachHead(ctx context.Context, held func(), check func(context.Context) error) error {
	for again := (pacing{}); ; {
		ahead, err := q.predecessor(ctx)
		if err == nil && ahead == "" {
			return nil
		}
		var v view
		if err == nil {
			v, err = q.s.getWIfThere(ctx, ahead)
		}
		switch {
		case err == nil && v.exists && v.stat.EphemeralOwner == 0:
			q.s.log.Warn("skipping a place in the queue that belongs to no session", "path", ahead)
			q.skip(ahead)
		case err == nil && v.exists:
			held()
			if err = check(ctx); err == nil {
				err = q.awaitPlace(ctx, ahead, v)
			}
		case err == nil || unknown(err):
			err = again.wait(ctx, q.s.client, err)
		default:
			err = fmt.Errorf("join the queue: %w", err)
		}
		if err != nil {
			return err
		}
	}
}

// awaitPlace waits until something has become of the place ahead of us. One whose node sends no heartbeats is skipped.
func (q *queue) awaitPlace(ctx context.Context, ahead string, v view) error {
	var beat *beat
	if n, err := decode[Node](v.data); err == nil && printable.IsName(n.Node) {
		beat = q.s.beats.watch(beatOf{n.Node, v.stat.EphemeralOwner})
	}
	defer beat.leave()
	select {
	case <-beat.found():
		q.s.log.Info("skipping a place in the queue whose node sends no heartbeats", "path", ahead)
		q.skip(ahead)
	case <-v.changed:
	case <-q.s.Resumed():
	case <-q.s.Ended():
		return q.s.Over()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (q *queue) skip(place string) {
	if q.nobodys == nil {
		q.nobodys = map[string]bool{}
	}
	q.nobodys[place] = true
}

// predecessor returns the place just ahead of us, without those that no session owns. It joins the queue if we are not in it.
func (q *queue) predecessor(ctx context.Context) (string, error) {
	for synced := false; ; {
		names, err := q.s.children(ctx, q.dir)
		if err != nil {
			return "", err
		}
		names = inOrder(names)
		place := slices.IndexFunc(names, func(n string) bool { return q.owns(n) && rank(n) == q.priority })
		for i, n := range names {
			if i != place && q.owns(n) { // of another priority, or a second one: we would wait behind ourselves
				if err := q.s.delete(ctx, q.dir+"/"+n); err != nil {
					return "", err
				}
			}
		}
		switch {
		case place >= 0:
			q.place, q.left = q.dir+"/"+names[place], false
			for place--; place >= 0; place-- {
				if ahead := q.dir + "/" + names[place]; !q.owns(names[place]) && !q.nobodys[ahead] {
					return ahead, nil
				}
			}
			return "", nil
		case !synced: // a place whose creation was not answered may not be visible yet
			synced = true
			if err := q.s.sync(ctx, q.dir); err != nil {
				return "", err
			}
		default:
			q.place, q.left, synced = "", false, false
			err := q.s.create(ctx, q.dir+"/"+q.mark+q.rank()+placeMark, encode(q.s.cfg.Node), zk.FlagEphemeral|zk.FlagSequence)
			if err != nil {
				return "", err
			}
		}
	}
}

func (q *queue) owns(place string) bool {
	name, ours := strings.CutPrefix(place, q.mark)
	return ours && strings.HasPrefix(name, "-")
}

// leave deletes all our places.
func (q *queue) leave(ctx context.Context) error {
	if q.left {
		return nil
	}
	err := repeat(ctx, q.s.client, func() error {
		if err := q.s.sync(ctx, q.dir); err != nil {
			return err
		}
		names, err := q.s.children(ctx, q.dir)
		if errors.Is(err, zk.ErrNoNode) { // deleted by hand
			return nil
		}
		for _, n := range names {
			if err == nil && q.owns(n) {
				err = q.s.delete(ctx, q.dir+"/"+n)
			}
		}
		return err
	})
	if err == nil {
		q.place, q.left = "", true
	}
	return err
}

// rank puts our priority into a place's name: the place goes ahead of all lower ones, in any order of arrival.
func (q *queue) rank() string {
	if q.priority == 0 {
		return ""
	}
	return priorityMark + strconv.Itoa(q.priority)
}

// rank is the priority in a place's name.
func rank(name string) int {
	front, _, _ := strings.Cut(name, placeMark)
	_, digits, _ := strings.Cut(front, priorityMark)
	p, _ := strconv.Atoi(digits)
	return p
}

// inOrder sorts places by their priorities, then by their sequence numbers. Other names are dropped.
func inOrder(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := sequence(n); return !ok })
	slices.SortFunc(names, func(a, b string) int {
		na, _ := sequence(a)
		nb, _ := sequence(b)
		// Only a znode made by hand can tie, and all nodes sort it alike.
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(na, nb), cmp.Compare(a, b))
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
