package child

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/wait"
)

// A process may get into another cgroup than its tree's: by itself, by a tool of the machine such as cgrulesengd, by a program that opens
// a session for what it starts. The kernel's order to the tree's cgroup does not reach it there. Looks find it, and from then on supervisor
// and guardians hold it by its pidfd, as a further part of the tree. It is the tree's if it descends from a process that we hold, or if a
// look has seen it in the tree's cgroup. One whose parent has ended before any look saw it is not found.

// Stray is a live process of a tree in another cgroup.
type Stray struct {
	Pid          int
	Comm, Cgroup string
}

const mostStrays = 256 // are held of a tree: each takes a descriptor of three processes

var errLooking = errors.New("another look for processes in other cgroups is under way")

// Strays looks for processes of the tree in other cgroups. It may hang with the kernel's lock on cgroups, and then others do not wait.
func (t *Tree) Strays() ([]Stray, error) {
	if t.cgroup == nil { // its stubs hold a process wherever it is
		return nil, nil
	}
	if !t.looking.TryLock() {
		return nil, errLooking
	}
	defer t.looking.Unlock()
	return t.findStrays()
}

// Search implements guard.KillHands. Nothing lives in the cgroup: a process that was seen there and lives is elsewhere, or ending, or back.
func (t killHands) Search(ctx context.Context) (again bool, err error) {
	if t.cgroup == nil {
		return false, nil
	}
	if t.looking.TryLock() {
		lives, err := t.outlived()
		t.looking.Unlock()
		if !lives {
			return false, err
		}
	}
	again, err = wait.Reached(ctx, &t.searches, t.search, nil) // P6: a look may hang
	if again {
		wait.For(ctx, time.Millisecond)
	}
	return again, err
}

// search is Search where it is not clear yet that all that was seen is dead.
func (t *Tree) search() (again bool, err error) {
	t.looking.Lock()
	defer t.looking.Unlock()
	if again, err = t.outlived(); again {
		_, err = t.findStrays()
	}
	return again, err
}

// outlived reports whether a process that was seen in the cgroup lives. The caller holds looking.
func (t *Tree) outlived() (bool, error) {
	for id := range t.seen {
		s, err := box.StatOf(id.pid)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return false, err
		case s.Start == id.start && s.Alive():
			return true, nil
		}
	}
	t.seen = nil
	return false, nil
}

// findStrays is one look. The caller holds looking.
func (t *Tree) findStrays() (found []Stray, err error) {
	err = box.Finding.Do(func() (err error) {
		found, err = t.look()
		return err
	})
	return found, err
}

func (t *Tree) look() (found []Stray, err error) {
	held, room := t.held()
	all, err := box.Processes()
	if err != nil {
		return nil, err
	}
	inside := make(map[int]bool)
	for _, s := range cgroupProcesses(t.cgroup.Path, 0) { // after the walk: whom that saw with such a pid is a member, or has ended
		inside[s.Pid] = true
	}
	var roots []int
	for _, s := range all {
		if held[idOf(s)] != nil {
			roots = append(roots, s.Pid)
		}
	}
	ours := make(map[processID]bool)
	for _, s := range box.Descendants(all, roots...) {
		ours[idOf(s)] = true
	}
	seen, before := make(map[processID]bool), t.seen
	defer func() { t.seen = seen }()
	for _, s := range all {
		id := idOf(s)
		own := held[id]
		if !s.Alive() || s.Pid == os.Getpid() || own == nil && !ours[id] && !before[id] && !inside[s.Pid] {
			continue
		}
		if inside[s.Pid] {
			seen[id] = true
			continue
		}
		one, at, looked := t.elsewhere(s)
		if one == nil {
			seen[id] = true // the next look sees it again, if it lives
			err = errors.Join(err, looked)
			continue
		}
		found = append(found, Stray{s.Pid, s.Comm, at})
		switch {
		case own != nil:
			one.Close()
		case room == 0:
			one.Close()
			seen[id] = true
			continue
		default:
			room--
			own = t.follow(one)
		}
		t.tell(own, found[len(found)-1])
	}
	return found, err
}

