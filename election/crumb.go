package election

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"understudy/supervisor/printable"
)

// BreadCrumb says which node's child may be running. A node writes it
// before a child starts, and removes it only after the whole tree is dead.
type BreadCrumb struct {
	Node        string          `json:"node"`
	Host        string          `json:"host"`
	Machine     string          `json:"machine,omitempty"`
	Boot        string          `json:"boot,omitempty"`
	Token       int64           `json:"token,omitempty"` // absent until known: then it is the breadcrumb's own czxid
	GuardianPid int             `json:"guardian_pid,omitempty"`
	Agent       string          `json:"agent,omitempty"`
	LeaseMs     int64           `json:"lease_ms"`
	Beat        int64           `json:"beat,omitempty"` // the czxid of nodes/<node>, which the lease rests on
	Session     string          `json:"session,omitempty"`
	Name        string          `json:"record,omitempty"` // its own: record-<guid> is the znode that transactions check
	Tree        json.RawMessage `json:"tree,omitempty"`   // how the node's machine finds the child's process tree
	Since       time.Time       `json:"since"`
	Failsafe    *Failsafe       `json:"failsafe,omitempty"` // its writer may outlast ZooKeeper; absent: it may not
	Leftover    Leftover        `json:"leftover,omitzero"`  // something of the tree is known to be alive
	Effects
}

// ReadBreadCrumb reads a breadcrumb, wholly or not at all: with an error it is empty, and an unknown node wrote it, whose child may be
// running (P5). All fields that a proof of death relies on have to be
// valid. What forbids a delay is read even from a breadcrumb with an error.
func ReadBreadCrumb(data []byte) (BreadCrumb, error) {
	b, err := decode[BreadCrumb](data)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		var proofs struct {
			Leftover    Leftover    `json:"leftover"`
			EffectsLeft EffectsLeft `json:"effects_left"`
			NeedProof   EffectsLeft `json:"needs_proof"`
			Survive     EffectsLeft `json:"survives_boot"`
		}
		_ = json.Unmarshal(data, &proofs)
		return BreadCrumb{
			Leftover: proofs.Leftover, Effects: Effects{Left: proofs.EffectsLeft, NeedProof: proofs.NeedProof, Survive: proofs.Survive},
		}, fmt.Errorf("read a breadcrumb: %w", err)
	}
	eachLine(b.Names)
	return b, nil
}

func (b BreadCrumb) check() error {
	if _, err := sessionOf(b.Session); b.Session != "" && err != nil { // without one nobody knows whether it is over
		return err
	}
	switch {
	case !printable.IsName(b.Node):
		return fmt.Errorf("%.80q is not a node name", b.Node)
	case b.Host != "" && !printable.IsHost(b.Host):
		return fmt.Errorf("%.80q is not a host name", b.Host)
	case b.Agent != "" && !printable.IsAddress(b.Agent):
		return fmt.Errorf("%.80q is not an agent's address", b.Agent)
	case b.Machine != "" && !printable.IsName(b.Machine), b.Boot != "" && !printable.IsName(b.Boot):
		return fmt.Errorf("%.80q and %.80q are not a machine's id and its boot's", b.Machine, b.Boot)
	case b.Name != "" && !printable.IsName(b.Name):
		return fmt.Errorf("%.80q is not the name of a record", b.Name)
	case b.LeaseMs < 0 || b.LeaseMs > math.MaxInt32: // the limit of ZooKeeper's protocol
		return fmt.Errorf("%d ms is not a lease", b.LeaseMs)
	case b.Token < 0:
		return fmt.Errorf("%d is not a token", b.Token)
	case b.UndoMs < 0 || b.UndoMs > math.MaxInt32:
		return fmt.Errorf("%d ms is not how long effects take to be undone", b.UndoMs)
	case b.Machine != "" && b.Boot == "":
		return errors.New("it names a machine, but no boot")
	}
	return nil
}

// sessionOf is the session that SessionName gave this name.
func sessionOf(name string) (int64, error) {
	digits, _ := strings.CutPrefix(name, "0x")
	id, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || id == 0 || SessionName(int64(id)) != name {
		return 0, fmt.Errorf("%.80q is not a session id", name)
	}
	return int64(id), nil
}
