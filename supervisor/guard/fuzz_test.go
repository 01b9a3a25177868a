package guard

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// FuzzOrders lets a guardian be told anything, one order a line. P3: an ended lease stays ended. P2: it loses sight of no box but
// one that it is told to be dead.
func FuzzOrders(f *testing.F) {
	f.Fuzz(func(t *testing.T, packets []byte) {
		now := time.Hour
		p := guarding(t, Config{Grace: time.Second}, 2*time.Hour, &mortal{}, &mortal{})
		l := p.leases.lease(1)
		for packet := range bytes.SplitSeq(packets, []byte("\n")) {
			var m Message
			if json.Unmarshal(packet, &m) != nil {
				continue
			}
			ended, deadline, boxes := l.ended, l.deadline, p.count()
			p.Hear(now, &m)
			switch {
			case ended && (!l.ended || l.deadline != deadline):
				t.Fatalf("revived by %+v", m)
			case l.deadline < deadline:
				t.Fatalf("shortened by %+v", m)
			case p.count() < boxes && m.Op != OpShed && m.Op != OpDrop:
				t.Fatalf("lost sight of a box by %+v", m)
			case p.leases.lease(1) == nil && !l.ended && len(l.trees) > 0:
				t.Fatalf("forgotten with its trees by %+v", m)
			}
			p.Turn(now, Events{})
		}
		for _, tree := range l.trees {
			for _, b := range tree.boxes {
				if l.ended && b.Box.(*mortal).struck == 0 {
					t.Errorf("ended, and tree %d was not struck", tree.number)
				}
			}
		}
	})
}

func (p *puppet) count() (n int) {
	for _, l := range p.leases {
		for _, t := range l.trees {
			n += len(t.boxes)
		}
	}
	return n
}
