package sim

import (
	"slices"
	"strings"

	"understudy/supervisor/service"
)

// fileKey is whose file it is: of a node and a service, under a name that the supervisor gives to its cluster.
type fileKey struct {
	effectKey
	cluster string
}

func (i *incarnation) file(service string) fileKey {
	return fileKey{effectKey{i.node.name, service}, i.cluster}
}

// listed is the list of servers of an incarnation. A supervisor that starts has another one than the one before it, now and then, with the same
// servers: in another order, or by their other ports. World.mu is held.
func (n *node) listed() []string {
	list := n.w.plan.servers()
	if n.w.plan.Calm || n.lists.IntN(2) == 0 {
		return list
	}
	for i, server := range list {
		list[i] = strings.Replace(server, ":2181", ":2281", n.lists.IntN(2))
	}
	n.lists.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// memory is what a node remembers of its services over a restart, and not over a boot. It implements service.Memory.
type memory struct{ inc *incarnation }

var _ service.Memory = memory{}

// Load implements service.Memory.
func (m memory) Load(name string) service.Known {
	if !m.inc.pass() {
		return service.Known{}
	}
	h := m.inc.node.host
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.known[m.inc.file(name)]
}

// Save implements service.Memory.
func (m memory) Save(name string, known service.Known) {
	if !m.inc.pass() {
		return
	}
	h := m.inc.node.host
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.known[m.inc.file(name)] = known
}

// remembers reports whether a supervisor of the node that starts now would notice a loss of data: its host has not booted since one of before
// has seen every service. An older copy of the data may be as new as what it has seen. World.mu is held.
func (n *node) remembers() bool {
	for _, v := range n.w.check.services {
		if v.setBack {
			return false
		}
	}
	seen := map[string]bool{}
	for key, known := range n.host.known {
		seen[key.service] = seen[key.service] || key.node == n.name && known.Token > 0
	}
	return !slices.ContainsFunc(n.w.plan.services(), func(name string) bool { return !seen[name] })
}

// owing are the services for which a supervisor has left something to undo.
func (i *incarnation) owing() (services []string) {
	h := i.node.host
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	for key := range h.notes {
		if key.node == i.node.name && key.cluster == i.cluster {
			services = append(services, key.service)
		}
	}
	slices.Sort(services)
	return services
}
