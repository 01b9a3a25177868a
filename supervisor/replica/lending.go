package replica

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/host"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// lending is the tree that the copy runs in, and what a term has of it.
type lending struct {
	service  string
	commands *unit.Commands
	log      hclog.Logger
	poke     chan struct{}  // capacity 1: what Keep works with has changed
	tells    sync.WaitGroup // calls of Tell that ask the copy; none begins while it is held

	mu sync.Mutex // guards lent
	lent
}

// lent is what is known of the tree at one moment.
type lent struct {
	tree   host.Tree       // nil: there is none
	lease  *unit.Lease     // the tree's own, while no term has it
	made   chan struct{}   // closed when there is a tree
	held   bool            // a term has the tree
	talk   context.Context // of the commands of Tell, prepare and reclone: it ends when a term takes the tree
	hush   func()
	want   chan holdResult  // a term waits for the programs; nil: none does
	resume *unit.CarriedRun // the programs that a term has given back
	closed bool             // this supervisor ends: no term gets any, or may give any back
}

func (l *lending) now() lent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lent
}

type holdResult struct {
	run *unit.CarriedRun
	err error
}

// Tree is the tree that the copy runs in, once there is one that no term has.
func (l *lending) Tree(ctx context.Context) (host.Tree, error) {
	for {
		now := l.now()
		if now.tree != nil && !now.held {
			return now.tree, nil
		}
		select {
		case <-now.made:
			if now.held {
				return nil, errStale // the caller has to free it first
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Holds reports whether a term has this tree.
func (l *lending) Holds(tree host.Tree) bool {
	now := l.now()
	return now.held && now.tree == tree && !now.closed
}

// lend gives the tree to a term, and returns where its programs will come.
func (l *lending) lend(tree host.Tree) (<-chan holdResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.held:
		return nil, errNotRuns
	case l.tree != tree:
		return nil, errStale
	}
	l.held = true
	l.hush()
	got := make(chan holdResult, 1)
	if l.closed {
		got <- holdResult{nil, errClosed}
		return got, nil
	}
	l.want = got
	return got, nil
}

// Return takes the tree back from a term that has demoted the copy, with its programs, which run on. From then on it ends with its
// supervisor, as any follower. After an error the term has to end the tree, and then to call Free.
func (l *lending) Return(ctx context.Context, tree host.Tree, programs *unit.CarriedRun) error {
	now := l.now()
	if !now.held || now.tree != tree || now.lease == nil {
		return errStale
	}
	if err := tree.Move(ctx, now.lease.Epoch, nil); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	l.resume = programs
	l.back()
	return nil
}

// Free says that the tree which a term had has ended: the copy comes back as a follower in another one.
func (l *lending) Free() {
	l.mu.Lock()
	var lease *unit.Lease
	if l.held {
		lease = l.uproot()
		l.back()
	}
	l.mu.Unlock()
	l.finish(lease)
}

// back notes that no term has the tree any more. The caller holds mu.
func (l *lending) back() {
	l.held = false
	l.talk, l.hush = context.WithCancel(context.Background())
	wait.Poke(l.poke)
}

// uproot forgets a tree that has ended. The caller holds mu.
func (l *lending) uproot() (lease *unit.Lease) {
	lease, l.lease, l.tree, l.made = l.lease, nil, nil, make(chan struct{})
	l.discard()
	return lease
}

// discard ends the programs that were to be continued. The caller holds mu.
func (l *lending) discard() {
	if l.resume != nil {
		l.resume.Discard()
		l.resume = nil
	}
}

func (l *lending) finish(lease *unit.Lease) {
	if lease == nil {
		return
	}
	if err := lease.Finish(); err != nil {
		l.log.Debug("the lease of a copy's tree is still held", "error", err)
	}
}

// open lets terms have the tree, and close no more.
func (l *lending) open() {
	l.mu.Lock()
	l.closed = false
	l.mu.Unlock()
}

func (l *lending) close() {
	l.mu.Lock()
	l.closed = true
	l.discard()
	l.mu.Unlock()
	l.deliver(nil, errClosed)
}

func (l *lending) isHeld() bool { return l.now().held }

// asks returns the context of a command that a term waits for, until done is called; nil: one has the tree.
func (l *lending) asks() (talk context.Context, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return nil, func() {}
	}
	l.tells.Add(1)
	return l.talk, l.tells.Done
}

// takeResume returns the programs that are there to be continued, once.
func (l *lending) takeResume() *unit.CarriedRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	resume := l.resume
	l.resume = nil
	return resume
}

// carry adds what the next image has to know; false: no programs run without Keep.
func (l *lending) carry(r *Carried) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || !l.held && l.resume == nil {
		return false
	}
	id, err := l.tree.ID()
	r.Lease, r.Tree, r.Run, r.tree = l.lease.Epoch, id, l.resume, l.tree
	return err == nil
}

// adopt takes over what a previous image has carried.
func (l *lending) adopt(r *Carried) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease, l.tree, l.resume, l.held = l.commands.Lease(r.Lease), r.tree, r.Run, r.Run == nil
	close(l.made)
}

// deliver answers a term that waits for the programs, if there is one.
func (l *lending) deliver(run *unit.CarriedRun, err error) bool {
	l.mu.Lock()
	want := l.want
	l.want = nil
	l.mu.Unlock()
	if want != nil {
		want <- holdResult{run, err}
	}
	return want != nil
}

// make makes the tree, if there is none.
func (l *lending) make(ctx context.Context) (host.Tree, error) {
	if tree := l.now().tree; tree != nil {
		return tree, nil
	}
	tree, lease, err := l.commands.NewTree(ctx, l.service+"/copy", lasts)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.tree, l.lease = tree, lease
	close(l.made)
	l.mu.Unlock()
	return tree, nil
}

// end ends the tree, with proof, unless a term has it.
func (l *lending) end(ctx context.Context) {
	tree := l.now().tree
	if tree == nil || !l.kills(ctx, tree.End) {
		return
	}
	l.mu.Lock()
	var lease *unit.Lease
	if !l.held && l.tree == tree {
		lease = l.uproot()
	}
	l.mu.Unlock()
	l.finish(lease)
}

// kills kills until a death is proved, or a term has the tree, or, once ctx has ended, for so long.
func (l *lending) kills(ctx context.Context, kill func(context.Context) error) bool {
	var gaveUp time.Time
	for !l.isHeld() { // else the term ends the tree
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
		err := kill(bounded)
		cancel()
		if err == nil {
			return true
		}
		l.log.Warn("this node's copy is not proved dead yet", "error", err)
		if ctx.Err() != nil && gaveUp.IsZero() {
			gaveUp = time.Now().Add(endPatience)
		}
		if !gaveUp.IsZero() && time.Now().After(gaveUp) {
			return false
		}
		wait.For(context.WithoutCancel(ctx), proofPause)
	}
	return false
}

// proofPause keeps attempts that fail at once apart.
const proofPause = 10 * time.Millisecond
