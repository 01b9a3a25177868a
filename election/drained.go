package election

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
)

// Drained says, in drained/<node>, that an operator keeps a node out of all services until the znode is deleted.
type Drained struct {
	Since time.Time `json:"since"`
	By    string    `json:"by,omitempty"`
	Why   string    `json:"why,omitempty"`
	ID    int64     `json:"-"` // the znode's czxid
}

// Undrained says, in the folder of the drained nodes, which drain was ended last, and by whom.
type Undrained struct {
	Node  string    `json:"node"`
	Drain int64     `json:"drain"` // its ID
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
}

// Encode is the folder's data.
func (u Undrained) Encode() []byte { return encode(u) }

// ReadUndrained reads the folder's data; what cannot be read is nobody's word.
func ReadUndrained(data []byte) Undrained {
	u, _ := decode[Undrained](data)
	return u
}

// DrainedDir holds a znode for each node that is drained.
func DrainedDir(root string) string { return path.Join(root, "drained") }

// Encode is the znode's data.
func (d Drained) Encode() []byte { return encode(d) }

// ReadDrained reads the znode. Whatever its data is, the node is drained: an operator wanted that.
func ReadDrained(data []byte, stat zk.Stat) *Drained {
	d, _ := decode[Drained](data)
	cut(&d.By, &d.Why)
	d.ID = stat.Czxid
	return &d
}

// Words say that the node is drained, by whom and why.
func (d Drained) Words() string { return d.words("") }

// WordsAt say since when, too.
func (d Drained) WordsAt(now time.Time) string {
	if d.Since.IsZero() {
		return d.Words()
	}
	return d.words(" " + max(now.Sub(d.Since), 0).Round(time.Second).String() + " ago")
}

func (d Drained) words(ago string) string {
	words := "drained"
	if d.By != "" {
		words += " by " + d.By
	}
	words += ago
	if d.Why != "" {
		words += ": " + d.Why
	}
	return words
}

// undrainer is who ended a drain of this node; "": it is not said.
func (c *ControlZnode) undrainer(ctx context.Context, was Drained) (by string, err error) {
	v, err := c.s.get(ctx, DrainedDir(c.paths.Root))
	if errors.Is(err, zk.ErrNoAuth) { // other credentials made it
		return "", nil
	}
	if u := ReadUndrained(v.data); u.Drain == was.ID && u.Node == c.s.cfg.Node.Node {
		by = u.By
	}
	return by, err
}

// drained reads and watches the order that keeps this node out; nil: there is none.
func (c *ControlZnode) drained(ctx context.Context) (*Drained, <-chan zk.Event, error) {
	at := path.Join(DrainedDir(c.paths.Root), c.s.cfg.Node.Node)
	seen, err := c.s.existsW(ctx, at)
	if err != nil || !seen.exists {
		return nil, seen.changed, err
	}
	v, err := c.s.get(ctx, at)
	switch {
	case errors.Is(err, zk.ErrNoAuth): // other credentials made it
		v = seen
	case err == nil && !v.exists: // it has gone meanwhile
		err = errUnanswered
		fallthrough
	case err != nil:
		return nil, nil, err
	}
	return ReadDrained(v.data, v.stat), seen.changed, nil
}
