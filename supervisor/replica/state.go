package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strconv"
	"sync"

	"understudy/supervisor/copies"
)

// Store keeps a state where it outlasts a boot. It may hang for a while.
type Store interface {
	Load() ([]byte, error) // fs.ErrNotExist: there is none
	Save(data []byte) error
}

// FileName is the name of a copy's state, which no other copy of this machine has.
func FileName(cluster, node, service string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", node, service)
	return strconv.FormatUint(h.Sum64(), 36) + "." + cluster + ".copy"
}

// Source is a copy that others follow.
type Source struct {
	Node    string `json:"node,omitempty"`
	Address string `json:"address,omitempty"`
}

// state is what has to be known of the data after a loss of power.
type state struct {
	Node     string `json:"node"` // for people
	Service  string `json:"service"`
	Era      int64  `json:"era"`      // in which both tokens were given
	Followed int64  `json:"followed"` // the token of the newest promotion whose data the copy has; 0: of none
	// Toward is the token of the primary that the copy was told to follow,
	// until it has that one's data. Meanwhile nobody knows what it has.
	Toward   int64  `json:"toward,omitempty"`
	Source   Source `json:"source,omitzero"` // the copy that it was told to follow last
	Position uint64 `json:"position"`        // the greatest one that it has told since
	// It was promoted, and has not been prepared or recloned since: it may have data that no other copy has.
	Diverges bool        `json:"diverges,omitempty"`
	Saw      copies.Lead `json:"saw,omitzero"` // of the newest promotion on another node
	// What has begun to change the stopped copy's data, prepare or reclone, and has not succeeded.
	Torn string `json:"torn,omitempty"`
}

// heads says that the copy is told to follow another one. From then on, until it has that one's data, it is not known what it has.
func (s *state) heads(to Active) {
	if s.Era != to.Era {
		s.Era, s.Followed = to.Era, 0
	}
	s.Toward, s.Position, s.Source = to.Token, 0, Source{to.Node, to.Address}
}

// has reports whether the copy had this promotion's data, and was told of no other since.
func (s state) has(active Active) bool {
	return s.Era == active.Era && s.Followed == active.Token && s.Toward == 0
}

func load(s Store, node, service string) (state, error) {
	none := state{Node: node, Service: service}
	raw, err := s.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil:
		return none, err
	}
	read := none
	if err := json.Unmarshal(raw, &read); err != nil {
		return none, err
	}
	if read.Node != node || read.Service != service {
		return none, fmt.Errorf("it is of %s on %s", read.Service, read.Node)
	}
	return read, nil
}

// data is what is known of the copy's data, and kept where it outlasts a boot.
type data struct {
	node, service string
	store         func() Store
	news          func() // is told when what others are told of it has changed

	saving sync.Mutex // held, and taken before mu, while a state is kept
	mu     sync.Mutex // guards the fields below
	state  state
	unread error // why the state cannot be read; then nothing is known of the data
}

func (d *data) known() (state, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.unread
}

func (d *data) set(now state, unread error) {
	d.mu.Lock()
	d.state, d.unread = now, unread
	d.mu.Unlock()
}

// restore reads it, unless that was done. It may take a while.
func (d *data) restore() error {
	if _, unread := d.known(); !errors.Is(unread, errUnread) {
		return nil
	}
	kept, err := load(d.store(), d.node, d.service)
	d.set(kept, err)
	d.news()
	return err
}

// keep keeps a state for good: what it is about happens afterwards.
func (d *data) keep(change func(*state)) error {
	d.saving.Lock()
	defer d.saving.Unlock()
	was, _ := d.known()
	next := was
	change(&next)
	raw, err := json.Marshal(next)
	if err == nil {
		err = d.store().Save(raw)
	}
	if err != nil {
		return fmt.Errorf("keep what the copy has followed: %w", err)
	}
	d.set(next, nil)
	if was.Followed != next.Followed || was.Toward != next.Toward || was.Source != next.Source {
		d.news()
	}
	return nil
}

// reached notes a position. It is kept for good with the next change of the state.
func (d *data) reached(p uint64) {
	d.mu.Lock()
	d.state.Position = max(d.state.Position, p)
	d.mu.Unlock()
}
