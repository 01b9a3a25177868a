// Package history is what a run of chaos left behind, and the judgement of it. It is a pure function of what was recorded:
// no clock, no process, no network.
//
// All times are nanoseconds of CLOCK_MONOTONIC, which all processes of one machine share.
package history

import (
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/store"
)

// History is everything that was recorded.
type History struct {
	Setup Setup
	Began int64
	Ended int64 // when everything was told to stop

	Runs    []Run   // in the order of their starts
	Bursts  []Burst // in the order of time
	Marks   []Mark
	Lives   []Life
	Writes  []store.Write
	Denials []Denial
	Pauses  []Pause
	Roles   []Role

	Counts Counts
}

// Setup is what a run consists of, and is known before it begins.
type Setup struct {
	Seed     uint64
	Kinds    []string // of faults that there are, in the order of the report
	Nodes    []string
	Services []string
	Bounds   Bounds
}

// Counts are what is told at the end, and judged by nobody.
type Counts struct {
	Strangers     int      // conversations with agents, and requests to ZooKeeper, of strangers
	SessionsEnded int      // by strangers
	Besieged      int      // connections, guesses, garbage and notes of strangers who besieged nodes
	Torn          []string // what ZooKeeper's servers disagreed about, when all of them served and nothing was wrong any more
	Wedged        int      // how often ZooKeeper had to be restarted, since it took no writes though nothing was wrong any more
}

// Bounds is how long what has to happen may take.
type Bounds struct {
	Progress time.Duration // from the last fault's begin or end to a running program, with a quorum and a healthy node
	Orphan   time.Duration // from a supervisor's death to that of all it ran
	Tick     time.Duration // how often a program's process gives a sign of life
}

// Run is one run of a service's program, with all that it forked.
type Run struct {
	kit.Run
	Service string
	Acked   int64 // writes that the store acknowledged to it
}

// Burst is some faults that overlap, and the healing after them.
type Burst struct {
	Faults []Fault
	Healed int64 // when all faults had been ended
	Well   int64 // when everything ran, and every standby stood by, again
}

// Fault is one thing that was done.
type Fault struct {
	Kind    string
	Target  string
	Node    string // where it befalls a single supervisor's host
	Service string // where it befalls a single service
	From    int64
	To      int64
}

// Mark is a moment at which something was done or undone. Able tells for each service whether from then on there was a
// quorum of servers, and a node free of faults.
type Mark struct {
	At   int64
	Able map[string]bool
}

// Life is a supervisor's; To is zero while it lives.
type Life struct {
	Node     string
	Pid      int
	From, To int64
}

// Denial is the kernel's word that a run began while another one of its service had a living process.
type Denial struct {
	At      int64
	Service string
	Node    string
	Token   int64
	Run     string
}

// Pause is an operator's order that nobody be promoted, and its end, as ZooKeeper counts its changes: a token is one of them.
type Pause struct {
	Service  string
	From, To int64
}

// Role is what a supervisor says of itself in its log.
type Role struct {
	At            int64
	Node, Service string
	From, To, Why string
}

// Of returns a service's runs.
func (h *History) Of(service string) []kit.Run {
	var all []kit.Run
	for _, r := range h.Runs {
		if r.Service == service {
			all = append(all, r.Run)
		}
	}
	return all
}

// Since is a moment as seconds from the beginning.
func (h *History) Since(at int64) float64 { return time.Duration(at - h.Began).Seconds() }
