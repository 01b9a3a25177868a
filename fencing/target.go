package fencing

import (
	"encoding/json"
	"fmt"

	"understudy/supervisor/printable"
)

// Target is the child that a breadcrumb names: it may still be running.
type Target struct {
	Root        string // of the cluster in ZooKeeper
	Service     string
	Node        string // the supervisor's name in the set
	Host        string
	Machine     string // the machine id, the same across boots
	Boot        string // the boot id
	Token       int64  // the fencing token of the activation
	GuardianPid int
	Address     string // where its agent listens, if anywhere
	Session     string
	Tree        json.RawMessage // how its machine finds the child's process tree
	Seen        ProcessID       // a process that is alive by the breadcrumb
	Survive     []string        // effects that another boot of its machine does not undo
	By          Claimant
}

// ProcessID is a process of a child that was seen alive, by its machine's numbers.
type ProcessID struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start,omitempty"` // 0: unknown
}

// Claimant is the node that holds the lock now, and asks.
type Claimant struct {
	Node  string
	Token int64
}

// plain fails if a word of a breadcrumb could change the meaning of the text around it: breadcrumbs come from outside.
func (t Target) plain() error {
	for _, w := range []struct {
		text  string
		plain func(string) bool
	}{
		{t.Service, printable.IsName}, {t.Node, printable.IsName}, {t.Host, printable.IsHost}, {t.Machine, printable.IsName},
		{t.Boot, printable.IsName}, {t.Session, printable.IsName}, {t.Address, printable.IsAddress},
	} {
		if w.text != "" && !w.plain(w.text) {
			return fmt.Errorf("the record of the active node has %q, which cannot be passed on: letters, digits and . _ @ : "+
				"- are allowed, and neither . nor - at the beginning", w.text)
		}
	}
	return nil
}
