package election

import (
	"strconv"
	"strings"
	"time"
)

// Control is what operators want of a service.
type Control struct {
	Paused     bool        `json:"paused,omitempty"` // nobody is promoted
	Why        string      `json:"why,omitempty"`
	By         string      `json:"by,omitempty"`
	Since      *time.Time  `json:"since,omitempty"`
	Switchover *Switchover `json:"switchover,omitempty"` // pending
	Restart    *Order      `json:"restart,omitempty"`    // pending
	Reload     *Order      `json:"reload,omitempty"`     // pending
}

// Order is an order for the activation that it names, and for no later one. Whoever has carried it out removes it.
type Order struct {
	ID    string `json:"id"`
	Token int64  `json:"token"`
	By    string `json:"by,omitempty"`
}

// Switchover orders the active node to give the service to another one.
type Switchover struct {
	Order
	From     string    `json:"from"`
	To       string    `json:"to,omitempty"`    // empty: whoever is first
	Force    bool      `json:"force,omitempty"` // To takes it though it is not fit, or rests
	Deadline time.Time `json:"deadline"`        // until when it is waited for
}

// Forces tells whether a node is to become active although it is not fit.
func (c Control) Forces(node string) bool {
	return c.Switchover != nil && c.Switchover.Force && c.Switchover.To == node
}

// Words tell of a pause.
func (c Control) Words() string {
	words := "paused"
	if c.By != "" {
		words += " by " + c.By
	}
	if c.Why != "" {
		words += ": " + c.Why
	}
	return words
}

// Merge writes what is wanted over what was there, and keeps what only other versions know.
func (c Control) Merge(old []byte) []byte {
	return merge(old, c, "paused", "why", "by", "since", "switchover", "restart", "reload")
}

// ParseControl reads the control znode. One that cannot be read pauses: it was written to say something.
func ParseControl(data []byte) Control {
	if len(data) == 0 {
		return Control{}
	}
	c, err := decode[Control](data)
	if err != nil {
		return Control{Paused: true, Why: "the control znode cannot be read"}
	}
	return c
}

// Intents are what bears on who may take a service's lock, besides its being free.
type Intents struct {
	Control   Control
	version   int32          // of the control znode
	Preferred map[string]int // nodes that are fit to run the service, by their priority; those of priority 0 are not in it
}

// Rival is the node that is preferred to one with the given priority, or "".
func (i Intents) Rival(self string, priority int) string {
	rival := ""
	for node, p := range i.Preferred {
		if node != self && (p > priority || p == priority && rival != "" && node < rival) {
			rival, priority = node, p
		}
	}
	return rival
}

// preferred reads names such as 10-db-1. The znodes hold nothing: a look at their names is all that it takes.
func preferred(names []string) map[string]int {
	all := map[string]int{}
	for _, name := range names {
		digits, node, _ := strings.Cut(name, "-")
		if p, err := strconv.Atoi(digits); err == nil && p > all[node] {
			all[node] = p
		}
	}
	return all
}
