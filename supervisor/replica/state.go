package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strconv"

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

func save(s Store, now state) error {
	raw, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return s.Save(raw)
}
