package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
)

// errUnanswered is a call that no server answered: it may have been carried out, or may be yet.
var errUnanswered = errors.New("no answer from ZooKeeper")

// unknown tells whether the outcome of a call is unknown. Only a server's code is an answer.
func unknown(err error) bool {
	return errors.Is(err, errUnanswered) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrClosing) ||
		errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved)
}

// answered tells whether err is a server's own code, or the client's for what it did not send.
func answered(err error) bool {
	for _, code := range []error{zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
		zk.ErrNotEmpty, zk.ErrSessionExpired, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrInvalidPath} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// call bounds a client call, which knows no context. What comes too late is dropped: the client's goroutine ends with the
// client at the latest, and has nothing sent that it did not begin with in time.
func call[T any](ctx context.Context, s *Session, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	var settled atomic.Bool // whether it is sent
	go func() {
		if settled.CompareAndSwap(false, true) {
			v, err := f()
			got <- answer{v, err}
		}
	}()
	defer settled.Store(true)
	limit := time.NewTimer(answerLimit(cmp.Or(s.Timeout(), s.cfg.Timeout)))
	defer limit.Stop()
	var none T
	select {
	case a := <-got:
		if errors.Is(a.err, zk.ErrSessionExpired) {
			s.Expire(ErrExpired)
		}
		if a.err == nil || answered(a.err) {
			s.answeredNow()
		}
		if a.err != nil && !answered(a.err) {
			return a.value, fmt.Errorf("%w: %w", errUnanswered, a.err)
		}
		return a.value, a.err
	case <-s.ended:
		return none, fmt.Errorf("%w: %w", errUnanswered, s.Over())
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", errUnanswered, context.Cause(ctx))
	case <-limit.C:
		s.dialer.kick() // what is lost on this connection can be read again on another
		return none, errUnanswered
	}
}

func (s *Session) create(ctx context.Context, path string, data []byte, flags int32) error {
	_, err := call(ctx, s, func() (string, error) { return s.conn.Create(path, data, flags, s.acl) })
	return err
}

func (s *Session) set(ctx context.Context, path string, data []byte, version int32) error {
	_, err := call(ctx, s, func() (*zk.Stat, error) { return s.conn.Set(path, data, version) })
	return err
}

func (s *Session) children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, s, func() ([]string, error) {
		names, _, err := s.conn.Children(path)
		return names, err
	})
}

// multi runs a transaction. failed is the operation that made it fail, or -1.
func (s *Session) multi(ctx context.Context, ops ...any) (failed int, err error) {
	_, failed, err = s.transact(ctx, ops...)
	return failed, err
}

func (s *Session) transact(ctx context.Context, ops ...any) (results []zk.MultiResponse, failed int, err error) {
	results, err = call(ctx, s, func() ([]zk.MultiResponse, error) { return s.conn.Multi(ops...) })
	for i, r := range results {
		if err != nil && errors.Is(err, r.Error) {
			return nil, i, err
		}
	}
	return results, -1, err
}

// stat reads what the server knows of a znode besides its data.
func (s *Session) stat(ctx context.Context, path string) (zk.Stat, error) {
	return call(ctx, s, func() (zk.Stat, error) {
		_, stat, err := s.conn.Get(path)
		if err != nil {
			return zk.Stat{}, err
		}
		return *stat, nil
	})
}

// read reads a znode, there or not, and does not watch it.
func (s *Session) read(ctx context.Context, path string) (view, error) {
	return call(ctx, s, func() (view, error) {
		data, stat, err := s.conn.Get(path)
		if errors.Is(err, zk.ErrNoNode) {
			return view{}, nil
		}
		if err != nil {
			return view{}, err
		}
		return view{exists: true, data: data, stat: *stat}, nil
	})
}

// glance tells what is known of a znode besides its data, for which nobody needs a right.
func (s *Session) glance(ctx context.Context, path string) (view, error) {
	return call(ctx, s, func() (view, error) {
		exists, stat, err := s.conn.Exists(path)
		if err != nil {
			return view{}, err
		}
		return view{exists: exists, stat: *stat}, nil
	})
}

// view is a znode as it was read, with a watch on it.
type view struct {
	exists  bool
	data    []byte
	stat    zk.Stat
	changed <-chan zk.Event
}

