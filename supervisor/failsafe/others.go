package failsafe

import (
	"time"

	"understudy/election"
)

// otherPromises are what other nodes have promised about one term.
type otherPromises struct {
	claim  *election.Claim                 // nil: the term is about to go on here
	until  map[election.Peer]time.Duration // how far each promise carries
	asked  map[election.Peer]bool          // who is being asked
	silent map[election.Peer]bool          // who gave none, which was logged
	ended  bool                            // the term was asked to end
	killed bool
}

func newOtherPromises(claim *election.Claim) *otherPromises {
	return &otherPromises{claim: claim, until: map[election.Peer]time.Duration{}, asked: map[election.Peer]bool{}, silent: map[election.Peer]bool{}}
}

// counted is everybody who has to promise. It reports false when promises are worth nothing yet.
func (o *otherPromises) counted() ([]election.Peer, bool) {
	if o.claim == nil {
		return nil, false
	}
	return o.claim.Roll.Counted()
}

// reach is how far the promises carry of all who have to promise; 0: they do not.
func (o *otherPromises) reach(now time.Duration) time.Duration {
	all, ok := o.counted()
	if !ok {
		return 0
	}
	end := now + election.PromiseReach(o.claim.Session())
	for _, p := range all {
		end = min(end, o.until[p])
	}
	return end
}

// due is who has to be asked now: those whose promise is missing or soon over, and who are not being asked.
func (o *otherPromises) due(now time.Duration) (peers []election.Peer) {
	all, ok := o.counted()
	if !ok || o.ended {
		return nil
	}
	for _, p := range all {
		if !o.asked[p] && o.until[p] <= now+election.PromiseReach(o.claim.Session())/2 {
			peers = append(peers, p)
		}
	}
	return peers
}
