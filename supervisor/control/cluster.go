package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

// Cluster is a connection to all services below one root.
type Cluster struct {
	conn *zk.Conn
	root string
	acl  []zk.ACL // of what is created
	auth *election.Auth
}

// Open connects to ZooKeeper. The Cluster is to be closed.
func Open(ctx context.Context, cfg election.Config) (*Cluster, error) {
	conn, err := election.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Cluster{conn, cfg.Root, election.ACL(cfg), cfg.Auth}, nil
}

// Close ends the connection.
func (c *Cluster) Close() { c.conn.Close() }

// ErrUnknown is what every UnknownError is.
var ErrUnknown = errors.New("unknown")

// UnknownError says that there is no such service or node, and which ones there are.
type UnknownError struct {
	Kind, Name string
	Known      []string
}

func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no %s %q: there is none yet", e.Kind, e.Name)
	}
	return fmt.Sprintf("no %s %q; there is: %s", e.Kind, e.Name, strings.Join(e.Known, ", "))
}

// Is makes it ErrUnknown.
func (*UnknownError) Is(target error) bool { return target == ErrUnknown }

// znode is a znode as it was read, there or not.
type znode struct {
	exists bool
	data   []byte
	stat   zk.Stat
}

// ask bounds a call of the client, which knows no context. What comes too late is dropped: the call ends with the client
// at the latest.
func ask[T any](ctx context.Context, what string, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := f()
		got <- answer{v, err}
	}()
	select {
	case a := <-got:
		if errors.Is(a.err, zk.ErrNoAuth) {
			return a.value, fmt.Errorf("%s: ZooKeeper wants credentials for that; name the config that has them with --config: %w", what, a.err)
		}
		if a.err != nil {
			return a.value, fmt.Errorf("%s: %w", what, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s: no answer from ZooKeeper: %w", what, context.Cause(ctx))
	}
}

// again is how soon a question is repeated whose answer was lost with the connection.
const again = 50 * time.Millisecond

// lost tells whether an answer was lost, and another server may give it.
func lost(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved) ||
		errors.Is(err, zk.ErrNoServer)
}

// insist asks for what changes nothing until it is answered: the server that we speak to may die, or lose its leader.
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

// backOff pauses before a request is repeated, the longer the more often that was done: not at all before the first two.
func backOff(ctx context.Context, tries int) error {
	if tries < 2 {
		return nil
	}
	pause := time.NewTimer(again << min(tries-2, 4))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Cluster) read(ctx context.Context, path string) (znode, error) {
	return insist(ctx, "read "+path, func() (znode, error) {
		data, stat, err := c.conn.Get(path)
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
func (c *Cluster) children(ctx context.Context, path string) ([]string, error) {
	return insist(ctx, "list "+path, func() ([]string, error) {
		names, _, err := c.conn.Children(path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		slices.Sort(names)
		return names, nil
	})
}

// services lists the services asked for: all when none is named.
func (c *Cluster) services(ctx context.Context, asked []string) ([]string, error) {
	all, err := c.children(ctx, election.ServicesDir(c.root))
	if err != nil || len(asked) == 0 {
		return all, err
	}
	for _, name := range asked {
		if !slices.Contains(all, name) {
			return nil, &UnknownError{"service", name, all}
		}
	}
	return asked, nil
}

// atOnce is how many requests may be under way.
const atOnce = 64

// all calls f for 0 to n-1, many at a time: what is asked together is answered in few round trips.
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
