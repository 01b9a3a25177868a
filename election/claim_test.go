package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

func TestClaimWritesTheBreadcrumbAndReleaseRemovesBoth(t *testing.T) {
	for _, mode := range []Mode{Race, Queue} {
		inWorld(t, func(w *world) {
			w.within("a", func(ctx context.Context, s *Session) error {
				c, cl := claimed(ctx, s, mode)
				p := c.Paths()
				lock, err := s.getW(ctx, p.Lock())
				if err != nil || lock.stat.Czxid != cl.Token {
					w.Errorf("lock %+v, token %d, %v", lock.stat, cl.Token, err)
				}
				crumb, err := s.getW(ctx, p.Crumb())
				if err != nil || crumb.stat.Czxid != cl.Token || cl.Previous != nil {
					w.Errorf("the breadcrumb came not with the lock: %+v %v %v", crumb.stat, cl.Previous, err)
				}
				watching, stop := context.WithCancel(ctx)
				time.AfterFunc(time.Second, stop)
				if err := cl.Watch(watching); !errors.Is(err, context.Canceled) {
					w.Errorf("watch: %v", err)
				}
				crumb, _ = s.getW(ctx, p.Crumb())
				var b BreadCrumb
				if err := json.Unmarshal(crumb.data, &b); err != nil || b.Token != cl.Token || b.Node != "a" {
					w.Errorf("breadcrumb %s: %v", crumb.data, err)
				}
				try(cl.Release(ctx))
				for _, path := range []string{p.Lock(), p.Crumb()} {
					if there, err := exists(ctx, s, path); there || err != nil {
						w.Errorf("%s after the release: %v %v", path, there, err)
					}
				}
				if left, err := s.children(ctx, p.Queue()); len(left) > 0 || err != nil {
					w.Errorf("left in the queue: %v %v", left, err)
				}
				return nil
			})
		})
	}
}

// Whatever becomes of the connection in a transaction, there is one claim in the end, and no orphaned lock.
func TestClaimSurvivesLostAnswers(t *testing.T) {
	type trap struct {
		name string
		set  func(*zkfaults.Server, zkfaults.Match)
	}
	traps := []trap{
		{"reply lost", (*zkfaults.Server).LoseReply},
		{"cut before", (*zkfaults.Server).CloseBefore},
		{"cut after", (*zkfaults.Server).CloseAfter},
	}
	for _, op := range []jute.Op{jute.OpCreate, jute.OpDelete} { // a multi that creates, one that deletes
		for _, tr := range traps {
			for _, mode := range []Mode{Race, Queue} {
				name := fmt.Sprintf("%v %s %s", op, tr.name, mode)
				inWorld(t, func(w *world) {
					trial := func(ctx context.Context, s *Session) error {
						if op == jute.OpCreate {
							tr.set(w.zk, zkfaults.Match{Op: jute.OpMulti, Path: lockName})
						}
						_, cl, err := claim(ctx, s, mode)
						if err != nil {
							return err
						}
						if err := cl.Inscribe(ctx); err != nil {
							return err
						}
						if op == jute.OpDelete {
							tr.set(w.zk, zkfaults.Match{Op: jute.OpMulti, Path: lockName})
						}
						return cl.Release(ctx)
					}
					began := w.now()
					wait := w.open("a", trial)
					if err := wait(); err != nil {
						w.Errorf("%s: %v", name, err)
					}
					if took := w.now() - began; took > testTimeout {
						w.Errorf("%s: took %v", name, took)
					}
					w.asOperator(func(ctx context.Context, s *Session) error {
						names, err := s.children(ctx, Paths{"/understudy", "svc"}.Dir())
						if joined := strings.Join(names, " "); strings.Contains(joined, "Active") {
							w.Errorf("%s: left behind: %s", name, joined)
						}
						return err
					})
				})
			}
		}
	}
}

// A node that believes in a lock which an operator deleted by hand, and a breadcrumb that was made anew meanwhile: its version says nothing then,
// the lock's czxid does.
func TestBelieverInAVanishedLockDoesNotTakeAnothersBreadcrumb(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.leaveCrumb()
		had, goOn := make(chan struct{}), make(chan struct{})
		late := w.open("a", func(ctx context.Context, s *Session) error {
			_, cl := claimed(ctx, s, Race)
			close(had)
			<-goOn
			if err := cl.Inscribe(ctx); err == nil {
				w.Error("a second active")
			}
			return nil
		})
		<-had
		w.asOperator(func(ctx context.Context, s *Session) error {
			_, err := s.multi(ctx, &zk.DeleteRequest{Path: p.Lock(), Version: -1}, &zk.DeleteRequest{Path: p.Crumb(), Version: -1})
			return err
		})
		w.activates("b", func(ctx context.Context, s *Session, cl *Claim) error {
			close(goOn)
			must.Report(w, late())
			return cl.Release(ctx)
		})
	})
}

func TestActiveNoticesThatLockOrBreadcrumbAreNotItsOwn(t *testing.T) {
	for name, meddle := range map[string]func(ctx context.Context, s *Session, p Paths) error{
		"lock deleted": func(ctx context.Context, s *Session, p Paths) error {
			_, err := s.multi(ctx, &zk.DeleteRequest{Path: p.Lock(), Version: -1})
			return err
		},
		"lock replaced": func(ctx context.Context, s *Session, p Paths) error {
			_, err := s.multi(ctx, &zk.DeleteRequest{Path: p.Lock(), Version: -1},
				&zk.CreateRequest{Path: p.Lock(), Acl: s.acl})
			return err
		},
		"breadcrumb of another": func(ctx context.Context, s *Session, p Paths) error {
			return s.set(ctx, p.Crumb(), encode(BreadCrumb{Node: "x", Session: "0x1"}), -1)
		},
	} {
		inWorld(t, func(w *world) {
			w.activates("a", func(ctx context.Context, s *Session, cl *Claim) error {
				lost := make(chan error, 1)
				go func() { lost <- cl.Watch(ctx) }()
				w.asOperator(func(ctx context.Context, s *Session) error { return meddle(ctx, s, cl.paths) })
				select {
				case err := <-lost:
					if !errors.Is(err, ErrLost) {
						w.Errorf("%s: %v", name, err)
					}
				case <-time.After(time.Second):
					w.Errorf("%s: not noticed", name)
				}
				return nil
			})
		})
	}
}

func TestDeletedBreadcrumbIsWrittenAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, cl *Claim) error {
			watching, stop := context.WithTimeout(ctx, 2*time.Second)
			defer stop()
			time.AfterFunc(time.Second, func() {
				w.asOperator(func(ctx context.Context, s *Session) error {
					_, err := s.multi(ctx, &zk.DeleteRequest{Path: cl.paths.Crumb(), Version: -1})
					return err
				})
			})
			if err := cl.Watch(watching); !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("watch: %v", err)
			}
			if there, err := exists(ctx, s, cl.paths.Crumb()); !there || err != nil {
				w.Errorf("breadcrumb: %v %v", there, err)
			}
			return cl.Release(ctx)
		})
	})
}
