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
	"understudy/supervisor/printable"
	"understudy/supervisor/wait"
)

// ErrRefused says that an order makes no sense now.
var ErrRefused = errors.New("refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// SwitchoverRequest is a switchover that was asked for.
type SwitchoverRequest struct {
	Service string
	To      string // empty: the first node that takes it
	Force   bool   // although the target does not look fit
	First   bool   // Force, where no copy was promoted before
	By      string
	Tell    func(step string) // progress, in words
}

// Ready tells whether the handover can be ordered, and from whom to whom. It tells what a forced one may lose.
func (c *Cluster) Ready(ctx context.Context, h SwitchoverRequest) (ServiceStatus, error) {
	v, err := c.one(ctx, h.Service)
	if err != nil {
		return ServiceStatus{}, err
	}
	copies, _, first, err := c.copies(ctx, h.Service)
	if err == nil && h.First {
		err = begins(h, copies, first)
		h.Force = true
	}
	if err != nil {
		return v, err
	}
	forced := h.Force && h.To != ""
	able := slices.ContainsFunc(v.Members, func(m MemberStatus) bool { return m.Node != v.Active && fit(m) })
	choose := map[bool]string{true: "--first begins with NODE's copy", false: "--force promotes NODE whatever data it has"}[first]
	switch {
	case v.Stopped:
		return v, refused("%s is %s: `understudy start %s` first", h.Service, v.Order, h.Service)
	case v.Paused:
		return v, refused("%s is %s: `understudy resume %s` first", h.Service, v.Order, h.Service)
	case member(v, h.To).Never && h.To != v.Active:
		return v, refused("%s never takes it: %s", h.To, member(v, h.To).Why)
	case v.Active == "" && v.Lock != "":
		return v, refused("no node is active yet: %s is about to be", v.Lock)
	case v.Active == "" && forced && copies != nil:
	case v.Active == "" && able && copies != nil:
		return v, refused("no node is active; the first node that can takes over without an order: %s (--to NODE %s)", others(v), choose)
	case v.Active == "" && able:
		return v, refused("no node is active; the first node that can takes over without an order")
	case v.Active == "" && !forced:
		hint := "--to NODE --force makes one try at once"
		if out := allDrained(v); out != "" {
			hint = fmt.Sprintf("`understudy undrain %s` first", printable.Word(out))
		}
		return v, refused("no node is active, and no node can be now: %s (%s)", others(v), hint)
	case h.To == v.Active && v.Handing != nil:
		return v, refused("%s is active still, and a switchover to %s is under way", h.To,
			cmp.Or(v.Handing.To, "the first node that can"))
	case h.To == v.Active:
		return v, refused("%s is active already", h.To)
	case h.To == "" && !able && !h.Force:
		return v, refused("no other node can take %s: %s", h.Service, others(v))
	case h.To == "":
		return v, nil
	}
	i := slices.IndexFunc(v.Members, func(m MemberStatus) bool { return m.Node == h.To })
	all := "--force orders it anyway"
	if copies != nil {
		all += ", whatever data it has"
	}
	switch {
	case i < 0:
		if slices.Contains(v.Gone, h.To) {
			return v, refused("%s is gone: start its supervisor first", h.To)
		}
		return v, &UnknownError{"node", h.To, names(v.Members)}
	case v.Members[i].Drained != nil:
		return v, refused("%s is %s: `understudy undrain %s` first", h.To, v.Members[i].Drained.Words, printable.Word(h.To))
	case h.Force:
		if h.Tell != nil && copies != nil {
			h.Tell(risk(v, h.To, copies))
		}
	case len(v.Live) > 0 && !slices.Contains(v.Live, h.To):
		return v, refused("%s is not in the live set (%s), so its copy may lack acknowledged writes (%s)",
			h.To, strings.Join(v.Live, ", "), all)
	case !waits(v.Members[i]):
		return v, refused("%s does not stand by: it is %s%s (%s)", h.To, v.Members[i].Role, because(v.Members[i]), all)
	case v.Members[i].Health != election.HealthOK:
		return v, refused("%s is %s%s (%s)", h.To, v.Members[i].Health, because(v.Members[i]), all)
	}
	return v, nil
}

// waits tells whether a node waits for the lock. One that is paused may not have heard yet that the pause is over.
func waits(m MemberStatus) bool {
	return m.Role == election.RoleStandby || m.Role == election.RolePaused
}

// fit tells whether a node that waits could take the lock.
func fit(m MemberStatus) bool { return waits(m) && m.Health == election.HealthOK && m.Drained == nil }

// allDrained is the first node that could run the service if none of them were drained; "": one is not, or none has it.
func allDrained(v ServiceStatus) (first string) {
	for _, m := range v.Members {
		switch {
		case m.Never:
		case m.Drained == nil:
			return ""
		case first == "":
			first = m.Node
		}
	}
	return first
}

func because(m MemberStatus) string {
	if m.Why == "" {
		return ""
	}
	return ", " + strings.TrimPrefix(m.Why, "unhealthy: ")
}

func names(members []MemberStatus) (all []string) {
	for _, m := range members {
		all = append(all, m.Node)
	}
	return all
}

func others(v ServiceStatus) string {
	var all []string
	nodes := map[string][]string{} // that are the same, for the same reason
	for _, m := range v.Members {
		if m.Node != v.Active {
			words := string(m.Role) + because(m)
			nodes[words] = append(nodes[words], m.Node)
		}
	}
	for words, same := range nodes {
		is := " is "
		if len(same) > 1 {
			is = " are "
		}
		all = append(all, strings.Join(same, ", ")+is+words)
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(all, "; "), "no other node has it")
}

// Switchover orders a handover, and waits until another node is active, or until ctx ends: then the order is taken back if
// nobody has followed it yet. The service ends up running somewhere in any case.
func (c *Cluster) Switchover(ctx context.Context, h SwitchoverRequest) (to string, err error) {
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
		o.Switchover = &election.Switchover{
			Order: order, From: before.Active, To: h.To, Force: h.Force || h.First, Deadline: deadline.UTC(),
		}
		return o, true
	})
	defer takeBack(ctx, c.znodes, h.Service, order.ID) // also when another became active before it was written
	if err == nil && paused {
		err = refused("%s was paused just now", h.Service)
	}
	if err != nil {
		return "", err
	}
	f := following{SwitchoverRequest: h, before: before, began: time.Now()}
	f.begin()
	for {
		asked := time.Now()
		now, err := c.one(ctx, h.Service)
		if err != nil {
			return "", late(cutOff(ctx, asked, err), f.told)
		}
		if done, err := f.sees(now); done {
			return f.to, err
		}
		if !wait.For(ctx, lookEvery) {
			return "", late(context.Cause(ctx), f.told)
		}
	}
}

