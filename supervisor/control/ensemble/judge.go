package ensemble

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// Snapshot is what is known of all servers of a config.
type Snapshot struct {
	Servers []ServerStatus
	keeping keeping
}

// Use is how a config uses the ensemble.
type Use struct {
	Lease time.Duration
	Grace time.Duration // the longest of all services
}

// Findings is what follows for failovers, in sentences.
type Findings struct {
	Faults   []string `json:"faults"` // it cannot be used
	Warnings []string `json:"warnings"`
	Notes    []string `json:"notes"`
}

// Reached reports whether any server gives sessions.
func (r Snapshot) Reached() bool {
	return slices.ContainsFunc(r.Servers, func(s ServerStatus) bool { return s.Error == "" })
}

// Judge says what follows from it.
func (r Snapshot) Judge(use Use) Findings {
	v := Findings{Faults: []string{}, Warnings: []string{}, Notes: []string{}}
	for _, s := range r.Servers {
		if s.refuses && !r.Reached() {
			v.Faults = append(v.Faults, s.Error)
		}
	}
	for _, address := range r.keeping.forget {
		v.Faults = append(v.Faults, fmt.Sprintf("%s keeps no session over a reconnect: a node's lock would end while its program runs",
			address))
	}
	if unlike := r.keeping.unlike(); unlike != "" {
		v.Faults = append(v.Faults, unlike)
	}
	if r.Reached() {
		r.reachable(&v)
		r.size(&v)
		r.timing(use, &v)
		r.settings(&v)
	}
	return v
}

func (r Snapshot) reachable(v *Findings) {
	for _, s := range r.Servers {
		if s.Error != "" {
			v.Warnings = append(v.Warnings,
				fmt.Sprintf("%s gives no session (%s): nodes cannot use it when another server fails", s.Address, s.Error))
		}
	}
}

// voters is the size of the ensemble, as far as it is known.
func (r Snapshot) voters() (n int) {
	for _, s := range r.Servers {
		n = max(n, s.Voters)
		if s.Mode == "standalone" {
			return 1
		}
	}
	if n == 0 {
		n = len(r.Servers)
	}
	return n
}

func (r Snapshot) size(v *Findings) {
	n, listed := r.voters(), len(r.Servers)
	switch {
	case n == 1:
		v.Warnings = append(v.Warnings,
			"ZooKeeper is one server: while it is down, no service runs on any node. Three servers bear the loss of one")
	case n == 2:
		v.Warnings = append(v.Warnings,
			"ZooKeeper is two servers: while either is down, no service runs on any node. A third, which may be small, bears that")
	case n%2 == 0:
		v.Warnings = append(v.Warnings,
			fmt.Sprintf("ZooKeeper is %d servers, which bear the loss of %d, as %d do: add one, or take one away", n, (n-1)/2, n-1))
	default:
		v.Notes = append(v.Notes, fmt.Sprintf("%d servers: services keep running while %d of them cannot be reached", n, (n-1)/2))
	}
	if listed < n {
		v.Warnings = append(v.Warnings,
			fmt.Sprintf("the config lists %d of %d servers: nodes lose ZooKeeper, and stop their programs, when those are down, "+
				"although the others work", listed, n))
	}
}

func (r Snapshot) timing(use Use, v *Findings) {
	for _, s := range r.Servers {
		if s.Error == "" && s.Most < use.Lease {
			v.Warnings = append(v.Warnings,
				fmt.Sprintf("%s grants sessions of %v at most, less than the lease of %v: a short outage already moves services. "+
					"Raise maxSessionTimeout there", s.Address, s.Most, use.Lease))
		}
	}
	v.Notes = append(v.Notes, fmt.Sprintf("a lost host is taken over after up to %v: %v of grace included",
		election.Takeover(use.Lease, use.Grace).Round(100*time.Millisecond), use.Grace))
}

// few is fewer connections than some supervisors, their guardians and the commands of an operator need from one host.
const few = 10

// least is a supervisor's connection, the one before it that the server still has, and a command's.
const least = 3

func (r Snapshot) settings(v *Findings) {
	unknown := map[string][]string{}
	for _, s := range r.Servers {
		if strings.HasPrefix(s.DataDir+"/", "/tmp/") {
			v.Warnings = append(v.Warnings, fmt.Sprintf("the dataDir of %s, %s, is in /tmp: after a restart of its host ZooKeeper "+
				"does not know who was active, and no service starts until any lease has ended", s.Address, s.DataDir))
		}
		if s.Clients != nil && *s.Clients > 0 && *s.Clients < few {
			then := "a supervisor beyond that gets no session, so no program runs on its node"
			if *s.Clients < least {
				then = "it refuses a supervisor that connects again while it has not noticed the end of the previous connection, " +
					"so a short interruption ends a session. Allow 60"
			}
			v.Warnings = append(v.Warnings,
				fmt.Sprintf("%s takes %d connections from one host (maxClientCnxns): %s", s.Address, *s.Clients, then))
		}
		if s.Version != "" && older(s.Version) {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s is ZooKeeper %s: Understudy is tested with 3.8 and 3.9", s.Address, s.Version))
		}
		if s.Error == "" && len(s.Unknown) > 0 {
			what := strings.Join(s.Unknown, ", ")
			unknown[what] = append(unknown[what], s.Address)
		}
	}
	for what, servers := range unknown {
		v.Notes = append(v.Notes, fmt.Sprintf("could not be asked: %s of %s; `4lw.commands.whitelist=srvr,conf` in their zoo.cfg allows it",
			what, strings.Join(servers, ", ")))
	}
	slices.Sort(v.Notes)
}

// older reports whether a version is before 3.5, which has other requests.
func older(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major < 3 || major == 3 && minor < 5)
}

// Line is a server in one line.
func (s ServerStatus) Line() string {
	if s.Error != "" {
		return s.Address + ": " + s.Error
	}
	parts := []string{}
	for _, part := range []string{s.Version, s.Mode} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if s.Tick > 0 {
		parts = append(parts, fmt.Sprintf("tick %v", s.Tick))
	}
	parts = append(parts, fmt.Sprintf("grants sessions of %v to %v", s.Least, s.Most))
	return s.Address + ": " + strings.Join(parts, ", ")
}
