package box

import (
	"context"
	"errors"
	"time"

	"understudy/supervisor/guard"
)

// Kinds of containment, best first.
const (
	KindCgroup = "cgroup" // a cgroup v2: the kernel kills all of it at once
	KindPidNS  = "pidns"  // a PID namespace: its init dies, the kernel kills all of it
	KindWalk   = "walk"   // a subreaper and walks of /proc: the last resort
)

// Container is the containment of trees on this host, as found by containment.Choose.
type Container struct {
	Kind    string `json:"kind"`
	Why     string `json:"why,omitempty"`     // why nothing better
	Base    string `json:"base,omitempty"`    // cgroup: where those of trees are made
	UserNS  bool   `json:"userns,omitempty"`  // pidns: in a user namespace, for want of privilege
	MountNS bool   `json:"mountns,omitempty"` // pidns: with a /proc of its own
}

// ErrUnproved says that a death was ordered but not proved. It never means dead.
var ErrUnproved = guard.ErrUnproved

// Box is a process or container that can be killed whole.
type Box interface {
	guard.Killable // its KillNow is order, and also kills processes that order may leave out, if it finds them
	// Order orders the death of everything in it. It neither waits nor looks, because other orders follow it.
	Order() error
	// Wake returns the descriptor to poll for news of the death, and the longest time until the next look.
	Wake() (fd int, events int16, patience time.Duration)
	Close()
}

// ErrNotSeen says that no live process of a tree was found. That is no proof: the lease of its supervisor has to end first.
var ErrNotSeen = errors.New("no live process is seen")

// Awaited is a box whose death this process waits for.
type Awaited struct{ Box }

// Wait implements guard.Awaited.
func (b Awaited) Wait(context.Context) {
	fd, events, patience := b.Wake()
	Sleep(fd, events, min(patience, 20*time.Millisecond))
}

// KillUntilDead kills a box until its death is proved; with remove, it also removes the container.
func KillUntilDead(ctx context.Context, b Box, remove bool) error {
	return guard.KillUntilDead(ctx, Awaited{b}, remove)
}
