package failsafe

import (
	"time"

	"understudy/election"
)

// otherPromises are what other nodes have promised about one term.
type otherPromises struct {
	claim *election.Claim // nil: the term is about to go on here
	// Until when those of a previous session hold, which cover it until its lock is taken again; 0: there are none.
	cover  time.Duration
	until  map[election.Peer]time.Duration // until when each promise holds
	asked  map[election.Peer]bool          // which members are being asked
	silent map[election.Peer]bool          // which members gave none, which was logged
	ended  bool                            // the term was asked to end
	killed bool
}

func newOtherPromises(claim *election.Claim) *otherPromises {
	return &otherPromises{
		claim: claim, until: map[election.Peer]time.Duration{}, asked: map[election.Peer]bool{}, silent: map[election.Peer]bool{},
	}
}

// counted returns the members that have to promise. It reports false while promises are worth nothing yet.
func (o *otherPromises) counted() ([]election.Peer, bool) {
	if o.claim == nil {
		return nil, false
	}
	return o.claim.Roll.Counted()
}

// reach is until when all members that have to promise have done so; 0: one has not.
func (o *otherPromises) reach(now time.Duration) time.Duration {
	all, ok := o.counted()
	if !ok {
		return 0
	}
	end := now + election.PromiseReach(o.claim.Lease())
	for _, p := range all {
		end = min(end, o.until[p])
	}
	return end
}

// due returns the members to ask now: their promise is missing or soon over, and they are not being asked already.
func (o *otherPromises) due(now time.Duration) (peers []election.Peer) {
	all, ok := o.counted()
	if !ok || o.ended {
		return nil
	}
	for _, p := range all {
		if !o.asked[p] && o.until[p] <= now+election.PromiseReach(o.claim.Lease())/2 {
			peers = append(peers, p)
		}
	}
	return peers
}
