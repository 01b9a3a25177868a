package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/wait"
)

// znode is a znode as it was read, there or not.
type znode struct {
	exists bool
	data   []byte
	stat   zk.Stat
}

// ask bounds a call of the client, which knows no context. A late answer is dropped: the call ends with the client at the latest.
func ask[T any](ctx context.Context, what string, f func() (T, error)) (T, error) {
	v, err := wait.Call(ctx, f, nil)
	switch {
	case err == nil:
		return v, nil
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return v, fmt.Errorf("%s: no answer from ZooKeeper: %w", what, err)
	case errors.Is(err, zk.ErrNoAuth):
		return v, fmt.Errorf("%s: ZooKeeper wants the credentials of the nodes for that: "+
			"name the config that has them with --config: %w", what, err)
	}
	return v, fmt.Errorf("%s: %w", what, err)
}

// again is how soon a question is repeated after its answer was lost with the connection.
const again = 50 * time.Millisecond

// lost tells whether an answer was lost, and another server may give it.
func lost(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved) ||
		errors.Is(err, zk.ErrNoServer)
}

// insist repeats a question, which changes nothing, until it is answered: the server may die, or lose its leader.
func insist[T any](ctx context.Context, what string, f func() (T, error)) (T, error) {
	for tries := 2; ; tries++ {
		v, err := ask(ctx, what, f)
		if !lost(err) {
			return v, err
		}
		if over := backOff(ctx, tries); over != nil {
			return v, fmt.Errorf("%w: %w", err, over)
		}
	}
}

// backOff pauses before a request is repeated, each time longer: not at all before the first two tries.
func backOff(ctx context.Context, tries int) error {
	if tries < 2 {
		return nil
	}
	if !wait.For(ctx, again<<min(tries-2, 4)) {
		return context.Cause(ctx)
	}
	return nil
}

// znodes is what is below one root of an ensemble.
type znodes struct {
	conn *zk.Conn
	root string
	acl  []zk.ACL // of what is created
}

func (z znodes) read(ctx context.Context, path string) (znode, error) {
	return insist(ctx, "read "+path, func() (znode, error) {
		data, stat, err := z.conn.Get(path)
		if errors.Is(err, zk.ErrNoNode) {
			return znode{}, nil
		}
		if err != nil {
			return znode{}, err
		}
		return znode{true, data, *stat}, nil
	})
}

// children lists what is below a path, sorted: nothing when the path is not there.
func (z znodes) children(ctx context.Context, path string) ([]string, error) {
	return insist(ctx, "list "+path, func() ([]string, error) {
		names, _, err := z.conn.Children(path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		slices.Sort(names)
		return names, nil
	})
}

// atOnce is how many requests may be under way.
const atOnce = 64

// all calls f for 0 to n-1, many at a time, which takes few round trips.
func all(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	errs := make([]error, n)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-free
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// list reads all znodes below a path, in the order of their names.
func list[T any](ctx context.Context, z znodes, path string, parse func(name string, n znode) T) ([]T, error) {
	names, err := z.children(ctx, path)
	if err != nil {
		return nil, err
	}
	inOrder(names)
	read := make([]znode, len(names))
	err = all(len(names), func(i int) (err error) {
		read[i], err = z.read(ctx, path+"/"+names[i])
		return err
	})
	items := make([]T, 0, len(names))
	for i, n := range read {
		if n.exists { // else it went meanwhile
			items = append(items, parse(names[i], n))
		}
	}
	return items, err
}

// order changes the orders of a service. It loses neither what another operator orders at the same time, nor fields that this
// version does not know.
func (z znodes) order(ctx context.Context, service string, change func(election.Control) (election.Control, bool)) error {
	path := election.Paths{Root: z.root, Service: service}.Control()
	for tries := range patience {
		if err := backOff(ctx, tries); err != nil {
			return err
		}
		n, err := z.read(ctx, path)
		if err != nil {
			return err
		}
		next, changed := change(election.ParseControl(n.data))
		if !changed {
			return nil
		}
		data := next.Merge(n.data)
		_, err = ask(ctx, "write "+path, func() (*zk.Stat, error) {
			if n.exists {
				return z.conn.Set(path, data, n.stat.Version)
			}
			_, err := z.conn.Create(path, data, 0, z.acl)
			return nil, err
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode), lost(err):
			continue // what was written without our knowing is read, or written once more
		case errors.Is(err, zk.ErrNoAuth):
			return err
		}
		return fmt.Errorf("it is unknown whether this was done, ask again: %w", err)
	}
	return fmt.Errorf("the orders of %s change too quickly: nothing is done, try again", service)
}
