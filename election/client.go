package election

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/go-zookeeper/zk"
)

// Connect returns a plain client for reading and for the operator's commands: no lease, no node, no promise. It returns when
// a session is open, or when ctx ends, with the reason why there is none. The caller closes the client.
func Connect(ctx context.Context, cfg Config) (*zk.Conn, error) {
	if cfg.Auth != nil && cfg.Auth.File != "" {
		if now, err := cfg.Auth.Anew(); err == nil {
			cfg.Auth = now
		}
	}
	var stands atomic.Bool
	ready := make(chan struct{})
	d := newDialer(ctx, &cfg, func(handshake) {})
	conn, _, err := zk.Connect(cfg.Servers, sessionTimeout(cfg.Lease), zk.WithDialer(d.open), zk.WithHostProvider(d),
		zk.WithLogger(quiet{cfg.Logger}), zk.WithLogInfo(false), zk.WithEventCallback(func(ev zk.Event) {
			if ev.State == zk.StateHasSession && stands.CompareAndSwap(false, true) {
				close(ready)
			}
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	select {
	case <-ready:
		return conn, nil
	case <-ctx.Done():
		err := d.hosts.trouble()
		d.shutdown()
		conn.Close()
		if _, other := errors.AsType[*NoZooKeeper](err); other {
			return nil, fmt.Errorf("no session with ZooKeeper at %s: %w", strings.Join(cfg.Servers, ", "), err)
		}
		return nil, fmt.Errorf("no ZooKeeper server of %s answers: %w", strings.Join(cfg.Servers, ", "), reason(err))
	}
}

// reason is what the kernel answered to an attempt to connect, which names no server: the last of several would get all the blame. Any
// other error is all that is known, and a file that cannot be read has to be named.
func reason(err error) error {
	_, file := errors.AsType[*fs.PathError](err)
	if why, ok := errors.AsType[syscall.Errno](err); ok && !file {
		return why
	}
	return err
}
