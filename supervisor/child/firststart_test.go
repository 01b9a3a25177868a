package child

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// A guardian of a node of this name is that late; see TestMain.
const (
	slowNode = "child-test-slow"
	muteNode = "child-test-mute"
	slowness = startLimit + time.Second
)

// A machine that boots may be too busy for anything: the first guardians are waited for longer than one that replaces another.
func TestTheFirstGuardiansMayTakeTheirTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g, err := StartGuard(ctx, GuardConfig{Container: box.Container{Kind: box.KindWalk}, Name: slowNode})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	cancel()
	must.Report(t, g.Run(ctx))
}

// A supervisor that is to end while it waits for its first guardians ends.
func TestNobodyWaitsForGuardiansThatAreNotWanted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	unwanted := errors.New("unwanted")
	began := time.Now()
	time.AfterFunc(100*time.Millisecond, func() { cancel(unwanted) })
	_, err := StartGuard(ctx, GuardConfig{Container: box.Container{Kind: box.KindWalk}, Name: muteNode})
	if took := time.Since(began); !errors.Is(err, unwanted) || took >= firstLimit {
		t.Errorf("%v, after %v", err, took)
	}
}
