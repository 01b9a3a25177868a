package election

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// A candidate that waits for the former active by time learns that something of it is alive, and overwrites no breadcrumb that says so.
func TestWhoWaitsLearnsThatSomethingIsAlive(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			if _, err := activate(ctx, s); err != nil {
				return err
			}
			w.byHand(Paths{"/understudy", "svc"}.Lock())
			w.claims("b", func(ctx context.Context, s2 *Session, waits *Claim) error {
				late := *waits // it does not look
				confirmed := make(chan error, 1)
				waiting, enough := context.WithTimeout(ctx, time.Minute)
				defer enough()
				go func() { confirmed <- waits.Confirmed(waiting) }()
				time.Sleep(100 * time.Millisecond)
				w.within("c", func(ctx context.Context, s3 *Session) error {
					c, _, err := s3.NewCandidate(ctx, "svc", Race)
					if err != nil {
						return err
					}
					if said, err := c.Crumb.Remains(ctx, json.RawMessage(`{"of":"z"}`), Leftover{}); said || err != nil {
						w.Errorf("said of another tree: %v, %v", said, err)
					}
					if said, err := c.Crumb.Remains(ctx, json.RawMessage(`{"of":"a"}`), Leftover{}); !said || err != nil {
						w.Errorf("not said: %v, %v", said, err)
					}
					for range 2 { // who knows the process adds it
						if said, err := c.Crumb.Remains(ctx, json.RawMessage(`{"of":"a"}`), Leftover{Pid: 7, State: "t (tracing stop)"}); !said || err != nil {
							w.Errorf("not said: %v, %v", said, err)
						}
					}
					for _, other := range []Leftover{{Pid: 7, Start: 70}, {}, {Pid: 8, Start: 80}, {Pid: 7, Start: 71}} { // one that is named stays
						if said, err := c.Crumb.Remains(ctx, json.RawMessage(`{"of":"a"}`), other); !said || err != nil {
							w.Errorf("not said: %v, %v", said, err)
						}
					}
					return nil
				})
				if err := <-confirmed; !errors.Is(err, ErrCrumbChanged) {
					w.Errorf("who waits learns: %v", err)
				}
				if l := waits.Previous.Leftover; !l.Known || l.By != "c" {
					w.Errorf("who waits reads: %+v", l)
				}
				if err := late.Inscribe(ctx); !errors.Is(err, ErrCrumbChanged) || !late.Previous.Leftover.Known {
					w.Errorf("overwritten: %v", err)
				}
				if l := late.Previous.Leftover; l.Pid != 7 || l.Start != 70 {
					w.Errorf("it says: %+v", l)
				}
				return waits.Release(ctx)
			})
			return nil
		})
	})
}

// Whoever asked for a death before the process was named has to ask again: the answer did not take that one in.
func TestWhoWaitsLearnsWhichProcessIsAlive(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			if _, err := activate(ctx, s); err != nil {
				return err
			}
			say := func(l Leftover) {
				w.within("c", func(ctx context.Context, s *Session) error {
					c, _, err := s.NewCandidate(ctx, "svc", Race)
					if err == nil {
						_, err = c.Crumb.Remains(ctx, json.RawMessage(`{"of":"a"}`), l)
					}
					return err
				})
			}
			say(Leftover{})
			w.byHand(Paths{"/understudy", "svc"}.Lock())
			w.claims("b", func(ctx context.Context, s2 *Session, waits *Claim) error {
				waiting, enough := context.WithTimeout(ctx, time.Second)
				defer enough()
				confirmed := make(chan error, 1)
				go func() { confirmed <- waits.Confirmed(waiting) }()
				say(Leftover{Pid: 7, Start: 70})
				if err := <-confirmed; !errors.Is(err, ErrCrumbChanged) || waits.Previous.Leftover.Start != 70 {
					w.Errorf("who waits learns: %v", err)
				}
				return waits.Release(ctx)
			})
			return nil
		})
	})
}