// lookEvery is how often an order is looked at until it is done.
const lookEvery = 50 * time.Millisecond

// following is a switchover that is followed to its end.
type following struct {
	SwitchoverRequest
	before ServiceStatus
	began  time.Time
	told   string       // the step that was told last
	took   MemberStatus // who had it meanwhile, as it was when it was last seen
	to     string       // who is active at the end
}

func (f *following) tell(step string) {
	if step != f.told {
		f.told = step
		f.Tell(step)
	}
}

func (f *following) begin() {
	if f.before.Active == "" {
		f.tell(f.To + " is to take " + f.Service)
	} else {
		f.tell(f.before.Active + " is asked to give " + f.Service + " away")
	}
}

// sees takes how the service is now, and tells whether that is the end.
func (f *following) sees(v ServiceStatus) (done bool, err error) {
	if v.Stopped {
		return true, fmt.Errorf("%s was meanwhile %s", f.Service, v.Order)
	}
	if why := f.cannot(v); why != "" {
		return true, fmt.Errorf("%s cannot take %s: it %s (see `understudy status %s`)", f.To, f.Service, why, printable.Word(f.Service))
	}
	now := member(v, v.Active)
	if m := member(v, f.took.Node); m.Role == election.RoleFailed {
		f.took = m
	}
	if v.Active != "" && v.Token != f.before.Token {
		switch {
		case v.Active == f.before.Active && f.took.Node != "":
			return true, fmt.Errorf("%s is active again on %s: %s had taken it, and %s", f.Service, v.Active, f.took.Node, outcome(f.took))
		case v.Active == f.before.Active:
			return true, fmt.Errorf("%s is active again on %s: %s", f.Service, v.Active, f.untaken(v))
		case settled(v):
			f.to = v.Active
			if f.To != "" && f.To != f.to {
				err = fmt.Errorf("%s runs on %s now, not on %s%s", f.Service, v.Active, f.To, fate(v, f.To))
			}
			return true, err
		}
	}
	switch {
	case v.Active == "" && f.took.Node != "":
		f.tell(f.took.Node + " had taken it, and " + outcome(f.took))
	case v.Active == f.before.Active && now.Role == election.RoleStopping:
		f.tell(v.Active + " is stopping it" + because(now))
	case v.Active != "" && v.Active == f.before.Active:
	case v.Active != "" && now.Health == election.HealthFailing:
		f.took = now
		f.tell(v.Active + " has taken it, and it is " + state(now))
	case v.Active != "":
		f.took = now
		f.tell(v.Active + " has taken it, and is starting it")
	case v.Lock != "":
		f.tell(v.Lock + " holds the lock")
	case f.before.Active != "":
		f.tell(f.before.Active + " has stopped it")
	}
	return false, nil
}

