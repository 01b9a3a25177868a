package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/copies"
)

// liveData is a copy's data: each write makes one of the one before.
type liveData struct {
	before *liveData
	depth  uint64
}

func (w *liveData) has(other *liveData) bool {
	for w != nil && other != nil && w.depth > other.depth {
		w = w.before
	}
	return other == nil || w == other
}

// liveCopy is a copy in a liveWorld.
type liveCopy struct {
	up, stalls bool
	data       *liveData
	followed   int64
	beat       election.At
}

// liveWorld is copies that fail, and clients that write all the time: whatever the live set does, and whenever, an acknowledged write is kept.
type liveWorld struct {
	rng     *rand.Rand
	nodes   []string
	copies  map[string]*liveCopy
	primary string // "": none is promoted
	counted []string
	acked   *liveData
	record  election.Promotion
	version int
	late    []func() // what is written to the record later
	read    int      // the version that was read last
	die     context.CancelFunc
	shrinks int
}

func (w *liveWorld) odds(n int) bool { return w.rng.IntN(n) == 0 }

// passes lets a time pass in which anything may happen.
func (w *liveWorld) passes() {
	for range w.rng.IntN(4) {
		c := w.copies[w.nodes[w.rng.IntN(len(w.nodes))]]
		switch {
		case w.odds(12):
			c.up = !c.up
		case w.odds(8):
			c.stalls = !c.stalls
		case w.odds(6) && len(w.late) > 0:
			w.late[0]()
			w.late = w.late[1:]
		}
		p := w.copies[w.primary]
		if p == nil {
			continue
		}
		if !p.up {
			w.die()
			continue
		}
		next := &liveData{before: p.data, depth: 1}
		if p.data != nil {
			next.depth += p.data.depth
		}
		p.data = next
		for _, node := range w.nodes {
			f := w.copies[node]
			if f == p || !f.up || f.stalls || w.odds(3) {
				continue
			}
			f.data, f.followed = next, w.record.Token
			if slices.Contains(w.counted, node) {
				w.acked = next
			}
		}
		for _, node := range w.nodes {
			if f := w.copies[node]; f.up && f.data != nil && w.odds(3) {
				f.beat = election.At{Token: f.followed, Position: f.data.depth}
			}
		}
	}
}

func (w *liveWorld) Live(context.Context) (election.Promotion, bool, error) {
	w.read = w.version
	return w.record, true, nil
}

func (w *liveWorld) SetLive(ctx context.Context, over election.Promotion, live []string) error {
	w.passes()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	read := w.read
	do := func() {
		if read == w.version && over.Token == w.record.Token {
			w.version, w.record.Live = w.version+1, live
		}
	}
	switch w.rng.IntN(6) {
	case 0:
		return errors.New("not done")
	case 1:
		do()
		return errors.New("done, and not answered")
	case 2:
		w.late = append(w.late, do)
		return errors.New("not done yet")
	}
	if read != w.version {
		return errors.New("it has changed")
	}
	do()
	w.passes()
	return nil
}

func (w *liveWorld) Count(ctx context.Context, nodes []string) error {
	w.passes()
	if ctx.Err() != nil || w.odds(6) {
		return errors.New("not done")
	}
	w.counted = nodes
	w.passes()
	if w.odds(6) {
		return errors.New("done, and killed")
	}
	return nil
}

func (w *liveWorld) Reaches(context.Context) (uint64, error) {
	at := uint64(0)
	if p := w.copies[w.primary]; p.data != nil {
		at = p.data.depth
	}
	w.passes()
	return at, nil
}

func (w *liveWorld) follow() followers {
	now := followers{token: w.record.Token, known: w.nodes}
	for _, node := range w.nodes {
		if c := w.copies[node]; node != w.primary && c.up && c.followed == now.token {
			now.nodes = append(now.nodes, node)
		}
	}
	return now
}

// promote has the copies compared until one is promoted. It reports whether that has all that was acknowledged.
func (w *liveWorld) promote() error {
	w.primary, w.late = "", nil // a write by a node without the lock fails
	for {
		w.passes()
		var told []copies.Told
		for _, node := range w.nodes {
			one := copies.Told{Node: node}
			if c := w.copies[node]; c.up {
				position := uint64(0)
				if c.data != nil {
					position = c.data.depth
				}
				one.Followed, one.Position, one.Stands = c.followed, &position, true
			}
			told = append(told, one)
		}
		rules := copies.Rules{Promoted: w.record.Token, Live: w.record.Live, From: copies.Need(0, len(w.nodes), w.record.Token)}
		to := rules.Judge(told).Node
		if to == "" {
			continue
		}
		w.primary = to
		if !w.copies[to].data.has(w.acked) {
			return fmt.Errorf("%s is promoted, of %v, and lacks what was acknowledged", to, w.record.Live)
		}
		w.record.Token++
		w.record.Live, w.version = election.Joined(w.record.Live, to), w.version+1
		w.copies[to].followed, w.counted = w.record.Token, besides(w.record.Live, to)
		return nil
	}
}

// term has the live set kept until the primary dies.
func (w *liveWorld) term(ctx context.Context) {
	ctx, w.die = context.WithCancel(ctx)
	defer w.die()
	l := &liveSet{
		me: w.primary, token: w.record.Token, record: w, primary: w, follow: w.follow, log: hclog.NewNullLogger(), counted: w.counted, sure: true, beats: time.Second,
		conf: func() config.Replicated {
			return config.Replicated{Copies: config.Command{"copies"}, Interval: time.Second, Timeout: time.Second}
		},
		at: func(_ context.Context, node string) (election.At, bool, error) {
			w.passes()
			return w.copies[node].beat, true, nil
		},
	}
	for ctx.Err() == nil {
		before := len(w.record.Live)
		_ = l.look(ctx)
		if len(w.record.Live) < before {
			w.shrinks++
		}
		w.passes()
	}
}

// Nothing that was acknowledged is lost, whatever fails while the live set changes.
func TestNoAcknowledgedWriteIsLostWithALiveSet(t *testing.T) {
	shrinks := 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			w := &liveWorld{rng: rand.New(rand.NewPCG(seed, 1)), nodes: []string{"a", "b", "c", "d"}[:3+seed%2], copies: map[string]*liveCopy{}}
			for _, node := range w.nodes {
				w.copies[node] = &liveCopy{up: true}
			}
			w.record = election.Promotion{Token: 1, Live: slices.Clone(w.nodes)}
			for _, c := range w.copies {
				c.followed = 1
			}
			for n := range 30 {
				if err := w.promote(); err != nil {
					t.Fatalf("seed %d, promotion %d: %v", seed, n, err)
				}
				w.term(t.Context())
			}
			shrinks += w.shrinks
		})
		if t.Failed() {
			return
		}
	}
	if shrinks < 300 {
		t.Errorf("the live set has shrunk %d times", shrinks)
	}
	t.Logf("the live set has shrunk %d times", shrinks)
}