// Only the breadcrumb of what is proved dead is removed, and only where one waits for that proof.
func TestTheBreadcrumbOfALeftoverGoesWithIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, own *Claim) error {
			again, _, err := s.NewCandidate(ctx, "svc", Race)
			if err != nil {
				return err
			}
			w.within("c", func(ctx context.Context, s2 *Session) error {
				c, _, err := s2.NewCandidate(ctx, "svc", Race)
				if err != nil {
					return err
				}
				tree := json.RawMessage(`{"of":"a"}`)
				bury := func(by *Candidate, tree json.RawMessage, left string) {
					w.Helper()
					if _, err := by.Crumb.MarkDead(ctx, tree, func(Leftover) error { return nil }); err != nil {
						w.Error(err)
					}
					if held := w.held(s2); held != left {
						w.Errorf("left: %q, not %q", held, left)
					}
				}
				bury(again, tree, crumbName+" "+lockName) // it says nothing of the kind
				if _, err := c.Crumb.Remains(ctx, tree, Leftover{}); err != nil {
					return err
				}
				bury(again, json.RawMessage(`{"of":"z"}`), crumbName+" "+lockName)
				bury(c, tree, crumbName+" "+lockName) // who knows what it did, and whether that is undone
				if b, ok, err := c.Crumb.Named(ctx); !ok || err != nil || b.Node != "a" || b.Session != SessionName(s.ID()) || !b.Leftover.Known {
					w.Errorf("it says: %+v, %v, %v", b, ok, err)
				}
				lives := errors.New("it lives")
				if buried, err := again.Crumb.MarkDead(ctx, tree, func(Leftover) error { return lives }); buried || !errors.Is(err, lives) {
					w.Errorf("buried alive: %v, %v", buried, err)
				}
				if buried, err := again.Crumb.MarkDead(ctx, nil, func(Leftover) error { return nil }); buried || err != nil {
					w.Errorf("buried without a tree: %v, %v", buried, err)
				}
				bury(again, tree, lockName)
				return nil
			})
			return own.Release(ctx)
		})
	})
}

// Whatever stands where a breadcrumb says that something is alive: somebody has seen that.
func TestWhatSaysThatSomethingIsAliveIsNeverOverlooked(t *testing.T) {
	for data, known := range map[string]bool{
		`{"node":"a","session":"0x1"}`:                            false,
		`{"node":"a","session":"0x1","leftover":{"pid":7}}`:       true,
		`{"node":"a","session":"0x1","leftover":{"pid":"seven"}}`: true,
		`{"node":"a","session":"0x1","leftover":{}}`:              true,
		`{"node":"a","session":"0x1","leftover":null}`:            true,
		`{"node":"a","session":"0x1","leftover":false}`:           true,
		`{"node":"a","session":"none","leftover":[1]}`:            true, // which cannot be read
		`{"node":7,"leftover":{"pid":7}}`:                         true,
		`{"node":"a","session":"none"}`:                           false,
	} {
		b, err := ReadBreadCrumb([]byte(data))
		if b.Leftover.Known != known {
			t.Errorf("%s: %+v, %v", data, b.Leftover, err)
		}
		if err == nil && strings.Contains(string(encode(b)), `"leftover"`) != known {
			t.Errorf("%s is written as %s", data, encode(b))
		}
	}
}

// Every fresh breadcrumb has version 0: what is said of one that was read a moment ago does not reach that of a later claim.
func TestALateWordOfALeftoverDoesNotReachALaterBreadcrumb(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.within("a", func(ctx context.Context, s *Session) error {
			if _, _, err := claim(ctx, s, Race); err != nil { // at version 0
				return err
			}
			w.within("c", func(ctx context.Context, s2 *Session) error {
				c, _, err := s2.NewCandidate(ctx, "svc", Race)
				if err != nil {
					return err
				}
				w.within("b", func(ctx context.Context, s3 *Session) error {
					var next *Claim
					_, late := c.Crumb.tryOfTree(ctx, json.RawMessage(`{"of":"a"}`), func(_ BreadCrumb, v view) (any, error) {
						w.byHand(p.Lock(), p.Crumb())
						_, b, err := claim(ctx, s3, Race)
						next = b
						return &zk.SetDataRequest{Path: p.Crumb(), Data: v.data, Version: v.stat.Version}, err
					})
					if !errors.Is(late, zk.ErrBadVersion) {
						w.Errorf("written: %v", late)
					}
					return next.Release(ctx)
				})
				return nil
			})
			return nil
		})
	})
}