// look reads a znode, there or not, and watches it.
func (s *Session) look(ctx context.Context, path string) (view, error) {
	return call(ctx, s, func() (view, error) {
		for {
			data, stat, changed, err := s.conn.GetW(path)
			if err == nil {
				return view{true, data, *stat, changed}, nil
			}
			if !errors.Is(err, zk.ErrNoNode) {
				return view{}, err
			}
			exists, _, changed, err := s.conn.ExistsW(path)
			if err != nil || !exists {
				return view{changed: changed}, err
			}
		}
	})
}

// probe is look for a znode that is expected to be there and whose data does not matter: one request.
func (s *Session) probe(ctx context.Context, path string) (view, error) {
	return call(ctx, s, func() (view, error) {
		exists, stat, changed, err := s.conn.ExistsW(path)
		if err != nil {
			return view{}, err
		}
		return view{exists: exists, stat: *stat, changed: changed}, nil
	})
}

// shadow is probe for a znode that never comes back: a watch for one that is gone already would stay with its server.
func (s *Session) shadow(ctx context.Context, path string) (view, error) {
	return call(ctx, s, func() (view, error) {
		data, stat, changed, err := s.conn.GetW(path)
		if errors.Is(err, zk.ErrNoNode) {
			return view{}, nil
		}
		if err != nil {
			return view{}, err
		}
		return view{true, data, *stat, changed}, nil
	})
}

// await waits for a watch, a reconnect (a watch is but a hint, and may be lost with its connection), or the end.
func (s *Session) await(ctx context.Context, watches ...<-chan zk.Event) error {
	resumed := s.Resumed()
	var first, second, third <-chan zk.Event
	if len(watches) > 0 {
		first = watches[0]
	}
	if len(watches) > 1 {
		second = watches[1]
	}
	if len(watches) > 2 {
		third = watches[2]
	}
	select {
	case <-first:
	case <-second:
	case <-third:
	case <-resumed:
	case <-s.ended:
		return s.Over()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// ensure makes folders that are missing, all of them in one transaction.
func (s *Session) ensure(ctx context.Context, paths []string) error {
	for again := (pacing{}); ; {
		missing, err := s.missing(ctx, paths)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if err == nil {
			var failed int
			if failed, err = s.multi(ctx, missing...); err == nil {
				return nil
			}
			if failed >= 0 && !errors.Is(err, zk.ErrNodeExists) {
				return fmt.Errorf("create %s: %w", missing[failed].(*zk.CreateRequest).Path, err)
			}
		}
		if !unknown(err) && !errors.Is(err, zk.ErrNodeExists) { // somebody may have been quicker, or we, unanswered
			return fmt.Errorf("create %s: %w", paths[0], err)
		}
		if err := again.wait(ctx, s, err); err != nil {
			return err
		}
		if err := s.sync(ctx, paths[0]); err != nil && !unknown(err) { // what somebody has made may not be seen here yet
			return fmt.Errorf("create %s: %w", paths[0], err)
		}
	}
}

// missing asks for all paths at once.
func (s *Session) missing(ctx context.Context, paths []string) ([]any, error) {
	there, errs := make([]bool, len(paths)), make([]error, len(paths))
	var asked sync.WaitGroup
	for i, path := range paths {
		asked.Go(func() {
			there[i], errs[i] = call(ctx, s, func() (bool, error) {
				exists, _, err := s.conn.Exists(path)
				return exists, err
			})
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
		if strings.HasSuffix(path, "/"+controlName) { // it is read by others too, who may expect an object
			data = encode(Control{})
		}
		missing = append(missing, &zk.CreateRequest{Path: path, Data: data, Acl: s.acl})
	}
	return missing, nil
}

// parents lists a path and all above it, the topmost first.
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

// quiet takes the client's log: what matters is told by the session itself.
type quiet struct{ log hclog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Trace(strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// sync has the server that we speak to catch up with the leader: what holds by now is seen by the reads that follow, and what an
// answer was lost to has been carried out by then, or never is.
func (s *Session) sync(ctx context.Context, path string) error {
	_, err := call(ctx, s, func() (string, error) { return s.conn.Sync(path) })
	return err
}
