package election

import (
	"context"
	"math"
	"sync"
	"time"
)

// leasesSeen is the longest lease that this node has ever seen under its root: of its own, in the data of nodes, or in a
// record. P1: where ZooKeeper comes back with other data, or with none, no record names the node that is active, whose lease may rest on
// it. It outlasts sessions.
type leasesSeen struct {
	told func(longest time.Duration) // it must not wait

	mu      sync.Mutex // guards longest
	longest time.Duration
}

func (l *leasesSeen) saw(lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease <= l.longest {
		return
	}
	l.longest = lease
	if l.told != nil {
		l.told(lease)
	}
}

func (l *leasesSeen) get() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.longest
}

// Longest is the longest lease that any node may have, as far as this one knows. It is assumed for one that is not known.
func (s *Session) Longest() time.Duration { return max(s.LeaseLength(), s.seen.get()) }

// sawRecord notes the lease of a record. It reports whether there is one that can be read.
func (s *Session) sawRecord(v view) bool {
	crumb, err := ReadBreadCrumb(v.data)
	if !v.exists || err != nil {
		return false
	}
	s.seen.saw(time.Duration(crumb.LeaseMs) * time.Millisecond)
	return true
}

// Nodes is the data of the folder of all nodes. So whatever a node does, it knows how long any
// lease may last, by one watch that hardly ever fires: a record is read by nobody who is in a
// queue, or no candidate, and a watch over the nodes would wake all of them at each failover.
type Nodes struct {
	LongestMs int64 `json:"longest_lease_ms"` // of any node that there was
}

// sawNodes notes what the folder says; 0: nothing.
func (s *Session) sawNodes(v view) (longest time.Duration) {
	n, err := decode[Nodes](v.data)
	if err == nil {
		longest = time.Duration(min(max(n.LongestMs, 0), math.MaxInt32)) * time.Millisecond
	}
	s.seen.saw(longest)
	return longest
}

// tellLongest has the folder say it, before this session takes any lock.
func (s *Session) tellLongest(ctx context.Context) error {
	dir, own := NodesDir(s.cfg.Root), s.LeaseLength()
	s.seen.saw(own)
	return retry(ctx, s.client, func() error {
		v, err := s.get(ctx, dir)
		if err != nil || s.sawNodes(v) >= own {
			return err
		}
		return s.set(ctx, dir, encode(Nodes{own.Milliseconds()}), v.stat.Version)
	})
}

// watchLongest reads what the folder says, in this session.
func (s *Session) watchLongest(ctx context.Context) {
	ctx = InTurn(ctx)
	for again := (pacing{}); ; {
		v, err := s.getW(ctx, NodesDir(s.cfg.Root))
		if err == nil {
			s.sawNodes(v)
			err = s.await(ctx, v.changed)
		} else {
			err = again.wait(ctx, s.client, err)
		}
		if err != nil {
			return
		}
	}
}
