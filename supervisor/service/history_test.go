package service

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
)

// journalctl -p warning has each takeover; a switchover is none, though the node that gave the lock back has not written its end yet.
func TestATakeoverIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		var log bytes.Buffer
		h := history{log: hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true})}
		zk.session(func(ctx context.Context, s *election.Session) error {
			c, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			for token, proof := range []election.Proof{election.NoBreadcrumb, election.NoBreadcrumb, "grace"} {
				e := newEntry(int64(token))
				now := time.Now()
				least, most := now.Add(-4*time.Second), now.Add(-6*time.Second)
				e.proof, e.previous = proof, election.Ending{Min: &most, Max: &least}
				if proof.Fenced() {
					e.FenceMs = 2000
				}
				e.noteStart()
				if token < 2 {
					e.noteReady(0)
					e.drainReadiness()
				}
				if err := h.record(ctx, c, &e, e.Activation); err != nil {
					return err
				}
				if token < 2 && log.Len() > 0 {
					t.Errorf("activation %d: %s", token, &log)
				}
				time.Sleep(time.Second)
				e.noteReady(0)
				e.drainReadiness()
				h.tellGap(&e)
				h.tellGap(&e)
			}
			return nil
		})
		want := `[WARN]  took over without a switchover: previous=a proof=grace proof_took=2s token=2` + "\n" +
			`[INFO]  ready after a takeover: previous=a nothing_ran="5s to 7s" token=2`
		if got := strings.TrimSpace(log.String()); got != want {
			t.Errorf("%s, not\n%s", got, want)
		}
	})
}

// Where ZooKeeper takes long, as when many services move at once, the node that gave the lock back still says why itself.
func TestAnEndIsWrittenThoughZooKeeperIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		zk.timeout, zk.latency = 8*time.Second, 200*time.Millisecond
		h := history{log: hclog.NewNullLogger()}
		zk.session(func(ctx context.Context, s *election.Session) error {
			c, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			e, next := newEntry(1), newEntry(2)
			e.proof, next.proof = election.NoBreadcrumb, election.NoBreadcrumb
			e.noteStart()
			if err := h.record(ctx, c, &e, e.Activation); err != nil {
				return err
			}
			h.noteEnd(&e, election.SwitchAsked)
			h.noteProved(&e)
			next.noteStart()
			if err := h.record(ctx, c, &next, next.Activation); err != nil {
				return err
			}
			h.recordEnd(ctx, c, &e, config.Moves{}, election.SwitchAsked)
			past, err := c.History.Past(ctx, 2)
			if err == nil && past[0].Reason != election.SwitchAsked {
				t.Errorf("it ended: %s", past[0].Reason)
			}
			return err
		})
	})
}

func TestDownTimeIsAsKnown(t *testing.T) {
	now := time.Now()
	at := func(before time.Duration) *time.Time { ago := now.Add(-before); return &ago }
	for want, lost := range map[string]election.Activation{
		"42ms":        {EndMin: at(42 * time.Millisecond), EndMax: at(42 * time.Millisecond)},
		"4s to 6s":    {EndMin: at(6 * time.Second), EndMax: at(4 * time.Second)},
		"at least 4s": {EndMax: at(4 * time.Second)},
		"unknown":     {},
		"0s":          {EndMin: at(-time.Second), EndMax: at(-time.Second)},
	} {
		if got := downTime(lost, election.Activation{Ready: &now}); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A program that crashes and is started again in place was down meanwhile, and one that failed before it was ready was so all the time. What is
// undone after the last process takes time in which nothing runs, too.
func TestAnActivationTellsHowLongItWasDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, e := history{}, newEntry(7)
		began := time.Now()
		e.noteStarting()
		e.noteReady(0)
		time.Sleep(time.Minute)
		e.noteCleared()
		fell := time.Now()
		e.drainReadiness()
		if e.DownSince == nil || !e.DownSince.Equal(fell) {
			t.Errorf("%+v", e.Activation)
		}
		time.Sleep(8 * time.Second)
		e.noteStarting()
		e.noteReady(0)
		if e.drainReadiness(); e.DownSince != nil || e.Restarts != 1 || e.DownMs != 8000 || !e.Ready.Equal(began) {
			t.Errorf("%+v", e.Activation)
		}
		time.Sleep(time.Minute)
		e.noteCleared()
		time.Sleep(2 * time.Second)
		e.noteStarting()
		time.Sleep(time.Second)
		e.noteCleared()
		died := time.Now()
		time.Sleep(5 * time.Second) // its effects are undone
		e.noteStarting()            // but there is no such program any more
		e.noteNotStarted()
		e.noteCleared()
		h.noteEnd(&e, election.ChildFailed)
		h.noteProved(&e)
		if o := h.takeUnwritten(); o.entry.DownMs != 11000 || o.entry.Restarts != 1 || !o.end.Equal(died) {
			t.Errorf("%+v", o)
		}
	})
}
