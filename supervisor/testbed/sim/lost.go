package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"understudy/supervisor/config"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// In one of three seeds in which services do what outlives their processes, the device that they do it to goes away for a while, or loses
// its link, as that of an address.

// devices adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) devices() {
	r := rand.New(rand.NewPCG(p.Seed, 53))
	if p.Undo == 0 || r.IntN(3) > 0 {
		return
	}
	p.Devices = true
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(3) {
			f := Fault{Kind: LoseDevice, Active: r.IntN(4) > 0, Node: r.IntN(p.Nodes), Server: -1, N: r.IntN(1 << 16)}
			f.At, f.For = drawn(r, e.Length), drawn(r, 4*p.Timeout)
			e.Length = max(e.Length, f.At+f.For)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

var errNoDevice = errors.New("there is no device")

// loseDevice takes a node's device away, and with it what was done to it; or its link. What watches it may end the program. World.mu is
// held, as it is at the end.
func (hf *hostFaults) loseDevice(f Fault, n *node) (end func(), done bool) {
	if n.bare {
		return nil, false
	}
	hf.say("%v", f)
	n.bare = true
	if f.N%2 == 0 {
		hf.check.effects.fenced(n.name)
	}
	if f.N/2%2 == 0 {
		hf.killChildren(n.host)
	}
	return func() {
		hf.say("over: %v", f)
		n.bare = false
	}, true
}

// lacks is why a node could not start a service now; nil: it is not looked at.
func (i *incarnation) lacks() func(config.Service) error {
	n := i.node
	if !n.w.plan.Devices {
		return nil
	}
	return func(config.Service) error {
		if !i.pass() {
			return nil
		}
		n.w.mu.Lock()
		defer n.w.mu.Unlock()
		if n.bare {
			return errNoDevice
		}
		return nil
	}
}

// links tells of a device that is away, as the program does that holds an address; nil: it is not looked at.
func (i *incarnation) links() service.Links {
	n := i.node
	if !n.w.plan.Devices {
		return nil
	}
	return func(ctx context.Context, _ string, tell func(why string)) {
		for wait.For(ctx, lookForDevice) && i.pass() {
			why := ""
			n.w.mu.Lock()
			if n.bare {
				why = errNoDevice.Error()
			}
			n.w.mu.Unlock()
			tell(why)
		}
	}
}

const lookForDevice = time.Second

// withoutDevice is how what needs a node's device fails while that is away; 0: it does not.
func (w *world) withoutDevice(t *tree, program string) (code int) {
	if program != effectProgram || !w.nodes[w.indexOf(t.node)].bare {
		return 0
	}
	return config.ExitUnfit
}

// deviceTakes is how long it may be until a node looks again whether its device is there.
func (p *Plan) deviceTakes() time.Duration {
	if !p.Devices {
		return 0
	}
	return 10 * time.Second
}
