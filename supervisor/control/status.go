package control

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"understudy/election"
)

// Status is what ZooKeeper says of a cluster.
type Status struct {
	Services []ServiceStatus `json:"services"`
	Nodes    []NodeStatus    `json:"nodes"`
	Drained  []DrainedNode   `json:"drained,omitempty"` // connected or not
	Gone     []GoneNode      `json:"gone,omitempty"`    // until they are forgotten
	Where    string          `json:"-"`                 // the root, and a server that was asked
}

// ServiceStatus says who is active, or why nobody is.
type ServiceStatus struct {
	Service string         `json:"service"`
	Active  string         `json:"active"` // empty: nobody
	Host    string         `json:"host"`
	Pid     int            `json:"pid"` // of the supervisor
	Since   *time.Time     `json:"since"`
	Token   int64          `json:"token"`
	Paused  bool           `json:"paused"`
	Stopped bool           `json:"stopped,omitempty"` // an operator wants it to be active nowhere; Paused as well then
	Order   string         `json:"order"`             // why it is paused or stopped, and by whom
	Handing *Handing       `json:"switchover"`
	Lock    string         `json:"lock"` // the node that holds the lock: not active yet while it is fencing
	Fencing *FencingStatus `json:"fencing"`
	Members []MemberStatus `json:"members"`
	Gone    []string       `json:"-"` // nodes that could run it, and are not connected
	Halted  int            `json:"-"` // how many of these an operator has stopped
	// Failsafe names the nodes by whose promises the active one would go on, should ZooKeeper be gone; none: it would not.
	Failsafe []string `json:"failsafe,omitempty"`
	// Files groups its nodes by the config files that they run, the largest group first; none: they are the same.
	Files    [][]string   `json:"config_files,omitempty"`
	Copies   []CopyStatus `json:"copies,omitempty"` // of a replicated service
	Live     []string     `json:"live,omitempty"`   // the nodes whose copies acknowledge writes, and alone can be promoted; none: all can
	Problems []Problem    `json:"faults"`
	// Ran is what `run --once` has run last, where no node is left that could run it again.
	Ran      *HistoryEntry `json:"ran_once,omitempty"`
	Stray    string        `json:"-"` // the path of a lock that belongs to no session: no supervisor has made it
	Before   string        `json:"-"` // how it was paused before it was stopped, and will be after the start
	FromFile bool          `json:"-"` // its active node has it from a config file

	Told  map[string]election.CopyReport `json:"-"` // of copies
	Known []string                       `json:"-"` // the nodes that have, or had, a copy
	First bool                           `json:"-"` // no copy was promoted before
}

// Involves reports whether a node has a part in the service.
func (s ServiceStatus) Involves(node string) bool {
	return s.Active == node || s.Lock == node || s.Fencing != nil && s.Fencing.Node == node ||
		slices.ContainsFunc(s.Members, func(m MemberStatus) bool { return m.Node == node })
}

// HasStandby reports whether another node could take the service now.
func (s ServiceStatus) HasStandby() bool { return slices.ContainsFunc(s.Members, s.StandsBy) }

// StandsBy reports whether a node could take the service from the active one now.
func (s ServiceStatus) StandsBy(m MemberStatus) bool {
	return m.Node != s.Active && m.Role == election.RoleStandby && m.Health == election.HealthOK && m.Drained == nil
}

// unpromoted is why no copy of a replicated service is promoted, as the first node says that knows it; empty: no node says so.
func (s ServiceStatus) unpromoted() (node, why string) {
	for _, m := range s.Members {
		if m.Role == election.RoleStandby && m.Health == election.HealthOK && m.Why != "" && !m.Demoted && len(s.Copies) > 0 {
			return m.Node, m.Why
		}
	}
	return "", ""
}

// Handing is a switchover that is ordered and not done.
type Handing struct {
	From     string    `json:"from"`
	To       string    `json:"to"` // empty: the first node that takes it
	By       string    `json:"by"`
	Deadline time.Time `json:"deadline"`
}

