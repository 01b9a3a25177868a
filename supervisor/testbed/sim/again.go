package sim

import (
	"cmp"
	"encoding/json"

	"understudy/election"
	"understudy/supervisor/testbed/zkfaults"
)

// Locks that are taken again for programs that have outlasted their session.

// outlasting counts what became of programs that promises covered when their session expired.
type outlasting struct {
	kept    int             // their lock was taken again
	dropped int             // they ended, once their node had heard of that, though nobody had claimed the lock since
	heard   map[string]bool // nodes that have heard of the end of the session in which their newest program was started
}

// unknownClaim is the newest claim where the data was set back.
const unknownClaim = -1

// activationOf is the token of the activation that a lock belongs to.
func activationOf(ch zkfaults.ZnodeChange) int64 {
	var l election.Lock
	_ = json.Unmarshal(ch.Data, &l)
	return cmp.Or(l.Token, ch.Stat.Czxid)
}

// takenAgain looks at a lock that says it belongs to an earlier activation. P1: nobody may have claimed since that, and promises have to cover
// what runs. It tells whether it is one. World.mu is held.
func (c *checker) takenAgain(v *serviceView, ch zkfaults.ZnodeChange) bool {
	token := activationOf(ch)
	if token == ch.Stat.Czxid {
		v.newest = token
		return false
	}
	v.lock.token = token
	if v.newest != token && v.newest != unknownClaim {
		c.broken("P1", "the lock of %s was taken again with token %d, and the newest claim was %d", v.name, token, v.newest)
	}
	lives := false
	for _, p := range inOrder(v.living) {
		if p.token != token {
			continue
		}
		lives = true
		if p.tree.session != v.lock.owner { // they would close the session beside it
			c.broken("P2", "the lock of %s was taken again, and the guardians of %v do not have the ticket of session %s", v.name, p, election.SessionName(v.lock.owner))
		}
		if !c.sight.mayOutlast(v, p) && !v.struck[p.token] {
			c.broken("P1", "the lock of %s was taken again, and no promise covers %v", v.name, p)
		}
	}
	if lives {
		c.tally.outlasting.kept++
		c.w.say("zk: the lock of %s is taken again, token %d", v.name, token)
	}
	return true
}

// dropped counts a program that ended after its session, though it could have gone on.
func (c *checker) dropped(v *serviceView, p *proc) {
	if p.main && c.tally.heard[p.tree.node] && !v.lock.there && v.newest == p.token && c.effects.expired[p.tree.session] && c.sight.mayOutlast(v, p) {
		c.tally.outlasting.dropped++
		c.w.say("%s: %v has ended, though nobody has claimed the lock since its session expired", p.tree.node, p)
	}
}
