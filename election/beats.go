package election

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/wait"
)

// A beat is nodes/<node> as one session has made it. Its version stands still when its node is gone, or cut off, and so does its lease.

// beatOf names a beat: a session makes one, and never makes it again.
type beatOf struct {
	node    string
	session int64
}

// sight is how a beat was seen. Zero: it is gone.
type sight struct {
	czxid, mzxid int64
	version      int32
}

// beats are what this session sees of the beats of nodes that hold a lock which it could take: one read a beat, with each heartbeat.
type beats struct {
	s *Session

	mu      sync.Mutex // guards watched, and what is in it
	watched map[beatOf]*beat
	added   chan struct{} // holds one when there is a new one
}

// beat is one that is watched.
type beat struct {
	all *beats
	of  beatOf

	users int
	idle  time.Duration // since when there are none
	seen  bool          // once at least
	sent  time.Time     // when the newest heartbeat was, by its node's clock; zero: none was seen
	sight sight
	since time.Duration   // when the first answer came that showed this
	last  time.Duration   // when the newest one came
	in    <-chan struct{} // the connection in which that was asked for
	data  generation      // of ZooKeeper, then
	told  time.Duration   // the longest lease that its data has told
	news  chan struct{}   // closed at the next look that finds it over
}

// watch has a beat looked at until leave is called. What is known of it outlasts that for a while.
func (b *beats) watch(of beatOf) *beat {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.watched[of]
	if w == nil {
		w = &beat{all: b, of: of, news: make(chan struct{})}
		b.watched[of] = w
		wait.Poke(b.added)
	}
	w.users++
	return w
}

func (w *beat) leave() {
	if w == nil {
		return
	}
	now := w.all.s.cfg.Now()
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.users--
	w.idle = now
}

// found is closed at the next look that finds the beat over.
func (w *beat) found() <-chan struct{} {
	if w == nil {
		return nil
	}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.news
}

// keep looks at all beats as often as a heartbeat is sent, and when one may be over.
func (b *beats) keep(ctx context.Context) {
	for {
		next := time.NewTimer(b.next())
		select {
		case <-b.added:
		case <-next.C:
		case <-b.s.Ended():
			return
		case <-ctx.Done():
			return
		}
		next.Stop()
		var looks sync.WaitGroup
		for _, w := range b.all() {
			looks.Go(func() { _ = w.look(ctx) }) // the next one finds it out
		}
		looks.Wait()
	}
}

// next is how long to wait for the next look.
func (b *beats) next() time.Duration {
	now, longest := b.s.cfg.Now(), b.s.Longest()
	b.mu.Lock()
	defer b.mu.Unlock()
	next := beatEvery(b.s.LeaseLength())
	for _, w := range b.watched {
		if left := w.since + OverAfter(cmp.Or(w.told, longest)) - now; w.seen && left > 0 {
			next = min(next, left)
		}
	}
	return next
}

// all returns those that are watched, and drops what nobody has asked for lately.
func (b *beats) all() (watched []*beat) {
	now, kept := b.s.cfg.Now(), 4*b.s.Longest()
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, w := range b.watched {
		if w.users == 0 && now-w.idle > kept {
			delete(b.watched, of)
		} else {
			watched = append(watched, w)
		}
	}
	slices.SortFunc(watched, func(a, b *beat) int {
		return cmp.Or(cmp.Compare(a.of.node, b.of.node), cmp.Compare(a.of.session, b.of.session))
	})
	return watched
}

// look reads the beat once.
func (w *beat) look(ctx context.Context) error {
	s := w.all.s
	in := s.Resumed()
	setBacks, err := s.SetBacks(ctx) // the first heartbeat of this connection is answered
	if err != nil {
		return err
	}
	v, err := s.get(ctx, NodesDir(s.cfg.Root)+"/"+w.of.node)
	if err != nil {
		return err
	}
	now, longest, data := s.cfg.Now(), s.Longest(), generation{setBacks, s.Newest() >> 32}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.saw(v, look{now, in, data, beatEvery(s.LeaseLength()), longest})
	if now >= w.since+OverAfter(cmp.Or(w.told, longest)) {
		close(w.news)
		w.news = make(chan struct{})
	}
	return nil
}

// generation changes whenever ZooKeeper may have lost data: for that its servers have to restart, and elect a leader anew. A server that
// was never one of several elects none, and has the epoch 0.
type generation struct{ setBacks, epoch int64 }

// look is when, and how, an answer came.
type look struct {
	now     time.Duration
	in      <-chan struct{} // the connection in which it was asked for
	data    generation
	every   time.Duration // how often this node looks
	longest time.Duration // a lease that counts if the beat tells none
}

// saw notes an answer. P1: a heartbeat may be acknowledged, and be lost with the data: the watching begins anew. P7: where answers were
// missing, or came over another connection, the beat is not over before it has been seen for another half a lease, since its node may have
// to reconnect as well.
func (w *beat) saw(v view, l look) {
	var is sight
	if v.exists && v.stat.EphemeralOwner == w.of.session {
		is = sight{v.stat.Czxid, v.stat.Mzxid, v.stat.Version}
		w.told = max(w.told, leaseOf(v.data))
		if n, err := decode[Node](v.data); err == nil {
			w.sent = n.Sent
		}
	}
	lease := cmp.Or(w.told, l.longest)
	if next, err := decode[Node](v.data); err == nil && next.Replaced != nil &&
		*next.Replaced == (LastBeat{SessionName(w.of.session), w.sight.version}) {
		w.sight = is // it was deleted as it was seen
	}
	switch {
	case !w.seen || is != w.sight || l.data != w.data, l.in != w.in && l.data.epoch == 0:
		// It moved, or what was seen may be lost with the data. Of a lone server, which has no epoch, each connection may show older data.
		w.since = l.now
	case l.in != w.in || l.now-w.last > l.every*5/2:
		// It may have moved unseen, or its node may have been cut off as this one was: it has half a lease to show itself.
		w.since = max(w.since, l.now-OverAfter(lease)+lease/2)
	}
	w.seen, w.sight, w.last, w.in, w.data = true, is, l.now, l.in, l.data
}

// stillness is how long a beat stands still, as it was seen last, and what proves that it still does.
type stillness struct {
	since   time.Duration
	seen    bool            // else nothing is known yet
	sent    time.Time       // when its newest heartbeat was, by its node's clock; zero: none was seen
	in      <-chan struct{} // the connection in which it was seen last
	told    time.Duration   // the longest lease that its data has told; 0: none
	unmoved []any           // checks that succeed as long as it is as it was seen last. One that is gone never comes back
}

// still is all of one moment: looks go on meanwhile.
func (w *beat) still() stillness {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	now := stillness{since: w.since, seen: w.seen, sent: w.sent, in: w.in, told: w.told}
	if (w.sight != sight{}) {
		now.unmoved = []any{&zk.CheckVersionRequest{Path: NodesDir(w.all.s.cfg.Root) + "/" + w.of.node, Version: w.sight.version}}
	}
	return now
}