func idOf(s box.Stat) processID { return processID{s.Pid, s.Start} }

// held lists the processes that we hold, without strays that have ended, and how many more strays can be held.
func (t *Tree) held() (all map[processID]*part, room int) {
	parts := t.targets()
	defer t.looked(parts)
	var ended []box.Box
	defer func() {
		for _, b := range ended { // the kernel may be busy with its cgroups: no lock waits for it
			_ = b.Remove() // else it goes with the tree's
		}
	}()
	defer t.guard.guardians.lock()()
	t.mu.Lock()
	defer t.mu.Unlock()
	all, room = make(map[processID]*part), mostStrays
	for _, p := range parts {
		if p.found && !p.over {
			if dead, err := p.first.Dead(); dead && err == nil {
				ended = append(ended, p.box)
				p.shed()
			} else {
				room--
			}
		}
		if p.first != nil && !p.over {
			all[processID{p.first.Pid, p.first.Start}] = p.part
		}
	}
	return all, max(room, 0)
}

// elsewhere holds a process that is alive, in another cgroup than the tree's.
func (t *Tree) elsewhere(s box.Stat) (one *box.First, cgroup string, err error) {
	one, err = box.HoldFirst(s.Pid, s.Start)
	if one == nil {
		return nil, "", err
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(s.Pid) + "/cgroup")
	ended, looked := one.Dead() // checked after reading what may belong to another process
	if err == nil && looked == nil && !ended && !t.cgroup.Holds(string(text)) {
		return one, box.CgroupOf(string(text)), nil
	}
	one.Close()
	if ended || errors.Is(err, os.ErrNotExist) {
		return nil, "", nil
	}
	return nil, "", errors.Join(err, looked)
}

// follow makes a process a part of the tree: it is killed, and proved dead, with it. A cgroup of a run names it, as if it were a program
// that has left that: so whoever knows the tree by its cgroup alone finds it as well.
func (t *Tree) follow(one *box.First) *part {
	p := newPart(t, one, nil)
	p.first, p.found = one, true
	if in, err := t.cgroup.NewRun(t.nextRun()); err == nil { // else the cgroup was removed, by a process that has left it
		if err := in.Name(one); err != nil {
			t.guard.cfg.Logger.Debug("a later supervisor will not find a process", "tree", t.id.Name, "pid", one.Pid, "error", err)
		}
		p.box, p.path = &box.Began{RunCgroup: in, First: one}, in.Path
	}
	defer t.guard.guardians.lock()()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.guarded.Found(*p.ref()) {
		t.parts = append(t.parts, p)
		return p
	}
	_ = one.Order() // P2: the tree's death was proved without it
	p.over = true
	p.letGo()
	return p
}

// tell logs once that a process is elsewhere.
func (t *Tree) tell(p *part, s Stray) {
	t.mu.Lock()
	told := p.told
	p.told = true
	t.mu.Unlock()
	if !told {
		t.guard.cfg.Logger.Warn("a process is in another cgroup than its service: "+
			"it is killed there, but what it leaves behind may not be found",
			"tree", t.id.Name, "pid", s.Pid, "program", s.Comm, "cgroup", s.Cgroup)
	}
}

// adoptStray holds a process that a previous image has found.
func (t *Tree) adoptStray(c carriedPart) error {
	one, err := box.HoldFirst(c.Pid, c.Start)
	if err != nil || one == nil {
		return err
	}
	p := newPart(t, one, nil)
	p.first, p.path, p.found, p.told = one, c.Path, true, true
	if c.Path != "" {
		in, err := t.cgroup.AdoptRun(c.Path)
		if err != nil {
			one.Close()
			return err
		}
		p.box = &box.Began{RunCgroup: in, First: one}
	}
	t.parts = append(t.parts, p)
	return nil
}
