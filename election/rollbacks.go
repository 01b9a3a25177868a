package election

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"
)

// rollbacks notices that ZooKeeper has come back with an older copy of its data, by this node's own znode: each heartbeat raises its
// version and its mzxid, and each new one has a greater czxid. P1: a node that does not watch the lock, such as one in a queue, has seen
// none of the claims that are lost. It outlasts sessions.
type rollbacks struct {
	mu sync.Mutex // guards the fields below
	OwnZnode
	// checked is the Resumed of the connection in which a heartbeat has shown that the data was not set back before. Data goes back only
	// while its server is down, so one look a connection is enough.
	checked <-chan struct{}
	news    chan struct{} // closed at the next change of checked
}

// OwnZnode is a node's znode after the newest acknowledged heartbeat.
type OwnZnode struct {
	Czxid    int64 `json:"czxid"`
	Version  int32 `json:"version"`
	Mzxid    int64 `json:"mzxid"`
	SetBacks int64 `json:"set_backs"` // how often ZooKeeper's data was set back, as this node has noticed by it
}

// known is for the next image of this process.
func (p *rollbacks) known() OwnZnode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.OwnZnode
}

// resume continues with what a previous image knew.
func (p *rollbacks) resume(o OwnZnode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.OwnZnode = o
}

// found compares the own znode as it is now, after so many further writes of ours.
func (p *rollbacks) found(stat zk.Stat, writes int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.compare(stat, writes)
}

func (p *rollbacks) compare(stat zk.Stat, writes int32) {
	older := writes > 0 && stat.Mzxid < p.Mzxid // a write of now is newer than all before
	if older || stat.Czxid < p.Czxid || stat.Czxid == p.Czxid && stat.Version < p.Version+writes {
		p.SetBacks++
	}
	p.take(stat)
}

func (p *rollbacks) take(stat zk.Stat) {
	p.Czxid, p.Version, p.Mzxid = stat.Czxid, stat.Version, stat.Mzxid
}

// acked takes a heartbeat that was sent and answered in one connection. The first one there shows what has become of all before. Of others
// under way with it, any may have been carried out first.
func (p *rollbacks) acked(stat zk.Stat, connection <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.checked != connection:
		p.compare(stat, 1)
		p.checked = connection
		if p.news != nil {
			close(p.news)
			p.news = nil
		}
	case stat.Mzxid > p.Mzxid:
		p.take(stat)
	}
}

// forgotten notes that ZooKeeper had ended a session before its time: a copy of the data from before that session's beginning has none of
// it, and the own znode of the next one can be compared with nothing.
func (p *rollbacks) forgotten() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.SetBacks++
}

// in returns how often the data was set back, as far as is known in a connection, and what to wait for; nil: nothing.
func (p *rollbacks) in(connection <-chan struct{}) (setBacks int64, news <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checked == connection {
		return p.SetBacks, nil
	}
	if p.news == nil {
		p.news = make(chan struct{})
	}
	return p.SetBacks, p.news
}

// SetBacks is how often this node has noticed that ZooKeeper's data was set back to an older copy. It waits for the present connection's
// first heartbeat: what was read before may be of an older copy, if the result is a greater one than before.
func (s *Session) SetBacks(ctx context.Context) (int64, error) {
	for {
		resumed := s.Resumed()
		n, news := s.rollbacks.in(resumed)
		if news == nil {
			return n, nil
		}
		select {
		case <-news:
		case <-resumed:
		case <-s.Ended():
			return 0, s.Over()
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