// FencingStatus says whose child may still be running while somebody else wants to be active.
type FencingStatus struct {
	Node  string     `json:"node"` // empty: the breadcrumb cannot be read
	Host  string     `json:"host"`
	By    string     `json:"by"` // empty: nobody holds the lock
	Since *time.Time `json:"since"`
	Token int64      `json:"token"`

	effects election.Effects // that its record lists
}

// MemberStatus is a candidate's own word on itself. A node that holds the lock and has not said anything yet is one too.
type MemberStatus struct {
	Node   string          `json:"node"`
	Host   string          `json:"host"`
	Role   election.Role   `json:"role"`
	Health election.Health `json:"health"`
	Why    string          `json:"why"`
	Since  *time.Time      `json:"since"`
	// Restarts counts the program's starts after its first in this activation; Exit is how the newest run before ended, and Exited when.
	Restarts int             `json:"restarts"`
	Exit     string          `json:"last_exit,omitempty"`
	Exited   *time.Time      `json:"last_exit_at,omitempty"`
	Retry    *time.Time      `json:"retry,omitempty"`     // when a node that failed tries again
	Unlogged string          `json:"log_fault,omitempty"` // why its programs' output is lost, and where
	Drained  *DrainedNode    `json:"drained,omitempty"`   // nil: it is not
	Token    int64           `json:"-"`                   // of the activation that it speaks of; 0: it does not say
	Never    bool            `json:"-"`                   // it is never a candidate, by its own config
	Warm     bool            `json:"-"`                   // its program stands by
	Cause    election.Reason `json:"-"`                   // of its failure
	Demoted  bool            `json:"-"`                   // that is why it says something though it stands by
	Logs     bool            `json:"-"`                   // `understudy logs` shows its output there
	Spread   string          `json:"-"`                   // services with this word are to be on different nodes
}

// NodeStatus is a supervisor that is connected.
type NodeStatus struct {
	Node     string     `json:"node"`
	Host     string     `json:"host"`
	Pid      int        `json:"pid"`
	Version  string     `json:"version"`
	Contain  string     `json:"contain"`
	Fault    string     `json:"config_fault"`           // why its changed config is not taken up
	Config   string     `json:"config,omitempty"`       // the file; empty: it has none
	Sum      string     `json:"config_sum,omitempty"`   // of the file's content, and of all that it includes
	Warnings []string   `json:"warnings"`               // dangerous settings there
	Untold   string     `json:"notify_fault,omitempty"` // why it cannot tell people what happens
	Unserved string     `json:"http_fault,omitempty"`   // where it serves no HTTP, and why
	Since    *time.Time `json:"since"`
	LeaseMs  int64      `json:"lease_ms"` // 0: it does not say
	Silent   bool       `json:"silent"`   // ZooKeeper keeps its session, but it sends no heartbeats
	Restart  bool       `json:"-"`        // a restart is all that its changed config needs
	Beat     Heartbeat  `json:"-"`

	At map[string]election.At `json:"-"` // how far its copies are, by service
}

// Status reads the services named, or all.
func (c *Cluster) Status(ctx context.Context, asked ...string) (Status, error) {
	names, err := c.Services(ctx, asked...)
	if err != nil {
		return Status{}, err
	}
	s := Status{Services: make([]ServiceStatus, len(names)), Where: c.Where()}
	var known []GoneNode
	err = all(len(names)+3, func(i int) (err error) {
		switch i {
		case len(names) + 2:
			known, err = list(ctx, c.znodes, election.KnownDir(c.root), parseGone)
			return err
		case len(names) + 1:
			s.Drained, err = list(ctx, c.znodes, election.DrainedDir(c.root), parseDrained)
			return err
		case len(names):
			s.Nodes, err = list(ctx, c.znodes, election.NodesDir(c.root), parseNode)
			return err
		}
		s.Services[i], err = c.service(ctx, names[i])
		return err
	})
	if err != nil {
		return s, err
	}
	for i := range s.Nodes {
		if s.Nodes[i].Silent = silent(s.Nodes, i); s.Nodes[i].Silent {
			s.Nodes[i].Warnings = append(s.Nodes[i].Warnings, "its session has sent no heartbeat for three leases, but ZooKeeper keeps "+
				"it; if a service with failback stops for it, delete its mark in preferred/ of that service")
		}
	}
	if differ := unlike(s.Nodes); differ != "" {
		longest := slices.MaxFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.LeaseMs, b.LeaseMs) }).LeaseMs
		for i, n := range s.Nodes {
			if n.LeaseMs > 0 && n.LeaseMs < longest {
				s.Nodes[i].Warnings = append(s.Nodes[i].Warnings, differ)
			}
		}
	}
	for i := range s.Services {
		for m := range s.Services[i].Members {
			s.Services[i].Members[m].Drained = s.drained(s.Services[i].Members[m].Node)
		}
	}
	s.miss(known, len(asked) > 0)
	for i := range names {
		v := &s.Services[i]
		v.Files = filesOf(*v, s.Nodes)
		v.Copies = copiesOf(*v, v.Told, s.Nodes, time.Now())
		v.FromFile = slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.Node == v.Active && n.Config != "" })
		v.Problems = Problems(*v, time.Now())
	}
	return s, nil
}

