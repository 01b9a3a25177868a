package election

import "context"

// mostInTurn is how many calls of a session are under way at once for which many services have no hurry: what follows them, a heartbeat
// above all, has to wait for their answers.
const mostInTurn = 128

type turn struct{}

// InTurn has the calls that are made with this context wait for their turn, at most until it ends, whether or not the calls themselves do.
// P1: what tells an active node that its lock is gone does not wait while heartbeats are acknowledged. P5: nor does what a breadcrumb has
// to say. P6: nor does what gives a lock back.
func InTurn(ctx context.Context) context.Context { return context.WithValue(ctx, turn{}, ctx) }

// awaitTurn waits for a turn, where the context asks for that.
func (c *client) awaitTurn(ctx context.Context) (done func(), err error) {
	waiting, inTurn := ctx.Value(turn{}).(context.Context)
	if !inTurn {
		return func() {}, nil
	}
	done = func() { <-c.turns }
	select {
	case c.turns <- struct{}{}: // whether or not waiting has ended
		return done, nil
	default:
	}
	select {
	case c.turns <- struct{}{}:
		return done, nil
	case <-c.lease.Ended():
		return nil, c.lease.Over()
	case <-waiting.Done():
		return nil, context.Cause(waiting)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
