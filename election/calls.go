package election

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"understudy/election/jute"
)

// errUnanswered is a call that no server answered: it may have been carried out, or may still be.
var errUnanswered = errors.New("no answer from ZooKeeper")

// coded is err, with a server's code that the client library has no name for as that code: the library gives it as a text alone.
func coded(err error) error {
	if err == nil {
		return nil
	}
	number, is := strings.CutPrefix(err.Error(), "unknown error: ")
	code, wrong := strconv.ParseInt(number, 10, 32)
	if !is || wrong != nil {
		return err
	}
	return jute.Code(code)
}

// refuses reports whether a code says that a request was not carried out, and would not be if it were repeated. Those above -100 are
// failures of the server itself, which may come after it has carried out the request.
func refuses(code jute.Code) bool {
	switch code {
	case jute.SessionMoved, jute.RequestTimeout, jute.ThrottledOp:
		return false
	}
	return code <= jute.APIError || code == jute.BadArguments || code == jute.Unimplemented
}

// refused reports whether a server's answer is one that no fresh read explains.
func refused(err error) bool {
	code, is := errors.AsType[jute.Code](err)
	return is && refuses(code) || errors.Is(err, zk.ErrNoAuth)
}

// unknown reports whether the outcome of a call is unknown. Only a server's code is an answer.
func unknown(err error) bool {
	return errors.Is(err, errUnanswered) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrClosing) ||
		errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved)
}

// answered reports whether err is a server's own code, or the client's for a request that it did not send.
func answered(err error) bool {
	codes := []error{zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty,
		zk.ErrSessionExpired, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrInvalidPath}
	code, is := errors.AsType[jute.Code](err)
	return is && refuses(code) || slices.ContainsFunc(codes, func(c error) bool { return errors.Is(err, c) })
}

// client sends the requests of one session. Each is bounded; its outcome is known, or known to be unknown.
type client struct {
	conn   *zk.Conn
	dialer *dialer
	link   *link
	lease  *Lease
	acl    []zk.ACL
	turns  chan struct{} // holds one for each call in turn that is under way
}

// errTooLate is errUnanswered for a call whose time is over.
var errTooLate = fmt.Errorf("%w in time", errUnanswered)

// call is within, for as long as an answer may take.
func call[T any](ctx context.Context, c *client, f func() (T, error)) (T, error) {
	v, err := within(ctx, c, c.lease.LeaseLength(), f)
	if errors.Is(err, errTooLate) {
		c.dialer.kick() // another connection can repeat the reads that this one lost
	}
	return v, err
}

// within bounds a call of zk's client, which knows no context. A late answer is dropped. The call's goroutine ends with zk's client at
// the latest, and sends nothing unless it began in time.
func within[T any](ctx context.Context, c *client, longest time.Duration, f func() (T, error)) (T, error) {
	var none T
	done, err := c.awaitTurn(ctx)
	if err != nil {
		return none, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	var settled atomic.Bool // whether it is sent
	go func() {
		defer done() // without a connection that may be much later
		if settled.CompareAndSwap(false, true) {
			v, err := f()
			got <- answer{v, err}
		}
	}()
	defer settled.Store(true)
	limit := time.NewTimer(longest)
	defer limit.Stop()
	select {
	case a := <-got:
		a.err = coded(a.err)
		if errors.Is(a.err, zk.ErrSessionExpired) {
			c.lease.Expire(ErrExpired)
		}
		if a.err == nil || answered(a.err) {
			c.link.answered()
		}
		if a.err != nil && !answered(a.err) {
			return a.value, fmt.Errorf("%w: %w", errUnanswered, a.err)
		}
		return a.value, a.err
	case <-c.lease.Ended():
		return none, fmt.Errorf("%w: %w", errUnanswered, c.lease.Over())
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", errUnanswered, context.Cause(ctx))
	case <-limit.C:
		return none, errTooLate
	}
}

func (c *client) create(ctx context.Context, path string, data []byte, flags int32) error {
	_, err := call(ctx, c, func() (string, error) { return c.conn.Create(path, data, flags, c.acl) })
	return err
}

func (c *client) set(ctx context.Context, path string, data []byte, version int32) error {
	_, err := call(ctx, c, func() (*zk.Stat, error) { return c.conn.Set(path, data, version) })
	return err
}

// replace replaces another znode of that version by an ephemeral of ours.
func (c *client) replace(ctx context.Context, path string, data []byte, version int32) error {
	_, err := c.multi(ctx, &zk.DeleteRequest{Path: path, Version: version},
		&zk.CreateRequest{Path: path, Data: data, Acl: c.acl, Flags: zk.FlagEphemeral})
	return err
}

// own makes an ephemeral of this session, and replaces one that a previous session of this node left.
func (c *client) own(ctx context.Context, path string, data []byte) error {
	asSeen := func() error {
		v, err := c.existsW(ctx, path)
		switch {
		case err != nil:
			return err
		case !v.exists:
			return c.create(ctx, path, data, zk.FlagEphemeral)
		case v.stat.EphemeralOwner == c.link.ID():
			return c.set(ctx, path, data, -1)
		}
		return c.replace(ctx, path, data, -1)
	}
	err := asSeen()
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) { // the server that answered the read is behind
		if err := c.sync(ctx, path); err != nil {
			return err
		}
		err = asSeen()
	}
	return err
}