// one reads one service, which has to exist.
func (c *Cluster) one(ctx context.Context, name string) (ServiceStatus, error) {
	s, err := c.Status(ctx, name)
	if err != nil {
		return ServiceStatus{}, err
	}
	return s.Services[0], nil
}

func (c *Cluster) service(ctx context.Context, name string) (ServiceStatus, error) {
	p := election.Paths{Root: c.root, Service: name}
	var lock, crumb, orders znode
	var members []MemberStatus
	var told map[string]election.CopyReport
	var known []string
	var live []string
	var first bool
	err := all(6, func(i int) (err error) {
		switch i {
		case 0:
			lock, err = c.read(ctx, p.Lock())
		case 1:
			crumb, err = c.read(ctx, p.Crumb())
		case 2:
			orders, err = c.read(ctx, p.Control())
		case 3:
			told, live, first, err = c.copies(ctx, name)
		case 4:
			known, err = c.children(ctx, p.Known())
		default:
			members, err = list(ctx, c.znodes, p.Members(), parseMember)
		}
		return err
	})
	if err != nil {
		return ServiceStatus{}, err
	}
	s := describe(name, lock, crumb, members)
	s.Told, s.Known, s.Live, s.First = told, known, live, first
	o := election.ParseControl(orders.data)
	if o.Paused {
		s.Paused, s.Stopped, s.Order = true, o.Stopped, o.Words()
	}
	if o.Before != nil {
		s.Before = o.Before.Words()
	}
	if h := o.Switchover; h != nil && h.Token == s.Token && s.Active != "" {
		s.Handing = &Handing{From: h.From, To: h.To, By: h.By, Deadline: h.Deadline}
	}
	if lock.exists && lock.stat.EphemeralOwner == 0 {
		s.Stray = p.Lock()
	}
	if crumb.exists || len(s.Members) > 0 {
		return s, nil
	}
	past, err := activations(ctx, c.znodes, name)
	if n := len(past); n > 0 && past[n-1].Reason.Word() == election.ChildOnce {
		s.Ran = &past[n-1]
	}
	return s, err
}