// cannot is why a node cannot take what no node has, by its own word since it was ordered to; "": it does not say so, or is at it. What an
// order overrides, such as a precheck, it has taken back by then. A copy, and a program that stands by, may still get ready.
func (f *following) cannot(v ServiceStatus) string {
	m, was := member(v, f.To), member(f.before, f.To)
	switch {
	case f.before.Active != "" || v.Active != "" || v.Lock != "" || m.Why == "":
	case m.Role == election.RoleFailed && (was.Role != m.Role || m.Since != nil && was.Since != nil && !m.Since.Equal(*was.Since)):
		return outcome(m)
	case len(v.Copies) > 0 || m.Warm || time.Since(f.began) < arriving:
	case m.Role == election.RoleStandby && m.Health == election.HealthUnfit:
		return outcome(m)
	}
	return ""
}

// cutOff is why a question to ZooKeeper failed. One that the end of the wait has cut off tells nothing of the server.
func cutOff(ctx context.Context, asked time.Time, err error) error {
	if ctx.Err() != nil && time.Since(asked) < time.Second {
		return context.Cause(ctx)
	}
	return err
}

// late tells how far an order had come when it was not waited for any longer.
func late(err error, told string) error { return fmt.Errorf("%s: %w", told, err) }

// member is what a node says of itself; one of which nothing is known has its name only.
func member(v ServiceStatus, node string) MemberStatus {
	if i := slices.IndexFunc(v.Members, func(m MemberStatus) bool { return m.Node == node }); i >= 0 {
		return v.Members[i]
	}
	return MemberStatus{Node: node}
}

// state describes a node that has not followed an order.
func state(m MemberStatus) string {
	how := string(m.Role)
	if m.Role == election.RoleActive || m.Role == election.RoleStandby || m.Role == "" {
		how = string(cmp.Or(m.Health, election.HealthUnknown))
	}
	return how + because(m)
}

// untaken tells why no other node has kept a service, as far as one that failed gives the reason.
func (f *following) untaken(v ServiceStatus) string {
	for _, m := range v.Members {
		if m.Role == election.RoleFailed && (f.To == "" || f.To == m.Node) {
			return m.Node + " " + outcome(m)
		}
	}
	return "no other node took it"
}

// outcome is what came of a node that had taken a service.
func outcome(m MemberStatus) string {
	if m.Role == election.RoleFailed {
		return "failed" + because(m)
	}
	return "is " + state(m)
}

// fate tells why a node that was to take a service has not got it, if it says so.
func fate(v ServiceStatus, node string) string {
	if m := member(v, node); m.Role == election.RoleFailed || m.Health != election.HealthOK {
		return ": " + node + " is " + state(m)
	}
	return ""
}

// settled tells whether the active node says that its programs are ready. Its word on a previous activation does not count.
func settled(v ServiceStatus) bool {
	m := member(v, v.Active)
	return m.Role == election.RoleActive && m.Health == election.HealthOK && (m.Token == 0 || m.Token == v.Token)
}
