package main

import (
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
)

// fault is a kind of fault. It strikes, and is undone after a time between least and most. An error gives the reason why it cannot
// strike now, such as a victim that is down. Both functions run with world.mu held, so what takes long belongs into world.beside.
type fault struct {
	name        string
	weight      int // how often it is in the deck
	least, most time.Duration
	do          strike
	harmless    bool // no program may notice it
}

type strike = func(w *world, s *stroke) (undo func(), err error)

const (
	moment = 100 * time.Millisecond
	sec    = time.Second
)

// faults is every kind, in the order of the report.
func faults() []*fault {
	return []*fault{
		{"supervisor killed -9", 2, 2 * moment, 9 * sec, guarded(1, kill(0)), false},
		{"supervisor and a guardian killed", 1, 2 * moment, 9 * sec, guarded(2, kill(0, 1)), false},
		{"supervisor stopped and started", 1, 5 * moment, 5 * sec, guarded(1, stopSupervisor), false},
		{"supervisor upgraded in place", 1, 0, 0, guarded(1, upgradeSupervisor), true},
		{"supervisor frozen for a moment", 1, moment, 9 * moment, guarded(1, freeze(0)), false},
		{"supervisor frozen past its lease", 1, 3 * sec, 9 * sec, guarded(1, freeze(0)), false},
		{"all supervisors killed -9", 1, 0, 0, killAll, false},
		{"guardian killed", 1, 0, 0, guarded(1, kill(1)), true},
		{"both guardians killed", 1, 0, 0, guarded(2, kill(1, 2)), false},
		{"guardian frozen", 1, 5 * moment, 7 * sec, guarded(1, freeze(2)), false},
		{"program killed -9", 1, 0, 0, signalProgram(syscall.SIGKILL), false},
		{"program exits with an error", 1, 0, 0, signalProgram(syscall.SIGUSR1), false},
		{"program fails again and again", 1, 2 * sec, 5 * sec, crashProgram, false},
		{"host loses power", 2, 5 * moment, 9 * sec, onNode(losePower), false},
		{"host loses power, fencing is broken", 1, 4 * sec, 9 * sec, losePowerUnfenced, false},
		{"cable pulled", 2, 2 * moment, 9 * sec, network(func(w *world, h *kit.Host) { h.Cut(w) }), false},
		{"cut off from all servers", 1, 2 * moment, 9 * sec, network(func(w *world, h *kit.Host) { h.CutFrom(w, w.stage.Addrs()...) }), false},
		{"what a host sends is lost", 1, 2 * moment, 9 * sec, network(func(w *world, h *kit.Host) { h.Mute(w, w.stage.Addrs()...) }), false},
		{"what a host is sent is lost", 1, 2 * moment, 9 * sec, network(func(w *world, h *kit.Host) { h.Deafen(w, w.stage.Addrs()...) }), false},
		{"cut off from one server", 1, 2 * sec, 9 * sec, cutFromOne, false},
		{"packets lost", 1, 2 * sec, 9 * sec, losePackets, false},
		{"slow line", 1, 2 * sec, 9 * sec, slowLine, false},
		{"follower cut off from the others", 1, sec, 9 * sec, part(false, (*kit.Host).CutFrom), false},
		{"leader cut off from the others", 1, sec, 9 * sec, part(true, (*kit.Host).CutFrom), false},
		{"leader not heard by the others", 1, sec, 9 * sec, part(true, (*kit.Host).Mute), false},
		{"follower does not hear the others", 1, sec, 9 * sec, part(false, (*kit.Host).Deafen), false},
		{"follower killed -9", 1, 2 * moment, 6 * sec, killServers(1, false), true},
		{"leader killed -9", 1, 2 * moment, 6 * sec, killServers(1, true), false},
		{"two servers killed -9", 1, 2 * moment, 6 * sec, killServers(2, false), false},
		{"all servers killed -9", 1, 2 * moment, 7 * sec, killServers(3, false), false},
		{"follower frozen", 1, 5 * moment, 8 * sec, freezeServer(false), false},
		{"leader frozen", 1, 5 * moment, 8 * sec, freezeServer(true), false},
		{"servers grant other timeouts", 1, 2 * sec, 8 * sec, regrant, false},
		{"lock deleted by hand", 1, 0, 0, deleteLock, false},
		{"service paused", 1, 5 * moment, 6 * sec, pauseService, false},
		{"switchover ordered", 1, moment, 4 * sec, giveOrder("switchover"), false},
		{"restart ordered", 1, moment, 2 * sec, giveOrder("restart"), false},
		{"config edited", 1, 0, 0, editConfig, false},
		{"config broken", 1, 5 * moment, 4 * sec, onNode(breakConfig), true},
		{"session ended from outside", 1, 2 * sec, 6 * sec, endSession, false},
		{"strangers", 1, 2 * sec, 6 * sec, strangers, true},
		{"siege", 1, 2 * sec, 6 * sec, siege, true},
	}
}

// only keeps the kinds whose name contains one of some words; all without words.
func only(words string, all []*fault) (some []*fault) {
	for _, f := range all {
		for word := range strings.SplitSeq(words, ",") {
			if strings.Contains(f.name, word) {
				some = append(some, f)
				break
			}
		}
	}
	return some
}