// describe makes the facts of what was read: the lock alone makes nobody active, the breadcrumb has to agree.
func describe(name string, lock, crumb znode, members []MemberStatus) ServiceStatus {
	s := ServiceStatus{Service: name, Members: members}
	var holder election.Lock
	if lock.exists {
		_ = json.Unmarshal(lock.data, &holder) // a lock that says nothing is a lock
		s.Lock = cmp.Or(holder.Node, "unknown")
	}
	record := parseCrumb(crumb)
	switch {
	case lock.exists && record.writtenBy(lock):
		s.Active, s.Host, s.Pid, s.Token = s.Lock, holder.Host, holder.Pid, tokenOf(lock)
		s.Since = when(holder.Since)
		if record.Failsafe.Binds() {
			for _, m := range record.Failsafe.Members {
				s.Failsafe = append(s.Failsafe, m.Node)
			}
		}
	case crumb.exists:
		s.Fencing = &FencingStatus{
			Node: record.Node, Host: record.Host, By: s.Lock, Token: record.token, Since: when(holder.Since), effects: record.Effects,
		}
	}
	if s.Lock != "" && !slices.ContainsFunc(members, func(m MemberStatus) bool { return m.Node == s.Lock }) {
		role := election.RoleClaiming
		switch {
		case s.Active != "":
			role = election.RoleActive
		case s.Fencing != nil:
			role = election.RoleFencing
		}
		s.Members = append(s.Members,
			MemberStatus{Node: s.Lock, Host: holder.Host, Role: role, Health: election.HealthUnknown, Since: when(holder.Since)})
	}
	for i := range s.Members {
		s.Members[i].since(s)
	}
	if i := slices.IndexFunc(s.Members, func(m MemberStatus) bool { return m.Node == s.Lock }); i > 0 { // the others stay in their order
		holder := s.Members[i]
		s.Members = slices.Insert(slices.Delete(s.Members, i, i+1), 0, holder)
	}
	return s
}

// tokenOf is the token of the activation that a lock belongs to.
func tokenOf(lock znode) int64 {
	var holder election.Lock
	_ = json.Unmarshal(lock.data, &holder)
	return cmp.Or(holder.Token, lock.stat.Czxid)
}

// since brings a member's word up to what lock and breadcrumb show: it announces its role a moment later.
func (m *MemberStatus) since(s ServiceStatus) {
	switch {
	case s.Active == "":
	case m.Node == s.Active && (m.Role == election.RoleStandby || m.Role == election.RoleClaiming || m.Role == election.RoleFencing):
		m.Role, m.Health, m.Why, m.Since = election.RoleActive, election.HealthStarting, "", s.Since
	case m.Node != s.Active && m.Role == election.RoleActive && m.Token != 0 && m.Token < s.Token:
		m.Role = election.RoleStopping // its activation is over
	}
}

// breadCrumb is a breadcrumb as it was read. One that nobody understands names nobody, and counts all the same.
type breadCrumb struct {
	election.BreadCrumb
	token int64
}

func parseCrumb(n znode) breadCrumb {
	var b breadCrumb
	if !n.exists {
		return b
	}
	b.BreadCrumb, _ = election.ReadBreadCrumb(n.data)
	b.token = b.Token
	if b.token == 0 {
		b.token = n.stat.Czxid
	}
	return b
}

// writtenBy tells whether the session that holds an ephemeral, as the lock, has written the breadcrumb.
func (b breadCrumb) writtenBy(held znode) bool {
	return held.exists && b.Session == election.SessionName(held.stat.EphemeralOwner)
}

func parseMember(name string, z znode) MemberStatus {
	m := election.Member{Role: election.RoleUnknown, Health: election.HealthUnknown}
	_ = json.Unmarshal(z.data, &m)
	return MemberStatus{Node: name, Host: m.Host, Role: m.Role, Health: m.Health, Why: m.Why, Since: when(m.Since), Token: m.Token,
		Cause: m.Cause, Never: m.Never, Logs: m.Logs, Unlogged: m.Unlogged, Spread: m.Spread, Warm: m.Warm, Restarts: m.Restarts,
		Exit: m.Exit, Exited: m.Exited, Retry: m.Retry, Demoted: m.Demoted != nil}
}

func parseNode(name string, z znode) NodeStatus {
	var n election.Node
	_ = json.Unmarshal(z.data, &n)
	return NodeStatus{Node: name, Host: n.Host, Pid: n.Pid, Version: n.Version, Contain: n.Contain, Config: n.Config, Sum: n.Sum,
		Fault: n.Fault, Restart: n.Restart, Warnings: append([]string{}, election.Bounded(n.Warnings)...), Untold: n.Untold,
		Unserved: n.Unserved, Since: when(n.Since), LeaseMs: n.LeaseMs, At: n.Copies,
		Beat: Heartbeat{z.stat.EphemeralOwner, z.stat.Mtime, n.LeaseMs}}
}

// when is nil for a time that is not known.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
