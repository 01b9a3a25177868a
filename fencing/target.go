package fencing

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Target is whoever a breadcrumb names: the child that may still be running, and where.
type Target struct {
	Service        string
	Node           string // the supervisor's name in the set
	Host           string
	Machine        string // the machine id, the same across boots
	Boot           string // the boot id
	Token          int64  // the fencing token of the activation
	GuardianPid    int
	Address        string        // where its agent listens, if anywhere
	SessionTimeout time.Duration // of the session that held the lock
	Session        string
	Tree           json.RawMessage // how its machine finds the child's process tree
	Seen           Process         // what its breadcrumb tells to be alive
	By             Claimant
}

// Process is one that was seen alive of a child, by the numbers of its machine.
type Process struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start,omitempty"` // 0: unknown
}

// Claimant is who holds the lock now, and asks.
type Claimant struct {
	Node  string
	Token int64
}

var plainWord, plainAddress = regexp.MustCompile(`^[A-Za-z0-9._@:-]*$`), regexp.MustCompile(`^[][A-Za-z0-9._:%-]*$`)

// plain fails when what a breadcrumb says could mean something else where it is put in: breadcrumbs come from outside.
func (t Target) plain() error {
	words := []string{t.Service, t.Node, t.Host, t.Machine, t.Boot, t.Session, t.Address}
	for i, word := range words {
		allowed := plainWord
		if i == len(words)-1 {
			allowed = plainAddress
		}
		if !allowed.MatchString(word) {
			return fmt.Errorf("the breadcrumb says %q, which cannot be handed on: letters, digits and . _ @ : - are allowed", word)
		}
	}
	return nil
}