// delete deletes a znode of any version; it may be missing.
func (c *client) delete(ctx context.Context, path string) error {
	_, err := call(ctx, c, func() (struct{}, error) { return struct{}{}, c.conn.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// watchChildren lists a folder, and watches it.
func (c *client) watchChildren(ctx context.Context, path string) ([]string, <-chan zk.Event, error) {
	type listing struct {
		names   []string
		changed <-chan zk.Event
	}
	l, err := call(ctx, c, func() (listing, error) {
		names, _, changed, err := c.conn.ChildrenW(path)
		return listing{names, changed}, err
	})
	return l.names, l.changed, err
}

func (c *client) children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, c, func() ([]string, error) {
		names, _, err := c.conn.Children(path)
		return names, err
	})
}

// multi runs a transaction. failed is the operation that made it fail, or -1.
func (c *client) multi(ctx context.Context, ops ...any) (failed int, err error) {
	_, failed, err = c.transact(ctx, ops...)
	return failed, err
}

func (c *client) transact(ctx context.Context, ops ...any) (results []zk.MultiResponse, failed int, err error) {
	results, err = call(ctx, c, func() ([]zk.MultiResponse, error) { return c.conn.Multi(ops...) })
	for i, r := range results {
		if err != nil && errors.Is(err, coded(r.Error)) {
			return nil, i, err
		}
	}
	return results, -1, err
}

// view is a znode as we read it, with a watch on it.
type view struct {
	exists  bool
	data    []byte
	stat    zk.Stat
	changed <-chan zk.Event
}

func seen(data []byte, stat *zk.Stat, changed <-chan zk.Event, err error) (view, error) {
	if errors.Is(err, zk.ErrNoNode) {
		return view{}, nil
	}
	if err != nil {
		return view{}, err
	}
	return view{true, data, *stat, changed}, nil
}

// get reads a znode without a watch; it may be missing.
func (c *client) get(ctx context.Context, path string) (view, error) {
	return call(ctx, c, func() (view, error) {
		data, stat, err := c.conn.Get(path)
		return seen(data, stat, nil, err)
	})
}

// getStat reads a znode's stat. A missing znode is an error.
func (c *client) getStat(ctx context.Context, path string) (zk.Stat, error) {
	v, err := c.get(ctx, path)
	if err == nil && !v.exists {
		err = zk.ErrNoNode
	}
	return v.stat, err
}

// exists reads a znode's stat, which needs no permission.
func (c *client) exists(ctx context.Context, path string) (view, error) {
	return call(ctx, c, func() (view, error) {
		exists, stat, err := c.conn.Exists(path)
		if err != nil {
			return view{}, err
		}
		return view{exists: exists, stat: *stat}, nil
	})
}

// getW reads a znode and watches it; it may be missing.
func (c *client) getW(ctx context.Context, path string) (view, error) {
	return call(ctx, c, func() (view, error) {
		for {
			data, stat, changed, err := c.conn.GetW(path)
			if err == nil {
				return view{true, data, *stat, changed}, nil
			}
			if !errors.Is(err, zk.ErrNoNode) {
				return view{}, err
			}
			exists, _, changed, err := c.conn.ExistsW(path)
			if err != nil || !exists {
				return view{changed: changed}, err
			}
		}
	})
}

// existsW is getW for a znode that probably exists and whose data does not matter: one request.
func (c *client) existsW(ctx context.Context, path string) (view, error) {
	return call(ctx, c, func() (view, error) {
		exists, stat, changed, err := c.conn.ExistsW(path)
		if err != nil {
			return view{}, err
		}
		return view{exists: exists, stat: *stat, changed: changed}, nil
	})
}

// getWIfThere is existsW for a znode that never comes back: a watch for one that is gone already would stay with its server.
func (c *client) getWIfThere(ctx context.Context, path string) (view, error) {
	return call(ctx, c, func() (view, error) { return seen(c.conn.GetW(path)) })
}

// await waits for a watch, a reconnect (a watch can be lost with its connection), or the end.
func (c *client) await(ctx context.Context, watches ...<-chan zk.Event) error {
	watches = append(watches, nil, nil, nil)
	select {
	case <-watches[0]:
	case <-watches[1]:
	case <-watches[2]:
	case <-c.link.Resumed():
	case <-c.lease.Ended():
		return c.lease.Over()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// ensure makes folders that are missing, all of them in one transaction.
func (c *client) ensure(ctx context.Context, paths []string) error {
	for again := (pacing{}); ; {
		missing, err := c.missing(ctx, paths)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if err == nil {
			var failed int
			if failed, err = c.multi(ctx, missing...); err == nil {
				return nil
			}
			if failed >= 0 && !errors.Is(err, zk.ErrNodeExists) {
				return fmt.Errorf("create %s: %w", missing[failed].(*zk.CreateRequest).Path, err)
			}
		}
		if !unknown(err) && !errors.Is(err, zk.ErrNodeExists) { // another node may have been quicker, or our own unanswered request
			return fmt.Errorf("create %s: %w", paths[0], err)
		}
		if err := again.wait(ctx, c, err); err != nil {
			return err
		}
		if err := c.sync(ctx, paths[0]); err != nil && !unknown(err) { // this server may not have seen yet that another node made it
			return fmt.Errorf("create %s: %w", paths[0], err)
		}
	}
}

// missing asks for all paths at once.
func (c *client) missing(ctx context.Context, paths []string) ([]any, error) {
	there, errs := make([]bool, len(paths)), make([]error, len(paths))
	var asked sync.WaitGroup
	for i, path := range paths {
		asked.Go(func() {
			v, err := c.exists(ctx, path)
			there[i], errs[i] = v.exists, err
		})
	}
	asked.Wait()
	var missing []any
	for i, path := range paths {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if there[i] {
			continue
		}
		var data []byte
		if strings.HasSuffix(path, "/"+controlName) { // other programs may read it, and expect an object
			data = encode(Control{})
		}
		missing = append(missing, &zk.CreateRequest{Path: path, Data: data, Acl: c.acl})
	}
	return missing, nil
}

// parents lists a path and all paths above it, the topmost first.
func parents(p string) []string {
	var all []string
	for p != "/" && p != "." && p != "" {
		all = append([]string{p}, all...)
		p = path.Dir(p)
	}
	return all
}

// SessionName prints a session id as ZooKeeper's own tools do.
func SessionName(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// quiet drops the client's log: the session itself logs all that matters.
type quiet struct{ log hclog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Trace(strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// sync makes our server catch up with the leader: later reads see the present state, and a request whose answer was lost has been
// carried out by then, or never will be.
func (c *client) sync(ctx context.Context, path string) error {
	_, err := call(ctx, c, func() (string, error) { return c.conn.Sync(path) })
	return err
}
