package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// ErrRefused says that an order makes no sense now.
var ErrRefused = errors.New("refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Handover is a switchover that was asked for.
type Handover struct {
	Service string
	To      string // empty: whoever is first
	Force   bool   // although the target does not look fit
	By      string
	Tell    func(step string) // progress, in words
}

// Ready tells whether the handover can be ordered, and from whom to whom.
func (c *Cluster) Ready(ctx context.Context, h Handover) (Service, error) {
	s, err := c.Status(ctx, h.Service)
	if err != nil {
		return Service{}, err
	}
	v := s.Services[0]
	able := slices.ContainsFunc(v.Members, func(m Member) bool { return m.Node != v.Active && waits(m) && m.Health == election.HealthOK })
	switch {
	case v.Paused:
		return v, refused("%s is %s: `understudy resume %s` first", h.Service, v.Order, h.Service)
	case v.Active == "" && v.Lock != "":
		return v, refused("nobody is active yet: %s is about to be", v.Lock)
	case v.Active == "" && able:
		return v, refused("nobody is active; whoever can will be, without an order")
	case v.Active == "" && (h.To == "" || !h.Force):
		return v, refused("nobody is active, and no node can be now: %s (--to NODE --force has one try at once)", others(v))
	case h.To == v.Active:
		return v, refused("%s is active already", h.To)
	case h.To == "" && !able && !h.Force:
		return v, refused("nobody else could take %s: %s", h.Service, others(v))
	case h.To == "":
		return v, nil
	}
	i := slices.IndexFunc(v.Members, func(m Member) bool { return m.Node == h.To })
	switch {
	case i < 0:
		return v, &UnknownError{"node", h.To, names(v.Members)}
	case v.Members[i].Never:
		return v, refused("%s never stands: %s", h.To, v.Members[i].Why)
	case h.Force:
	case !waits(v.Members[i]):
		return v, refused("%s does not stand by: it is %s%s (--force orders it all the same)", h.To, v.Members[i].Role, because(v.Members[i]))
	case v.Members[i].Health != election.HealthOK:
		return v, refused("%s is %s%s (--force orders it all the same)", h.To, v.Members[i].Health, because(v.Members[i]))
	}
	return v, nil
}

// waits tells whether a node waits for the lock. One that is paused may not have heard yet that the pause is over.
func waits(m Member) bool { return m.Role == election.RoleStandby || m.Role == election.RolePaused }

func because(m Member) string {
	if m.Why == "" {
		return ""
	}
	return ", " + m.Why
}

func names(members []Member) (all []string) {
	for _, m := range members {
		all = append(all, m.Node)
	}
	return all
}

func others(v Service) string {
	var all []string
	for _, m := range v.Members {
		if m.Node != v.Active {
			all = append(all, m.Node+" is "+string(m.Role)+because(m))
		}
	}
	if len(all) == 0 {
		return "no other node has it"
	}
	return strings.Join(all, "; ")
}

// Switchover orders a handover, and waits until another node is active, or until ctx ends: then the order is taken back if
// nobody has followed it yet. The service ends up running somewhere in any case.
func (c *Cluster) Switchover(ctx context.Context, h Handover) (to string, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return "", errors.New("a switchover needs a deadline")
	}
	before, err := c.Ready(ctx, h)
	if err != nil {
		return "", err
	}
	order := election.Order{ID: rand.Text(), Token: before.Token, By: h.By}
	paused := false
	err = c.order(ctx, h.Service, func(o election.Control) (election.Control, bool) {
		if paused = o.Paused; paused { // since it was looked at: it would be followed when that ends, whenever that is
			return o, false
		}
		o.Switchover = &election.Switchover{Order: order, From: before.Active, To: h.To, Force: h.Force, Deadline: deadline.UTC()}
		return o, true
	})
	defer c.takeBack(ctx, h.Service, order.ID) // also when another became active before it was written
	if err == nil && paused {
		err = refused("%s was paused just now", h.Service)
	}
	if err != nil {
		return "", err
	}
	return c.handedOver(ctx, h, before)
}

// takeBack removes an order that nobody waits for any more.
func (c *Cluster) takeBack(ctx context.Context, service, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = c.order(ctx, service, func(o election.Control) (election.Control, bool) {
		switch {
		case o.Switchover != nil && o.Switchover.ID == id:
			o.Switchover = nil
		case o.Restart != nil && o.Restart.ID == id:
			o.Restart = nil
		case o.Reload != nil && o.Reload.ID == id:
			o.Reload = nil
		default:
			return o, false
		}
		return o, true
	})
}

// lookEvery is how often an order is looked at until it is done.
const lookEvery = 50 * time.Millisecond

