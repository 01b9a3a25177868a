package service

import (
	"sync"

	"understudy/election"
)

// Patience bounds how long a command waits for its lock. It runs out only before the lock is claimed: from then on this node may start
// the program. All methods are safe, and a nil Patience never runs out.
type Patience struct {
	once bool   // it runs out with the first lock, or obstacle, that this node finds
	end  func() // is called when it has run out

	mu      sync.Mutex // guards the fields below
	claimed bool       // the lock is being taken, or is ours
	active  bool       // the programs were started here: nothing runs out any more
	late    bool       // the time is over
	over    bool       // it has run out
}

// NewPatience makes one that calls end when it has run out; once: after the first attempt.
func NewPatience(once bool, end func()) *Patience { return &Patience{once: once, end: end} }

// Late says that the time is over.
func (p *Patience) Late() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.late = true
	p.mu.Unlock()
	p.endIfTooLong()
}

// Over reports whether it has run out, so that nothing was or will be started here.
func (p *Patience) Over() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// tried says that another node has the lock, or that this one may not take it now.
func (p *Patience) tried() {
	if p != nil && p.once {
		p.Late()
	}
}

// claim reports whether the lock may be taken still.
func (p *Patience) claim() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimed = !p.over
	return p.claimed
}

// moved notes the role: a claim may come to nothing.
func (p *Patience) moved(to election.Role) {
	if p == nil {
		return
	}
	p.mu.Lock()
	switch to {
	case election.RoleActive:
		p.active = true
	case election.RoleStandby, election.RolePaused, election.RoleFailed, election.RoleOffline:
		p.late = p.late || p.once && to == election.RoleFailed
		p.claimed = false
	}
	p.mu.Unlock()
	p.endIfTooLong()
}

// endIfTooLong ends the wait if it is too long.
func (p *Patience) endIfTooLong() {
	p.mu.Lock()
	runsOut := p.late && !p.claimed && !p.active && !p.over
	p.over = p.over || runsOut
	p.mu.Unlock()
	if runsOut {
		p.end()
	}
}
