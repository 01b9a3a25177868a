package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
)

// addresses compares what moves an IPv4 and an IPv6 address between two hosts with web servers.
func addresses() *part[*pair, moved] {
	p := &part[*pair, moved]{
		name: "addresses",
		about: fmt.Sprintf("nginx on two hosts, at an IPv4 and an IPv6 address. A client on a third one asks it over each address every 5 ms, and gives each question 200 ms.\n"+
			"A fault that is healed is so %v after the takeover, and what comes after it has columns of its own. The neighbour caches are the client's, "+
			"%v after the takeover, or %v after the healing. Where an own link is lost, the ZooKeeper servers are reached over another device. A standby without link gets it back a second after the active host was stopped.", beforeHeal, beforeHeal, afterHeal),
		columns: []string{"no answer over v4", "no answer over v6", "both hosts had an address", "healed: no answer", "healed: both had one", "neighbour caches"},
		cells:   cellsOfMoved,
		times:   3,
		peers:   movers,
	}
	for _, f := range slices.Concat(faults, linkFaults) {
		p.trials = append(p.trials, trial[*pair, moved]{f.name, func(tb testing.TB, w *pair, ready func()) moved { return onAddresses(tb, w, f, ready) }})
	}
	return p
}

const (
	beforeHeal = 5 * time.Second
	afterHeal  = 6 * time.Second // keepalived announces an address again after 5 s
	untilRight = time.Minute     // a kernel asks again who has an address within that
	webPort    = "8080"
)

// pair is two hosts under one peer that moves the addresses.
type pair struct {
	lab      *kit.Lab
	n        int      // no other pair of the lab has it
	addrs    []string // v4, v6
	start    func(h *kit.Host) *kit.Supervisor
	standing func(standby *kit.Supervisor) bool
	servers  []string // their addresses
}

// moved is what one fault came to. Of each address the first figure is v4's.
type moved struct {
	taken  bool
	gap    [2]time.Duration // the client had no answer
	both   time.Duration    // two hosts had the same address
	healed bool
	gapped time.Duration // as gap, after the healing
	again  time.Duration // as both, after the healing
	caches string
}

// onAddresses strikes one pair with one fault.
func onAddresses(tb testing.TB, w *pair, f fault, ready func()) (o moved) {
	a, b, client := w.lab.Host(tb, "a"), w.lab.Host(tb, "b"), w.lab.Host(tb, "client")
	w.addrs = []string{a.Addr[:strings.LastIndex(a.Addr, ".")] + fmt.Sprint(".", 200+w.n%50), fmt.Sprintf("fd77::%x", 0x1000+w.n)}
	for i, h := range []*kit.Host{a, b, client} {
		h.PowerOn(tb)
		if f.links {
			h.SecondLink(tb, w.servers...)
		}
		onHost(tb, h, "ip", "addr", "add", fmt.Sprintf("fd77:0:0:0:%x::%d/48", w.n, i+1), "dev", "eth0", "nodad")
	}
	var bearers []*watch.Bearers
	var visitors []*watch.Visitor
	for _, addr := range w.addrs {
		bearers = append(bearers, watch.NewBearers(tb, addr, a, b))
	}
	active := w.start(a)
	for i, url := range []string{"http://" + w.addrs[0] + ":" + webPort + "/", "http://[" + w.addrs[1] + "]:" + webPort + "/"} {
		kit.Until(tb, kit.Soon, "a has "+w.addrs[i], func() bool { return bearers[i].Has(0) })
		visitors = append(visitors, watch.NewVisitor(tb, url, client))
	}
	standby := w.start(b)
	if !w.standing(standby) {
		tb.Fatal("the standby does not stand by")
	}
	for i, v := range visitors {
		v.Served(tb, a)
		if bearers[i].Has(1) {
			tb.Fatal("the standby has an address")
		}
	}
	both := func() (longest time.Duration) {
		for _, w := range bearers {
			seen, _ := w.Both()
			longest = max(longest, seen.Long)
		}
		return longest
	}
	ready()
	if f.before != nil {
		f.before(tb, b)
	}
	f.strike(tb, a, active)
	if f.after != nil {
		f.after(tb, b)
	}
	o.taken = visitors[0].ServedWithin(limit, b) && visitors[1].ServedWithin(limit, b)
	time.Sleep(beforeHeal)
	for i, v := range visitors {
		o.gap[i] = v.Longest()
	}
	o.both = both()
	if heal := f.healing(); heal != nil {
		o.healed = true
		heal(tb, a, active)
		time.Sleep(afterHeal)
		o.gapped, o.again = max(visitors[0].Longest(), visitors[1].Longest()), both()-o.both
	}
	caches := func() string {
		for i, addr := range w.addrs {
			if fault := mistaken(tb, client, addr, bearers[i], a, b); fault != "" {
				return fault
			}
		}
		return "right"
	}
	if o.caches = caches(); o.caches == "wrong" {
		kit.Reached(untilRight, func() bool { return caches() == "right" })
		o.gapped = max(o.gapped, visitors[0].Longest(), visitors[1].Longest())
	}
	return o
}

// mistaken is what is wrong with where a client looks for an address; empty: nothing.
func mistaken(tb testing.TB, client *kit.Host, addr string, bearers *watch.Bearers, hosts ...*kit.Host) string {
	said := onHost(tb, client, "ip", "neigh", "show", "to", addr)
	_, mac, _ := strings.Cut(said, " lladdr ")
	mac, _, _ = strings.Cut(mac, " ")
	var bearer []*kit.Host
	for i, h := range hosts {
		if bearers.Has(i) {
			bearer = append(bearer, h)
		}
	}
	switch {
	case len(bearer) == 2:
		return "two have it"
	case len(bearer) == 0:
		return "no host has it"
	case mac == "" || !strings.Contains(onHost(tb, bearer[0], "ip", "-brief", "link", "show", "eth0"), mac):
		return "wrong"
	}
	return ""
}

// onHost runs a command to its end.
func onHost(tb testing.TB, h *kit.Host, name string, args ...string) string {
	out, err := h.Command(name, args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s on %s: %v: %s", name, h.Name, err, out)
	}
	return string(out)
}

// cellsOfMoved is what the table has of a peer and a fault.
func cellsOfMoved(seen []moved) []string {
	var gaps [2][]time.Duration
	var both, gapped, again []time.Duration
	taken, caches := 0, map[string]int{}
	for _, o := range seen {
		caches[o.caches]++
		both = append(both, o.both)
		if o.healed {
			gapped, again = append(gapped, o.gapped), append(again, o.again)
		}
		if !o.taken {
			continue
		}
		taken++
		for i := range gaps {
			gaps[i] = append(gaps[i], o.gap[i])
		}
	}
	cells := make([]string, 0, 6)
	for _, gap := range gaps {
		cell := span(gap)
		if taken < len(seen) {
			cell = fmt.Sprintf("not taken over (%d of %d) %s", len(seen)-taken, len(seen), cell)
		}
		cells = append(cells, cell)
	}
	long := func(all []time.Duration) string {
		switch {
		case len(all) == 0:
			return "-"
		case kit.Quantile(all, 1) == 0:
			return "never"
		}
		return span(all)
	}
	cells = append(cells, long(both), long(gapped), long(again))
	var told []string
	for _, what := range []string{"right", "wrong", "two have it", "no host has it"} {
		if n := caches[what]; n == len(seen) {
			told = append(told, what)
		} else if n > 0 {
			told = append(told, fmt.Sprintf("%s %d of %d", what, n, len(seen)))
		}
	}
	return append(cells, strings.Join(told, ", "))
}
