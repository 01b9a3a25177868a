package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/must"
)

// P5: a candidate that waits for the previous active by time learns what is said of its breadcrumb meanwhile, and overwrites none that says more
// than it knows: an answer that came before did not take that in.
func TestWhoWaitsLearnsWhatIsSaid(t *testing.T) {
	tree := json.RawMessage(`{"of":"a"}`)
	remains := func(l Leftover) func(context.Context, *Crumb) (bool, error) {
		return func(ctx context.Context, c *Crumb) (bool, error) { return c.NoteLeftover(ctx, tree, l) }
	}
	for name, c := range map[string]struct {
		before, say func(context.Context, *Crumb) (bool, error)
		learned     func(*BreadCrumb) bool
	}{
		"a process": {nil, remains(Leftover{}), func(b *BreadCrumb) bool { return b.Leftover.Known && b.Leftover.By == "c" }},
		"which one": {remains(Leftover{}), remains(Leftover{Pid: 7, Start: 70}), func(b *BreadCrumb) bool { return b.Leftover.Start == 70 }},
		"an effect": {nil, func(ctx context.Context, c *Crumb) (bool, error) { return c.NotUndone(ctx, tree, []string{"vip"}) },
			func(b *BreadCrumb) bool { return slices.Equal(b.Left, []string{"vip"}) }},
		"what survives a boot": {nil, func(ctx context.Context, c *Crumb) (bool, error) {
			return c.ListEffects(ctx, tree, Effects{Survive: EffectsLeft{"role"}})
		}, func(b *BreadCrumb) bool { return slices.Equal(b.Survive, []string{"role"}) }},
		"how long an undo may take": {nil, func(ctx context.Context, c *Crumb) (bool, error) {
			return c.ListEffects(ctx, tree, Effects{Names: []string{"vip"}, UndoMs: 600_000})
		}, func(b *BreadCrumb) bool { return b.UndoMs == 600_000 }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				tell := func(say func(context.Context, *Crumb) (bool, error)) {
					w.within("c", func(ctx context.Context, s *Session) error {
						if said, err := say(ctx, &Crumb{s, Paths{"/understudy", "svc"}}); !said || err != nil {
							w.Errorf("not said: %v, %v", said, err)
						}
						return nil
					})
				}
				w.activates("a", func(context.Context, *Session, *Claim) error {
					if c.before != nil {
						tell(c.before)
					}
					w.byHand(Paths{"/understudy", "svc"}.Lock())
					w.claims("b", func(ctx context.Context, _ *Session, waits *Claim) error {
						late := *waits // it does not look
						waiting, enough := context.WithTimeout(ctx, time.Minute)
						defer enough()
						confirmed := make(chan error, 1)
						go func() { confirmed <- waits.Confirmed(waiting) }()
						time.Sleep(100 * time.Millisecond)
						tell(c.say)
						if err := <-confirmed; !errors.Is(err, ErrCrumbChanged) || !c.learned(waits.Previous) {
							w.Errorf("who waits learns: %v, %+v", err, waits.Previous)
						}
						if err := late.Inscribe(ctx); !errors.Is(err, ErrCrumbChanged) || !c.learned(late.Previous) {
							w.Errorf("overwritten: %v, %+v", err, late.Previous)
						}
						return waits.Release(ctx)
					})
					return nil
				})
			})
		})
	}
}

// A token that the previous active adds late is no other case: whatever fences it goes on.
func TestALateTokenChangesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.activates("a", func(context.Context, *Session, *Claim) error {
			w.byHand(p.Lock())
			w.claims("b", func(ctx context.Context, _ *Session, waits *Claim) error {
				late := *waits.Previous
				late.Token = 7
				w.asOperator(func(ctx context.Context, s *Session) error { return s.set(ctx, p.Crumb(), encode(late), -1) })
				waiting, enough := context.WithTimeout(ctx, time.Second)
				defer enough()
				if err := waits.Confirmed(waiting); !errors.Is(err, context.DeadlineExceeded) || waits.PreviousToken != 7 {
					w.Errorf("%v, token %d", err, waits.PreviousToken)
				}
				return waits.Release(ctx)
			})
			return nil
		})
	})
}

// Who knows the process adds it; one that is named stays. Nothing is said of another tree.
func TestAProcessThatIsNamedStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, own *Claim) error {
			crumb := &Crumb{s, own.paths}
			for _, l := range []Leftover{{}, {Pid: 7, Start: 70, State: "t (tracing stop)"}, {}, {Pid: 8, Start: 80}, {Pid: 7, Start: 71}} {
				if said, err := crumb.NoteLeftover(ctx, json.RawMessage(`{"of":"a"}`), l); !said || err != nil {
					w.Errorf("not said: %v, %v", said, err)
				}
			}
			if b, _, err := crumb.Named(ctx); err != nil || b.Leftover.Pid != 7 || b.Leftover.Start != 70 {
				w.Errorf("it says: %+v, %v", b.Leftover, err)
			}
			if said, err := crumb.NoteLeftover(ctx, json.RawMessage(`{"of":"z"}`), Leftover{}); said || err != nil {
				w.Errorf("said of another tree: %v, %v", said, err)
			}
			return nil
		})
	})
}

// Only the breadcrumb of what is proved dead is removed, and only where one waits for that proof.
func TestTheBreadcrumbOfALeftoverGoesWithIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, own *Claim) error {
			again := stand(ctx, s, Race)
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
				if _, err := c.Crumb.NoteLeftover(ctx, tree, Leftover{}); err != nil {
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

// Every fresh breadcrumb has version 0, but no name comes again: what is said of one that was read a moment ago does not reach that of a later claim.
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
					if !errors.Is(late, zk.ErrNoNode) {
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

// What a record tells operators is one line for each thing, whoever wrote it.
func TestWhatARecordTellsIsOneLineEach(t *testing.T) {
	data := []byte(`{"node":"a","host":"a","lease_ms":6000,"since":"2026-01-01T00:00:00Z","leftover":{"pid":7,"program":"x\nSafe to confirm","state":"\u001b[2J","by":"b\u2028"},
		"effects":["a\nb"],"effects_left":["c\nd"],"needs_proof":["e\r"],"survives_boot":["f\u0085"]}`)
	b, err := ReadBreadCrumb(data)
	must.OK(t, err)
	got := fmt.Sprint(b.Leftover.Program, b.Leftover.State, b.Leftover.By, b.Names, b.Left, b.NeedProof, b.Survive)
	if want := "x?Safe to confirm?[2Jb?[a?b][c?d][e?][f?]"; strings.ReplaceAll(got, " [", "[") != want {
		t.Errorf("%s, not %s", got, want)
	}
}
