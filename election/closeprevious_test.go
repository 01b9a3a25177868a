package election

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// Nobody saw when the programs died: after the last heartbeat, and before the session was closed.
func TestAPreviousSessionIsClosedWithTheEndingThatIsKnown(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release, left := w.leaveAt("a")
		time.Sleep(time.Second)
		closed := time.Now()
		if err := ticket.ClosePrevious(w.Context(), w.dial, "/understudy", w.config("a").Node, []Release{release}); err != nil {
			w.Fatal(err)
		}
		if slices.Contains(w.zk.Sessions(), ticket.Session) {
			w.Error("the session lives")
		}
		w.asOperator(func(ctx context.Context, s *Session) error {
			if there, err := exists(ctx, s, release.Crumb); there || err != nil {
				w.Errorf("the breadcrumb is there: %v %v", there, err)
			}
			v, err := s.getW(ctx, release.Dir+"/"+historyName)
			n, bad := decode[note](v.data)
			if err = errors.Join(err, bad); err != nil {
				return err
			}
			if n.Min.After(left) || left.Sub(*n.Min) > testTimeout/12 || !n.Max.Equal(closed) {
				w.Errorf("it ended between %v and %v; %v was the last sign, and it was closed at %v", n.Min, n.Max, left, closed)
			}
			return nil
		})
	})
}

// The guardians or ZooKeeper have ended it, and ClosePrevious has closed nothing.
func TestAPreviousSessionThatIsOverIsSaidToBe(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		if err := ticket.Close(w.Context(), w.dial, []Release{release}, EndedAt(time.Now()), true); err != nil {
			w.Fatal(err)
		}
		if err := ticket.ClosePrevious(w.Context(), w.dial, "/understudy", w.config("a").Node, []Release{release}); !errors.Is(err, ErrOverAlready) {
			w.Errorf("it says %v", err)
		}
	})
}

// P2: what the file says is no proof, and a process that was seen alive may be where no tree leads to.
func TestAPreviousSessionIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		of     func(w *world) Node
		change func(w *world, r Release)
	}{
		"another node's": {ofNode("b"), func(*world, Release) {}},
		"another supervisor's of that name": {func(w *world) Node {
			n := w.config("a").Node
			n.Since = w.start
			return n
		}, func(*world, Release) {}},
		"without its own znode": {ofNode("a"), func(w *world, _ Release) { w.byHand(NodesDir("/understudy") + "/a") }},
		"with a process that lives": {ofNode("a"), func(w *world, r Release) {
			w.asOperator(func(ctx context.Context, s *Session) error {
				v, err := s.getW(ctx, r.Crumb)
				if err != nil {
					return err
				}
				return s.set(ctx, r.Crumb, merge(v.data, map[string]Leftover{"leftover": {Pid: 7}}), -1)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				ticket, release := w.leave("a")
				c.change(w, release)
				err := ticket.ClosePrevious(w.Context(), w.dial, "/understudy", c.of(w), []Release{release})
				if !errors.Is(err, ErrLeftAlone) {
					w.Errorf("it says %v", err)
				}
				if !slices.Contains(w.zk.Sessions(), ticket.Session) {
					w.Error("the session was closed")
				}
				w.asOperator(func(ctx context.Context, s *Session) error {
					for _, path := range []string{release.Lock, release.Crumb} {
						if there, err := exists(ctx, s, path); !there || err != nil {
							w.Errorf("%s: %v %v", path, there, err)
						}
					}
					return nil
				})
			})
		})
	}
}

func ofNode(node string) func(w *world) Node {
	return func(w *world) Node { return w.config(node).Node }
}
