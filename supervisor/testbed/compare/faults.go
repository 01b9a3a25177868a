package main

import (
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// fault is what the active host meets.
type fault struct {
	name   string
	strike func(tb testing.TB, h *kit.Host, wrapper *kit.Supervisor)
	heal   func(tb testing.TB, h *kit.Host, wrapper *kit.Supervisor) // after the takeover; nil: the fault stays
	cable  bool                                                      // it is the network's, which may heal

	links         bool                                   // the servers are reached over another device than the addresses
	before, after func(tb testing.TB, standby *kit.Host) // the strike; nil: nothing
}

var faults = []fault{
	{name: "stopped (SIGTERM)", strike: func(_ testing.TB, _ *kit.Host, w *kit.Supervisor) { w.Signal(syscall.SIGTERM) }},
	{name: "killed (SIGKILL)", strike: func(_ testing.TB, _ *kit.Host, w *kit.Supervisor) { w.Kill9() }},
	{
		name:   "frozen, later thawed",
		strike: func(_ testing.TB, _ *kit.Host, w *kit.Supervisor) { kit.Signal(syscall.SIGSTOP, family(w)...) },
		heal: func(_ testing.TB, _ *kit.Host, w *kit.Supervisor) {
			kit.Signal(syscall.SIGCONT, family(w)...)
			time.Sleep(time.Second) // what it does when it wakes
		},
	},
	{name: "cable pulled", cable: true, strike: func(tb testing.TB, h *kit.Host, _ *kit.Supervisor) { h.Cut(tb) }},
	{name: "packets lost, link up", cable: true, strike: func(tb testing.TB, h *kit.Host, _ *kit.Supervisor) { h.Lose(tb, 100) }},
	{name: "host without power", strike: func(tb testing.TB, h *kit.Host, _ *kit.Supervisor) { h.PowerOff(tb) }},
}

// linkFaults are what befalls a host's own device, where that is not all of its network.
var linkFaults = []fault{
	{name: "own link lost", links: true, cable: true, strike: func(tb testing.TB, h *kit.Host, _ *kit.Supervisor) { h.Cut(tb) }},
	{name: "device deleted", links: true, strike: func(tb testing.TB, h *kit.Host, _ *kit.Supervisor) { h.DeleteLink(tb) }},
	{
		name: "standby without link", links: true,
		before: func(tb testing.TB, standby *kit.Host) {
			standby.Cut(tb)
			time.Sleep(standbyAway)
		},
		strike: func(_ testing.TB, _ *kit.Host, w *kit.Supervisor) { w.Signal(syscall.SIGTERM) },
		after: func(tb testing.TB, standby *kit.Host) {
			time.Sleep(time.Second)
			standby.Heal(tb)
		},
	},
}

// standbyAway is how long the standby is without its link before the active host is struck.
const standbyAway = 5 * time.Second

// healing is heal, of the network too.
func (f fault) healing() func(tb testing.TB, h *kit.Host, wrapper *kit.Supervisor) {
	if f.cable {
		return func(tb testing.TB, h *kit.Host, _ *kit.Supervisor) { h.Heal(tb) }
	}
	return f.heal
}

// family is a wrapper's own processes: its program is none of them.
func family(w *kit.Supervisor) []int {
	pids := []int{w.Pid}
	if len(w.Guardians()) == 0 { // keepalived's VRRP process is a child of its own
		for _, pid := range kit.Children(w.Pid) {
			if kit.CommandLine(pid) == kit.CommandLine(w.Pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
