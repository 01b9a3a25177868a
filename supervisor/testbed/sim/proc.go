package sim

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/child"
)

// tree is a container and the processes in it. World.mu guards it.
type tree struct {
	host    *host
	of      *twins // nil: of a process that undoes in a guardian's place
	id      treeID
	node    string
	service string
	aside   string // what runs in it that is no part of a child; "" for a child's
	session int64
	procs   map[*proc]struct{}
	known   map[*guardian]struct{} // that hold it
	removed bool
	frozen  bool          // by another tool
	late    []func()      // what its processes do once they can
	changed chan struct{} // closed at each change
}

// proc is a process. World.mu guards it.
type proc struct {
	tree    *tree
	parent  *proc // that started it; nil: the supervisor
	pid     int
	main    bool   // it is what the service is about
	program string // "": a descendant
	argv    []string
	token   int64
	since   time.Time
	killed  bool
	struck  time.Time // when it was killed
	doomed  bool      // killed, and held by the kernel: it runs no instruction of its own any more
	dead    bool
	nature  nature
	done    chan struct{}
	status  child.ExitStatus
	leaving *time.Timer
	copy    copyOf // of a replicated service
	moved   bool   // a tool has moved it into another cgroup
	found   bool   // there, by a look
	shot    bool   // killed by a fault
}

// nature is how a process behaves.
type nature struct {
	life        time.Duration // it ends by itself after that; 0: never
	code        int           // with this
	ignoresTERM bool          // to TERM
	yields      time.Duration // how long it takes to obey TERM
	dies        time.Duration // how long it takes to die when killed
	offspring   int           // processes that outlive it
	strays      bool          // it leaves its container
	headless    bool          // its offspring's main threads end: the order to kill a container leaves them out
}

func (t *tree) news() {
	close(t.changed)
	t.changed = make(chan struct{})
	for _, g := range t.host.guardians() {
		g.treeChanged(t)
	}
}

// fork starts a process in the tree.
func (t *tree) fork(program string, token int64, n nature) (*proc, error) {
	if t.removed { // or frozen: it is there as long as the kernel holds what was killed, but nothing in it runs
		return nil, os.ErrNotExist
	}
	p := &proc{
		tree: t, pid: t.host.pid(), main: program == mainProgram, program: program, token: token, since: time.Now(), nature: n, done: make(chan struct{}),
	}
	t.procs[p] = struct{}{}
	t.host.w.check.started(p)
	if n.life > 0 {
		p.leaving = t.host.w.after(n.life, func() {
			t.runs(func() {
				if !p.killed {
					p.die(child.ExitStatus{Code: n.code})
				}
			})
		})
	}
	for range n.offspring {
		q, err := t.fork("", token, nature{dies: n.dies, headless: n.headless})
		if err != nil {
			return nil, err
		}
		q.parent = p
	}
	return p, nil
}

// die is the end of a process.
func (p *proc) die(status child.ExitStatus) {
	if p.dead {
		return
	}
	p.dead, p.status = true, status
	if p.leaving != nil {
		p.leaving.Stop()
	}
	delete(p.tree.procs, p)
	p.tree.host.w.check.gone(p)
	if p.program == lateCommand {
		p.tree.host.w.copies.late(p)
	}
	if p.program == copiesCommand {
		p.tree.host.w.copies.counting(p, status)
	}
	if p.program == prepareCommand || p.program == recloneCommand {
		p.tree.host.w.copies.prepared(p, status)
	}
	close(p.done)
	p.tree.news()
}

// kill sends SIGKILL.
func (p *proc) kill() {
	if p.killed || p.dead {
		return
	}
	p.killed, p.struck = true, time.Now()
	if p.leaving != nil {
		p.leaving.Stop() // it ends by nothing else any more
	}
	after := p.nature.dies
	if held := time.Until(p.tree.host.stuck); held > after && p.tree.host.holdsOn(p.tree.service) {
		p.doomed, after = true, held
		p.tree.host.w.say("%s: process %d of %s is killed, but held by the kernel", p.tree.host.name, p.pid, p.tree.service)
	}
	dead := child.ExitStatus{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}
	p.tree.host.w.after(after, func() { p.die(dead) })
}

// holdsOn tells whether a process of the service that is killed now is held.
func (h *host) holdsOn(service string) bool {
	if h.holds != "" {
		return h.holds == service
	}
	return h.rng.IntN(2) == 0
}

// term sends SIGTERM.
func (p *proc) term() {
	p.copy.asked = true
	if p.killed || p.dead || p.nature.ignoresTERM {
		return
	}
	p.tree.host.w.after(p.nature.yields, func() {
		p.tree.runs(func() {
			if !p.killed {
				p.die(child.ExitStatus{})
			}
		})
	})
}

// strike orders the death of all that is in the container, and of what the supervisor forked itself, wherever that is.
func (t *tree) strike() {
	for _, p := range t.all() {
		switch {
		case p.parent == nil: // by its pidfd
			p.kill()
		case !p.nature.headless && !p.hidden():
			p.kill()
		}
	}
}

// all is the processes in the order of their birth.
func (t *tree) all() []*proc {
	return inOrder(t.procs)
}

// inOrder lists processes in the order of their birth on each host: that of a map goes by their addresses, which differ from
// run to run.
func inOrder(all map[*proc]struct{}) []*proc {
	return slices.SortedFunc(maps.Keys(all), func(a, b *proc) int {
		return cmp.Or(strings.Compare(a.tree.host.name, b.tree.host.name), cmp.Compare(a.pid, b.pid))
	})
}
