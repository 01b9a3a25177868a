package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// Service is one service on this node, over all sessions. What is not said to be safe is for the goroutine that serves it.
type Service struct {
	node  *Node
	name  string
	log   hclog.Logger
	conf  Conf       // as it is in force
	state role.State // decides
	mem   memory
	view  view
	inbox inbox
	unit  *unit.Unit
	trees trees

	carried *Carried // a term that was handed over, until it goes on
	undead  undead   // a tree whose death is not proved yet

	stance   atomic.Int32 // what an upgrade would find; safe
	removed  atomic.Bool  // it is not in the config any more; safe
	finished *child.ExitStatus
}

// memory is what outlives a term and a session, and is not shown as such.
type memory struct {
	begun    bool                      // it has had its first stay, if in a former image of this process
	birth    election.Birth            // of the service's folder, as last seen
	place    election.CarriedCandidate // what the former candidate could not take back
	token    int64                     // of the newest term
	fenced   string                    // how the former active was known to be dead then
	failure  string                    // why it was given up here
	restarts restarts
	relapses relapses
	orders   carriedOut
	rivalBy  time.Time  // until then, assume that a preferred node is gone: it did not take a free lock
	engaged  bool       // nothing of this service is promised to others
	words    *lastWords // on a term whose end is not in the history
}

// undead is a tree whose death is not proved, and the lease that it belongs to.
type undead struct {
	tree  unit.Tree // nil: there is none
	epoch uint64
	seen  string // what is seen alive, in words; also of a tree that is no one of ours
}

// ErrUndead says that something of a child may be alive: the session must then not be closed.
var ErrUndead = errors.New("the child's death is not proved")

// ErrHandover ends a stay in a session without the child's end, if that can be; otherwise it is a stop.
var ErrHandover = errors.New("another image of this process is to go on")

func handing(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrHandover) }

// New makes a service of its config.
func New(node *Node, conf Conf) *Service {
	v := &Service{
		node: node, name: conf.Name, log: node.Logger, conf: conf, view: newView(), inbox: newInbox(conf),
		unit: unit.New(unit.Config{
			Service: conf.Name, Node: node.Self.Node, Cluster: node.Cluster, Logger: node.Logger, Hurry: node.Hurry, Commands: node.Commands,
		}),
	}
	v.mem.restarts.cfg = conf.Restart
	return v
}

// Name is the service's. It is safe.
func (v *Service) Name() string { return v.name }

// Given is the config that the service was last given, in force or about to be. It is safe.
func (v *Service) Given() Conf { return v.inbox.given() }

// Give hands it a changed config. It is safe.
func (v *Service) Give(c Conf) { v.inbox.give(c) }

// Remove says that it is not in the config any more. It is safe.
func (v *Service) Remove() { v.removed.Store(true) }

// Removed tells whether that was said. It is safe.
func (v *Service) Removed() bool { return v.removed.Load() }

// Undead is an error while something of it may be alive. It does not serve.
func (v *Service) Undead() error {
	if v.undead.tree == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", v.name, ErrUndead)
}

// Gone tells whether nothing is left of a service that was removed. It does not serve.
func (v *Service) Gone() bool {
	return v.removed.Load() && v.carried == nil && v.undead.tree == nil && v.undead.seen == ""
}

// Birth is that of the folder that the service has seen; SetBirth is for a namesake that comes after it.
func (v *Service) Birth() election.Birth { return v.mem.birth }

// SetBirth tells a service that has seen none which folder to expect. It does not serve.
func (v *Service) SetBirth(b election.Birth) {
	if v.mem.birth == (election.Birth{}) {
		v.mem.birth = b
	}
}

// Finished is how the command ended that was to run once, or nil. It does not serve.
func (v *Service) Finished() *child.ExitStatus { return v.finished }

// Once tells whether its command's own end ends it.
func (v *Service) Once() bool { return v.conf.Once }

// Carries tells whether a term is about to go on here.
func (v *Service) Carries() bool { return v.carried != nil }

// Close ends what it may have left running beside its terms.
func (v *Service) Close() { v.unit.Close() }

// Serve is a candidate, and runs terms, until the session or the supervisor ends. It fails only with ErrUndead.
func (v *Service) Serve(ctx context.Context, s Session) error {
	v.state.Carried = v.carried != nil
	role.Drive(ctx, v.state, newHands(ctx, v, s))
	if v.state.Undead && (v.undead.tree == nil || v.undead.epoch == s.Epoch) { // what a former session left is not this one's to keep
		return fmt.Errorf("%s: %w: %s", v.name, ErrUndead, v.undead.seen)
	}
	return nil
}

// takeUp makes a changed config the service's own, and tells whether there was one.
func (v *Service) takeUp() bool {
	next, ok := v.inbox.takeUp(v.conf.Precheck)
	if !ok {
		return false
	}
	v.conf = next
	v.mem.relapses.reset() // what did not work may work now
	v.mem.restarts.cfg = next.Restart
	return true
}
