package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// Owe tells the guardians how to undo what the tree's processes are going to do beside themselves, and returns when both know. From then on
// they undo it when its lease has ended, once the tree is dead, and give the release to the session closer only after that.
func (t *Tree) Owe(ctx context.Context, note []byte) error {
	if err := t.owe(ctx, note); err != nil {
		return fmt.Errorf("tell the guardians how to undo what is done in tree %s: %w", t.id.Name, err)
	}
	return nil
}

func (t *Tree) owe(ctx context.Context, note []byte) error {
	if len(note) > wire.MaxPacket/2 {
		return wire.ErrPacketTooLarge
	}
	g := t.guard.guardians
	if err := g.renew(ctx, guard.SpeaksEffects); err != nil {
		return err
	}
	return g.ask(ctx, func() (uint64, error) { return t.entry.Owe(wire.Now(), slices.Clone(note)) })
}

// Settle tells the guardians that what the dead tree's processes did is undone; or that this process keeps that for its next session.
func (t *Tree) Settle(undone bool) {
	g := t.guard.guardians
	defer g.lock()()
	t.entry.Settle(undone)
}

// renewLimit bounds the replacing of both guardians.
const renewLimit = 10 * time.Second

var errNotRenewed = errors.New("guardians of an older version were not replaced in time")

// renew replaces guardians that do not speak a version, one after the other: those of a former image of this process may be older.
func (g *guardians) renew(ctx context.Context, version int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, renewLimit, errNotRenewed)
	defer cancel()
	var asked *guardianProcess
	for {
		unlock := g.lock()
		changed := g.pair.Questions.Changed()
		old := slices.IndexFunc(g.at[:], func(s *guardianProcess) bool { return s == nil || s.speaks < version })
		if old >= 0 && g.at[old] != nil && g.at[old] != asked && g.pair.Replace(old) {
			asked = g.at[old]
		}
		unlock()
		if old < 0 {
			return nil
		}
		select {
		case <-changed:
		case <-g.stopped:
			return ErrStopped
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