// handedOver follows a switchover to its end.
func (c *Cluster) handedOver(ctx context.Context, h Handover, before Service) (string, error) {
	told := ""
	tell := func(step string) {
		if step != told {
			told = step
			h.Tell(step)
		}
	}
	if before.Active == "" {
		tell(h.To + " is to take " + h.Service)
	} else {
		tell(before.Active + " is asked to give " + h.Service + " away")
	}
	var took Member // who had it meanwhile, as it was when it was last seen
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		s, err := c.Status(ctx, h.Service)
		if err != nil {
			return "", late(err, told)
		}
		v := s.Services[0]
		now := member(v, v.Active)
		if m := member(v, took.Node); m.Role == election.RoleFailed {
			took = m
		}
		switch {
		case v.Active == "" && took.Node != "":
			tell(took.Node + " had taken it, and is " + state(took))
		case v.Active != "" && v.Token != before.Token && v.Active == before.Active && took.Node != "":
			return "", fmt.Errorf("%s is active again on %s: %s had taken it, and is %s", h.Service, v.Active, took.Node, state(took))
		case v.Active != "" && v.Token != before.Token && v.Active == before.Active:
			return "", fmt.Errorf("%s is active again on %s: nobody else took it", h.Service, v.Active)
		case v.Active != "" && v.Token != before.Token && settled(v):
			if h.To != "" && v.Active != h.To {
				return v.Active, fmt.Errorf("%s runs on %s now, not on %s%s", h.Service, v.Active, h.To, fate(v, h.To))
			}
			return v.Active, nil
		case v.Active == before.Active && now.Role == election.RoleStopping:
			tell(v.Active + " is stopping it" + because(now))
		case v.Active != "" && v.Active == before.Active:
		case v.Active != "" && now.Health == election.HealthFailing:
			took = now
			tell(v.Active + " has taken it, and it is " + state(now))
		case v.Active != "":
			took = now
			tell(v.Active + " has taken it, and is starting it")
		case v.Lock != "":
			tell(v.Lock + " holds the lock")
		case before.Active != "":
			tell(before.Active + " has stopped it")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", late(context.Cause(ctx), told)
		}
	}
}

// late tells how far an order had come when it was not waited for any longer.
func late(err error, told string) error { return fmt.Errorf("%s: %w", told, err) }

// member is what a node says of itself; one of which nothing is known has its name only.
func member(v Service, node string) Member {
	for _, m := range v.Members {
		if m.Node == node {
			return m
		}
	}
	return Member{Node: node}
}

// state is how a node is that does not do what it was to do.
func state(m Member) string {
	how := string(m.Role)
	if m.Role == election.RoleActive || m.Role == election.RoleStandby || m.Role == "" {
		how = string(cmp.Or(m.Health, election.HealthUnknown))
	}
	return how + because(m)
}

// fate tells why a node that was to take a service has not got it, if it says so.
func fate(v Service, node string) string {
	if m := member(v, node); m.Role == election.RoleFailed || m.Health != election.HealthOK {
		return ": " + node + " is " + state(m)
	}
	return ""
}

// settled tells whether the active node says that what runs there is ready: what it said of a former activation does not count.
func settled(v Service) bool {
	m := member(v, v.Active)
	return m.Role == election.RoleActive && m.Health == election.HealthOK && (m.Token == 0 || m.Token == v.Token)
}

// Restart orders a new start of the child where it is, and Reload its reload signal; they return once that is done.
func (c *Cluster) Restart(ctx context.Context, service, by string) error {
	return c.orderActive(ctx, service, by, func(o *election.Control) **election.Order { return &o.Restart })
}

// Reload orders that the child be sent its reload signal.
func (c *Cluster) Reload(ctx context.Context, service, by string) error {
	return c.orderActive(ctx, service, by, func(o *election.Control) **election.Order { return &o.Reload })
}

func (c *Cluster) orderActive(ctx context.Context, service, by string, field func(*election.Control) **election.Order) (err error) {
	s, err := c.Status(ctx, service)
	if err != nil {
		return err
	}
	v := s.Services[0]
	if v.Active == "" {
		return refused("nobody is active")
	}
	id := rand.Text()
	err = c.order(ctx, service, func(o election.Control) (election.Control, bool) {
		*field(&o) = &election.Order{ID: id, Token: v.Token, By: by}
		return o, true
	})
	defer func() {
		if err != nil {
			c.takeBack(ctx, service, id)
		}
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for err == nil {
		n, readErr := c.read(ctx, election.Paths{Root: c.root, Service: service}.Control())
		if readErr != nil {
			return readErr
		}
		control := election.ParseControl(n.data)
		if e := *field(&control); e == nil || e.ID != id {
			return c.still(ctx, v)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = fmt.Errorf("%s has not done it yet%s: %w", v.Active, c.meanwhile(ctx, v), context.Cause(ctx))
		}
	}
	return err
}

// meanwhile tells how an active node is that does not get ready.
func (c *Cluster) meanwhile(ctx context.Context, before Service) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	s, err := c.Status(ctx, before.Service)
	if err != nil {
		return ""
	}
	if m := member(s.Services[0], before.Active); m.Role != election.RoleActive || m.Health != election.HealthOK {
		return ", it is " + state(m)
	}
	return ""
}

// still fails when another activation has taken the order's away.
func (c *Cluster) still(ctx context.Context, before Service) error {
	s, err := c.Status(ctx, before.Service)
	if err == nil && s.Services[0].Token != before.Token {
		err = fmt.Errorf("%s was active no longer: nothing was done", before.Active)
	}
	return err
}
