package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// Guardians release every service of a supervisor that is killed, however short its terms were: nobody waits for a grace delay.
func TestGuardiansReleaseAllServicesOfShortTerms(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 2*time.Millisecond)
	supervisors := map[string]*kit.Supervisor{}
	var hosts []*kit.Host
	start := func(h *kit.Host) { supervisors[h.Name], _ = f.Serve(t, h) }
	for _, name := range []string{"a", "b", "c"} {
		hosts = append(hosts, f.Lab.Machine(t, name))
		start(hosts[len(hosts)-1])
		f.there(t, name)
	}
	const rounds = 10
	for range rounds {
		for range 2 { // the second one as soon as it is active
			at := tick.Now()
			last := f.Of["s0000"].Runs()
			supervisors[last[len(last)-1].Node].Kill9()
			f.Of["s0000"].Next(t, soon, at)
		}
		for _, h := range hosts {
			if !supervisors[h.Name].Running() {
				start(h)
			}
			f.there(t, h.Name)
		}
	}
	fenced := map[election.Proof]int{}
	for _, name := range f.Names {
		for _, e := range f.entries(t, name) {
			fenced[e.Fenced]++
		}
	}
	t.Logf("how former ones were known to be dead: %v", fenced)
	if n := fenced["grace"]; n > 0 {
		t.Errorf("%d terms waited for a grace delay", n)
	}
}

// there waits until a node is active or stands by for every service.
func (f *fleet) there(t *testing.T, node string) {
	t.Helper()
	kit.Until(t, soon, node+" is there", func() bool {
		return !slices.ContainsFunc(f.Names, func(name string) bool {
			m, ok := f.Member(name, node)
			return !ok || m.Role != "standby" && m.Role != "active"
		})
	})
}

// entries is a service's history.
func (f *fleet) entries(t *testing.T, service string) (all []election.Activation) {
	t.Helper()
	dir := f.Path("services", service, "history")
	names, _, err := f.Conn().Children(dir)
	must(t, err)
	slices.Sort(names)
	for _, name := range names {
		data, _, err := f.Conn().Get(dir + "/" + name)
		must(t, err)
		var a election.Activation
		if err := json.Unmarshal(data, &a); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, a)
	}
	return all
}
