package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
)

// kind is a kind of fault: what strikes, and undoes it after a while drawn between shortest and longest. Where it cannot
// strike now, say since its victim is down, it returns nil.
type kind struct {
	name              string
	shortest, longest time.Duration
	strike            func(w *world, s *struck) (undo func())
}

// struck is one fault at work. Its dice decide what the schedule leaves open.
type struck struct {
	history.Fault
	dice *rand.Rand
	node *node // whose harm it is, if it is one's
	hurt []*server
}

const (
	moment = 100 * time.Millisecond
	sec    = time.Second
)

// kinds is all that can be done where agents know one another by such means, in the order of the report.
func kinds(m means) []*kind {
	all := []*kind{
		{"supervisor killed -9", 2 * moment, 6 * sec, killSupervisor(1)},
		{"supervisor and a guardian killed", 2 * moment, 5 * sec, killSupervisor(2)},
		{"supervisor stopped and started", 5 * moment, 5 * sec, stopSupervisor},
		{"supervisor upgraded in place", 0, 0, upgradeSupervisor},
		{"supervisor frozen for a moment", moment, 9 * moment, freezeSupervisor},
		{"supervisor frozen past its lease", 3 * sec, 9 * sec, freezeSupervisor},
		{"all supervisors killed -9", 2 * moment, 4 * sec, killAll},
		{"guardian killed", 0, 0, killGuardians(1)},
		{"both guardians killed", 0, 0, killGuardians(2)},
		{"guardian frozen", 5 * moment, 7 * sec, freezeGuardian},
		{"program killed -9", 0, 0, killProgram},
		{"program exits with an error", 0, 0, failProgram},
		{"program fails again and again", 2 * sec, 5 * sec, crashProgram},
		{"host loses power", 5 * moment, 8 * sec, losePower},
		{"host loses power, fencing is broken", 4 * sec, 9 * sec, losePowerUnfenced},
		{"cable pulled", 2 * moment, 9 * sec, network(func(w *world, n *node) { n.host.Cut(w) })},
		{"cut off from all servers", 2 * moment, 9 * sec, network(func(w *world, n *node) { n.host.CutFrom(w, w.stage.Addrs()...) })},
		{"what a host sends is lost", 2 * moment, 9 * sec, network(func(w *world, n *node) { n.host.Mute(w, w.stage.Addrs()...) })},
		{"what a host is sent is lost", 2 * moment, 9 * sec, network(func(w *world, n *node) { n.host.Deafen(w, w.stage.Addrs()...) })},
		{"cut off from one server", 2 * sec, 9 * sec, cutFromOne},
		{"packets lost", 2 * sec, 9 * sec, losePackets},
		{"slow line", 2 * sec, 9 * sec, slowLine},
		{"follower cut off from the others", sec, 9 * sec, parted(false, cutBoth)},
		{"leader cut off from the others", sec, 9 * sec, parted(true, cutBoth)},
		{"leader not heard by the others", sec, 9 * sec, parted(true, cutOut)},
		{"follower does not hear the others", sec, 9 * sec, parted(false, cutIn)},
		{"follower killed -9", 2 * moment, 6 * sec, killServers(1, false)},
		{"leader killed -9", 2 * moment, 6 * sec, killServers(1, true)},
		{"two servers killed -9", 2 * moment, 6 * sec, killServers(2, false)},
		{"all servers killed -9", 2 * moment, 7 * sec, killServers(3, false)},
		{"follower frozen", 5 * moment, 8 * sec, freezeServer(false)},
		{"leader frozen", 5 * moment, 8 * sec, freezeServer(true)},
		{"lock deleted by hand", 0, 0, deleteLock},
		{"service paused", 5 * moment, 6 * sec, pauseService},
		{"switchover ordered", moment, 4 * sec, giveOrder("switchover")},
		{"restart ordered", moment, 2 * sec, giveOrder("restart")},
		{"config edited", 0, 0, editConfig},
		{"config broken", 5 * moment, 4 * sec, breakConfig},
		{"servers grant other timeouts", 2 * sec, 8 * sec, regrant},
		{"session ended from outside", 2 * sec, 6 * sec, endSession},
		{"strangers", 2 * sec, 6 * sec, strangers},
		{"siege", 2 * sec, 6 * sec, siege},
		{credentialsChanged, 0, 0, changeKeys(credentialsChanged)},
	}
	if m.secret {
		all = append(all, &kind{secretChanged, 0, 0, changeKeys(secretChanged)})
	}
	if m.certificates {
		all = append(all, &kind{certificateRenewed, 0, 0, changeKeys(certificateRenewed)})
	}
	return all
}

// only keeps the kinds whose name contains one of some words.
func only(words string, all []*kind) (some []*kind, err error) {
	for _, k := range all {
		for word := range strings.SplitSeq(words, ",") {
			if strings.Contains(k.name, word) {
				some = append(some, k)
				break
			}
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("no kind of fault that this seed knows has a name with %q in it", words)
	}
	return some, nil
}
