package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// pacing is the growing pause between the repetitions of a request: a loop must not ask ZooKeeper at full speed, whatever the
// answers. The zero value is ready. One loop uses it.
type pacing struct {
	tries    int
	changes  int // attempts that failed because another node had changed the data that we had read
	resumed  int // pauses that a reconnect has ended
	repeated time.Time
}

const (
	shortestPause   = 10 * time.Millisecond
	unansweredPause = 50 * time.Millisecond
	longestPause    = time.Second
	mostResumed     = 3 // a request may be why the connection is lost
)

// wait pauses before a request that failed with err is repeated. After an answer the first repetition follows at once: the data was
// old. After none it waits for the reconnect, or a short while.
func (p *pacing) wait(ctx context.Context, c *client, err error) error {
	if time.Since(p.repeated) > 5*longestPause { // the last wait was successful
		*p = pacing{}
	}
	pause := time.Duration(0)
	if p.tries > 0 {
		pause = min(shortestPause<<min(p.tries-1, 10), longestPause)
	}
	p.tries++
	resumed := (<-chan struct{})(nil)
	if unknown(err) {
		pause = max(pause, unansweredPause)
		if p.resumed < mostResumed {
			resumed = c.link.Resumed()
		}
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	defer func() { p.repeated = time.Now() }()
	select {
	case <-resumed:
		p.resumed++
	case <-timer.C:
	case <-c.lease.Ended():
		return c.lease.Over()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// mostChanges is how often a change between reading and writing counts as chance.
const mostChanges = 10

// passes reports whether a request that failed with err may succeed after a fresh read.
func (p *pacing) passes(err error) bool {
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) {
		p.changes++
		return p.changes <= mostChanges
	}
	return unknown(err)
}

// outcome repeats a request until its outcome is known.
func outcome[T any](ctx context.Context, c *client, f func() (T, error)) (T, error) {
	for again := (pacing{}); ; {
		v, err := f()
		if !unknown(err) {
			return v, err
		}
		if err := again.wait(ctx, c, err); err != nil {
			return v, err
		}
	}
}

// repeat is outcome for a request that only succeeds or fails.
func repeat(ctx context.Context, c *client, f func() error) error {
	_, err := outcome(ctx, c, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// retry repeats a change that relies on data just read, until it succeeds or is impossible.
func retry(ctx context.Context, c *client, f func() error) error {
	for again := (pacing{}); ; {
		err := f()
		if !again.passes(err) {
			return err
		}
		if err := again.wait(ctx, c, err); err != nil {
			return err
		}
	}
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
