package guard

import (
	"errors"
	"time"
)

// Errors that a caller may branch on.
var (
	ErrLeaseEnded = errors.New("the lease has ended")
	ErrNoLease    = errors.New("no lease has arrived yet")
	// ErrUnknownEpoch says that an epoch has not begun, or is finished.
	ErrUnknownEpoch = errors.New("no such epoch")
)

// Op says what a message is about. An upgraded supervisor speaks to the guardians of its previous image: the words stay as they are.
type Op string

// From a supervisor to its guardians.
const (
	OpSetup    Op = "setup"    // who you are
	OpTwin     Op = "twin"     // the other guardian, which comes along
	OpBegin    Op = "begin"    // a new epoch, with the ticket that closes its session
	OpExtend   Op = "extend"   // the epoch's deadline
	OpFinish   Op = "finish"   // the epoch is over and nothing is to be closed
	OpEnd      Op = "end"      // end the epoch now
	OpTree     Op = "tree"     // a new tree
	OpJoin     Op = "join"     // something alive joins a tree; what it takes to hold that comes along
	OpShed     Op = "shed"     // one of those is proved dead
	OpDrop     Op = "drop"     // the tree is proved dead and its container removed
	OpEffects  Op = "effects"  // the tree's processes may have effects; Ticket says how to undo them
	OpSettled  Op = "settled"  // of a dead tree: they are undone (OK), or the supervisor keeps them for its next session
	OpWatchdog Op = "watchdog" // feed the watchdog that comes along
	OpUnwatch  Op = "unwatch"  // let go of it
	OpArm      Op = "arm"      // the watchdog is for this tree; Grace is until when after the lease
	OpMove     Op = "move"     // from now on the tree lives under this epoch; Release replaces the previous one
	OpPing     Op = "ping"     // answer, to show that you are awake
)

// From a guardian to its supervisor.
const (
	OpAck    Op = "ack"    // everything up to Seq is done
	OpNack   Op = "nack"   // Seq is refused; of a new tree, or of what joins one, Tree says which
	OpEnded  Op = "ended"  // the epoch has ended; every tree of it is being killed
	OpCloser Op = "closer" // how closing the epoch's session went
)

// Message is one packet. Packets keep their order, so one acknowledgement covers all before it.
type Message struct {
	Op       Op            `json:"op"`
	Seq      uint64        `json:"seq,omitempty"`
	Epoch    uint64        `json:"epoch,omitempty"`
	Tree     uint64        `json:"tree,omitempty"`
	Deadline time.Duration `json:"deadline,omitempty"`
	Ticket   []byte        `json:"ticket,omitempty"`
	Release  []byte        `json:"release,omitempty"`
	Box      *Ref          `json:"box,omitempty"`
	Name     string        `json:"name,omitempty"` // of a tree, for the log
	Log      *LogStyle     `json:"log,omitempty"`  // of a setup
	Why      string        `json:"why,omitempty"`
	Refusal  Refusal       `json:"refusal,omitempty"`
	Index    int           `json:"index,omitempty"` // of a guardian, or of a step
	Grace    time.Duration `json:"grace,omitempty"`
	Number   int           `json:"number,omitempty"` // stubs only: a signal, errno, wait status or pid
	OK       bool          `json:"ok,omitempty"`     // it was closed; of an epoch that begins: it is over; of a ping: everything is told

	Along any `json:"-"` // what travels beside it: a descriptor, or what the simulation has in its place
}

// LogStyle is how the supervisor writes its log, for what a guardian has to say after it.
type LogStyle struct {
	JSON  bool   `json:"json,omitempty"`
	Level string `json:"level"`
}

// Ref names a box to another process.
type Ref struct {
	Kind  string `json:"kind"`
	Path  string `json:"path,omitempty"`
	Inode uint64 `json:"inode,omitempty"`
	Pid   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
}

// Refusal is the reason of a refusal, as far as a supervisor branches on it.
type Refusal int

// The refusals that have a meaning of their own.
const (
	Refused           Refusal = iota // the text says why
	RefusedLeaseEnded                // ErrLeaseEnded
	RefusedNoLease                   // ErrNoLease
	RefusedWord                      // it is of an image that does not know the order
)

// refuse makes the answer to a refused message.
func refuse(m *Message, err error) *Message {
	nack := &Message{Op: OpNack, Seq: m.Seq, Epoch: m.Epoch, Why: err.Error()}
	switch {
	case errors.Is(err, ErrLeaseEnded):
		nack.Refusal = RefusedLeaseEnded
	case errors.Is(err, ErrNoLease):
		nack.Refusal = RefusedNoLease
	case errors.Is(err, errUnknownOrder):
		nack.Refusal = RefusedWord
	}
	if m.Op == OpTree || m.Op == OpJoin || m.Op == OpEffects {
		nack.Tree = m.Tree
	}
	return nack
}

// Err is the error of a refusal for the caller.
func (m *Message) Err() error {
	switch m.Refusal {
	case RefusedLeaseEnded:
		return ErrLeaseEnded
	case RefusedNoLease:
		return ErrNoLease
	}
	return errors.New(m.Why)
}
