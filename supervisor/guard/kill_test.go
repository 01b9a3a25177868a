package guard

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/testbed/must"
)

// box holds a process that dies some time after it was struck.
type box struct {
	lives   bool
	takes   time.Duration // to die
	dies    time.Time
	struck  int
	sealed  bool
	removed bool
	unseen  error // a look at it fails
}

func (b *box) KillNow() error {
	if b.struck++; b.struck == 1 && b.takes > 0 {
		b.dies = time.Now().Add(b.takes)
	}
	return nil
}

func (b *box) alive() bool { return b.lives && (b.dies.IsZero() || time.Now().Before(b.dies)) }

func (b *box) KillHarder() error        { return nil }
func (b *box) Seal()                    { b.sealed = true }
func (b *box) Dead() (bool, error)      { return !b.alive() && b.unseen == nil, b.unseen }
func (b *box) Remove() error            { b.removed = true; return nil }
func (b *box) Wait(ctx context.Context) { time.Sleep(time.Millisecond) }

// cage is a tree of boxes.
type cage struct {
	*bureau
	mu    sync.Mutex // guards the entry, and parts
	parts []*box
	whole box
	looks int
	hits  int // orders of the whole tree's death
	ends  []bool
	finds func() (again bool) // what a search does
}

func (c *cage) Change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

func (c *cage) KillNow() { c.hits++ }

func (c *cage) Parts() (parts []Part, container Awaited, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	for _, b := range c.parts {
		parts = append(parts, Part{Awaited: b})
	}
	return parts, &c.whole, func() {}
}

func (c *cage) Search(context.Context) (again bool, err error) {
	c.Change(func() {
		if c.finds != nil {
			again = c.finds()
		}
	})
	return again, nil
}

func (c *cage) Dead(end bool) error {
	for _, b := range append(c.parts, &c.whole) {
		if b.alive() {
			c.t.Error("told dead, and alive")
		}
	}
	c.ends = append(c.ends, end)
	return nil
}

// P2: a start that is under way when a kill begins may still add a process, which dies with the others.
func TestAKillWaitsForAStartThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBureau(t)
		tree := b.plants()
		c := &cage{bureau: b, parts: []*box{{lives: true, takes: time.Second}}}
		must.OK(t, tree.MayStart(b.now))
		late := &box{lives: true, takes: time.Second}
		time.AfterFunc(3*time.Second, func() {
			c.Change(func() {
				c.parts = append(c.parts, late)
				tree.Started()
			})
		})
		must.OK(t, tree.Kill(t.Context(), c, true))
		if late.alive() || !late.removed || !c.whole.removed || len(c.ends) != 1 || c.looks != 2 {
			t.Errorf("%+v, %+v", late, c)
		}
		if c.parts[0].sealed {
			t.Error("frozen while this process forks into it")
		}
		if err := tree.Kill(t.Context(), c, true); err != nil || len(c.ends) != 1 {
			t.Errorf("%v: killed twice: %v", err, c.ends)
		}
	})
}

// P2: what is found outside of the container when all that was known is dead dies before anybody is told.
func TestAKillEndsWhatItFindsOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBureau(t)
		tree := b.plants()
		c := &cage{bureau: b, parts: []*box{{lives: true, takes: time.Second}}}
		stray := &box{lives: true, takes: time.Second}
		searches := 0
		c.finds = func() (again bool) {
			switch searches++; searches {
			case 1:
				return true
			case 2:
				if !tree.Found(Ref{Pid: 7}) {
					t.Error("it is called dead")
				}
				c.parts = append(c.parts, stray)
			}
			return false
		}
		must.OK(t, tree.Kill(t.Context(), c, true))
		if stray.alive() || len(c.ends) != 1 || searches != 3 {
			t.Errorf("%+v, %v, %d searches", stray, c.ends, searches)
		}
		if tree.Found(Ref{Pid: 8}) {
			t.Error("a dead tree takes a process in")
		}
	})
}

// P2: without a proof nobody is told, and a later kill has to find one.
func TestAKillThatIsNotProvedTellsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBureau(t)
		tree := b.plants()
		c := &cage{bureau: b, parts: []*box{{lives: true}}}
		b.forgets()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tree.Kill(ctx, c, true); !errors.Is(err, ErrUnproved) {
			t.Fatal(err)
		}
		if len(c.ends) > 0 || c.whole.removed || len(b.sent[0]) > 0 || !c.parts[0].sealed || c.parts[0].struck < 100 {
			t.Errorf("%+v, %v, %+v", c, b.sent[0], c.parts[0])
		}
		if tree.killing || len(tree.turn) > 0 {
			t.Error("it is killed for ever")
		}
		c.parts[0].lives = false
		if err := tree.Kill(t.Context(), c, true); err != nil || len(c.ends) != 1 || !c.whole.removed || len(b.sent[0]) != 1 || b.sent[0][0].Op != OpDrop {
			t.Errorf("%v, %+v, %v", err, c, b.sent[0])
		}
	})
}

// A tree that is used again keeps its container, but no part that only one start uses.
func TestAKillKeepsWhatIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBureau(t)
		tree := b.plants()
		c := &cage{bureau: b, parts: []*box{{lives: true, takes: time.Millisecond}}}
		must.OK(t, tree.Kill(t.Context(), c, false))
		if c.whole.removed || c.parts[0].removed || c.parts[0].sealed {
			t.Errorf("%+v, %+v", c.whole, c.parts[0])
		}
		if err := KillUntilDead(t.Context(), c.parts[0], true); err != nil || !c.parts[0].removed {
			t.Error(err)
		}
		must.Report(t, tree.MayStart(b.now))
	})
}

// P2: whoever wants a tree dead waits for no other who kills it, and has no need of time, to order that.
func TestADeathIsOrderedBeforeAnythingIsWaitedFor(t *testing.T) {
	b := newBureau(t)
	tree := b.plants()
	tree.turn <- struct{}{} // another one is killing it
	over, cancel := context.WithCancel(t.Context())
	cancel()
	c := &cage{bureau: b}
	if err := tree.Kill(over, c, true); !errors.Is(err, ErrUnproved) || c.hits != 1 {
		t.Errorf("it was struck %d times: %v", c.hits, err)
	}
	unseen := &box{lives: true, unseen: errors.New("it cannot be looked at")}
	if err := KillUntilDead(over, unseen, true); !errors.Is(err, ErrUnproved) || !errors.Is(err, unseen.unseen) || unseen.struck != 1 {
		t.Errorf("what cannot be seen was struck %d times: %v", unseen.struck, err)
	}
}
