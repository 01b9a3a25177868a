package election

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/must"
)

// A restore brings znodes back that were ephemeral, as nobody's. They keep nobody waiting, and no node from having its own.
func TestWhatARestoreBringsBackBlocksNobody(t *testing.T) {
	p := Paths{"/understudy", "svc"}
	for name, paths := range map[string][]string{
		"places in the queue": {p.Queue() + "/77-n_0000000000", p.Queue() + "/78-n_0000000001", p.Queue() + "/79-p9-n_0000000002"},
		"a preference":        {p.Preferred() + "/7-a"},
		"a member":            {p.Members() + "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.asOperator(func(ctx context.Context, s *Session) error {
					if _, _, err := s.NewCandidate(ctx, "svc", Queue); err != nil {
						return err
					}
					for _, path := range paths {
						try(s.create(ctx, path, nil, 0))
					}
					return nil
				})
				w.within("a", func(ctx context.Context, s *Session) error {
					ctx, enough := context.WithTimeout(ctx, time.Minute)
					defer enough()
					c, cl := claimed(ctx, s, Queue)
					try(c.Prefer(ctx, 7))
					try(c.Members.Announce(ctx, Member{Role: "active"}))
					for _, path := range []string{p.Preferred() + "/7-a", p.Members() + "/a"} {
						if v, err := s.get(ctx, path); err != nil || v.stat.EphemeralOwner != s.ID() {
							w.Errorf("%s is not its own: %v", path, err)
						}
					}
					return cl.Release(ctx)
				})
			})
		})
	}
}

// So does its own name keep no node from coming back, once it is seen that nobody writes to it.
func TestANameThatARestoreBringsBackIsTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		path, lock := NodesDir("/understudy")+"/a", Paths{"/understudy", "svc"}.Lock()
		w.asOperator(func(ctx context.Context, s *Session) error {
			if _, _, err := s.NewCandidate(ctx, "svc", Race); err != nil {
				return err
			}
			try(s.create(ctx, lock, nil, 0))
			return s.create(ctx, path, nil, 0)
		})
		came := make(chan bool, 1)
		wait := w.open("a", func(ctx context.Context, s *Session) error {
			came <- true
			time.Sleep(3 * testTimeout)
			if v, err := s.get(ctx, path); err != nil || v.stat.EphemeralOwner != s.ID() {
				w.Errorf("its name is not its own: %v", err)
			}
			if there, err := exists(ctx, s, lock); !there || err != nil { // of which nobody knows what it is for
				w.Errorf("a lock that is nobody's is deleted: %v", err)
			}
			return nil
		})
		select {
		case <-came:
		case <-time.After(time.Minute):
			w.Fatal("it waits for nobody")
		}
		must.Report(w, wait())
	})
}

// Nor is a node taken for one that is preferred and fit since a restore says so: whoever is active would leave for it again and again.
func TestAPreferenceThatIsNobodysIsNotHeeded(t *testing.T) {
	p := Paths{"/understudy", "svc"}
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			try(s.create(ctx, p.Preferred()+"/9-ghost", nil, 0))
			told := make(chan Intents, 9)
			hearing, enough := context.WithCancel(ctx)
			heard := make(chan error, 1)
			go func() { heard <- c.Control.Watch(hearing, func(w Intents) { told <- w }) }()
			if rival := (<-told).Rival("a", 0); rival != "" {
				w.Errorf("%s is waited for", rival)
			}
			w.within("ghost", func(ctx context.Context, s *Session) error { // it comes back, and goes
				c := stand(ctx, s, Race)
				try(c.Prefer(ctx, 9))
				if rival := (<-told).Rival("a", 0); rival != "ghost" {
					w.Errorf("who is back is not heeded: %q", rival)
				}
				return nil
			})
			if rival := (<-told).Rival("a", 0); rival != "" {
				w.Errorf("%s is waited for", rival)
			}
			enough()
			<-heard
			return nil
		})
	})
}

// A mark that nobody may read tells nothing but its name and owner, which is all that it takes.
func TestAPreferenceThatNobodyMayReadKeepsNobodyFromStanding(t *testing.T) {
	p := Paths{"/understudy", "svc"}
	inWorld(t, func(w *world) {
		w.asOperator(func(ctx context.Context, s *Session) error {
			if _, _, err := s.NewCandidate(ctx, "svc", Race); err != nil {
				return err
			}
			_, err := s.multi(ctx, &zk.CreateRequest{Path: p.Preferred() + "/10-b", Acl: zk.DigestACL(zk.PermRead, "someone", "else")})
			return err
		})
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			ctx, enough := context.WithTimeout(ctx, time.Minute)
			defer enough()
			heard := false
			err := c.Control.Watch(ctx, func(w Intents) { heard = true; enough() })
			if !heard {
				w.Errorf("no wishes were heard: %v", err)
			}
			return nil
		})
	})
}
