package election

import (
	"strconv"
	"strings"
	"time"

	"understudy/supervisor/printable"
)

// Control holds the orders of operators for a service.
type Control struct {
	Paused     bool        `json:"paused,omitempty"`  // nobody is promoted
	Stopped    bool        `json:"stopped,omitempty"` // and whoever is active stops
	Why        string      `json:"why,omitempty"`
	By         string      `json:"by,omitempty"`
	Since      *time.Time  `json:"since,omitempty"`
	Switchover *Switchover `json:"switchover,omitempty"` // pending
	Restart    *Order      `json:"restart,omitempty"`    // pending
	Reload     *Order      `json:"reload,omitempty"`     // pending
	Copy       *CopyOrder  `json:"copy,omitempty"`       // pending
	Confirmed  *Confirmed  `json:"confirmed,omitempty"`  // since the newest activation
	Before     *Pause      `json:"before,omitempty"`     // in force before the stop; the node that is active after the start restores it
}

// Pause is who has ordered one, and why.
type Pause struct {
	By    string     `json:"by,omitempty"`
	Why   string     `json:"why,omitempty"`
	Since *time.Time `json:"since,omitempty"`
}

// Words describe it.
func (p *Pause) Words() string { return Control{By: p.By, Why: p.Why}.Words() }

// Restores reports whether a pause comes back now that the service is started again.
func (c Control) Restores() bool { return c.Before != nil && !c.Paused && c.Switchover == nil }

// Confirmed says that an operator has confirmed a death: the program of the activation with this token.
type Confirmed struct {
	Node  string    `json:"node"`
	Token int64     `json:"token"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Order applies to the activation that it names, and to no later one. The node that has executed it removes it, unless it failed: then the
// command that gave it does.
type Order struct {
	ID     string `json:"id"`
	Token  int64  `json:"token"`
	By     string `json:"by,omitempty"`
	Failed string `json:"failed,omitempty"` // what went wrong
	Node   string `json:"node,omitempty"`   // whose copy is promoted again after a restart, or is meant; "": it is none
}

// CopyOrder has a node do something with its copy of a replicated program, which follows. A clone is of the promotion that Token names.
type CopyOrder struct {
	Order
	Do       string    `json:"do"`       // restart, reload, or reclone
	Deadline time.Time `json:"deadline"` // the command gives up then, and nothing is begun
}

// Switchover orders the active node to give the service to another one.
type Switchover struct {
	Order
	From     string    `json:"from"`
	To       string    `json:"to,omitempty"`    // empty: any node
	Force    bool      `json:"force,omitempty"` // To takes it although it is not fit, or backs off
	Deadline time.Time `json:"deadline"`        // the command gives up then
}

// Forces reports whether a node should become active although it is not fit.
func (c Control) Forces(node string) bool {
	return c.Switchover != nil && c.Switchover.Force && c.Switchover.To == node
}

// Words describe a pause or stop.
func (c Control) Words() string {
	words := "paused"
	if c.Stopped {
		words = "stopped"
	}
	if c.By != "" {
		words += " by " + c.By
	}
	if c.Why != "" {
		words += ": " + c.Why
	}
	return words
}

// Merge writes the orders over old ones, and keeps keys that only other versions know.
func (c Control) Merge(old []byte) []byte {
	return merge(old, c, "paused", "stopped", "why", "by", "since", "switchover", "restart", "reload", "copy", "confirmed", "before")
}

// LongestReason is how many bytes of a text of an order count: each node logs it, and each status shows it.
const LongestReason = 1000

// cut shortens texts of an order, which any client that may write to ZooKeeper has written.
func cut(texts ...*string) {
	for _, text := range texts {
		if len(*text) > LongestReason {
			*text = strings.ToValidUTF8((*text)[:LongestReason], "") + "..."
		}
	}
}

func (o *Order) cut() {
	if o != nil {
		cut(&o.By, &o.Failed)
	}
}

// ParseControl reads the control znode. If it cannot be read, the service pauses: an operator wanted something.
func ParseControl(data []byte) Control {
	if len(data) == 0 {
		return Control{}
	}
	c, err := decode[Control](data)
	if err != nil {
		return Control{Paused: true, Why: "the control znode cannot be read"}
	}
	cut(&c.Why, &c.By)
	c.Stopped = c.Stopped && c.Paused // one that does not know the word has resumed it
	if c.Paused && !c.Stopped {
		c.Before = nil // it is over
	}
	if c.Before != nil {
		cut(&c.Before.Why, &c.Before.By)
	}
	c.Restart.cut()
	c.Reload.cut()
	if c.Switchover != nil {
		c.Switchover.cut()
		cut(&c.Switchover.From, &c.Switchover.To) // no node has such a name
	}
	if c.Confirmed != nil {
		cut(&c.Confirmed.By, &c.Confirmed.Node)
	}
	return c
}

// Intents decide which node may take a free lock.
type Intents struct {
	Control   Control
	version   int32          // of the control znode
	Preferred map[string]int // nodes that are fit to run the service, with their priorities; without those of priority 0
	Drained   *Drained       // why this node is to stay out of all services; nil: it is not
	Undrained string         // who has ended that just now; "": nobody, or nobody says it was them
}

// Rival is a node that is preferred to one with the given priority, or "".
func (i Intents) Rival(self string, priority int) string {
	rival := ""
	for node, p := range i.Preferred {
		if node != self && (p > priority || p == priority && rival != "" && node < rival) {
			rival, priority = node, p
		}
	}
	return rival
}

// Priorities parses names such as 10-db-1. The znodes hold no data: their names are enough.
func Priorities(names []string) map[string]int {
	all := map[string]int{}
	for _, name := range names {
		digits, node, _ := strings.Cut(name, "-")
		if p, err := strconv.Atoi(digits); err == nil && p > all[node] && printable.IsName(node) {
			all[node] = p
		}
	}
	return all
}
