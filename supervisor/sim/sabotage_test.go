//go:build simulation

package sim

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var sabotageOnly = flag.String("sabotage", "", "only those whose name contains this")

var sabotageSeeds = flag.Uint64("sabotage-seeds", 300, "within how many seeds each sabotage has to be caught")

// sabotage breaks the real code in one way.
type sabotage struct {
	what    string
	changes []change
}

var sabotages = []sabotage{
	{"skip the breadcrumb", []change{
		{"election/candidate.go", "	if clear {\n		ops = append(", "	if false {\n		ops = append("},
	}},
	{"release before the tree is dead", []change{
		{"supervisor/term.go", "	if err := v.end(ctx, t, tree); err != nil {\n		v.on(treeAlive)",
			"	_ = claim.Release(context.WithoutCancel(ctx))\n	if err := v.end(ctx, t, tree); err != nil {\n		v.on(treeAlive)"},
	}},
	{"lease from reads and pings, which a follower answers alone", []change{
		{"election/heartbeat.go", "err := s.set(ctx, path, s.nodeData(), -1)", "_, _, err := s.owner(ctx, path)"},
	}},
	{"lease without slack", []change{
		{"election/lease.go", "return 2*beatEvery(session) + session/4 + session/30", "return session / 100"},
	}},
	{"take the lock of our former session for ours", []change{
		{"election/candidate.go", "	case lock.stat.EphemeralOwner == c.s.ID():",
			"	case strings.Contains(string(lock.data), `\"node\":\"`+c.s.cfg.Node.Node+`\"`):"},
		{"election/candidate.go", "import (\n", "import (\n	\"strings\"\n"},
		{"election/claim.go", "!v.exists || v.stat.EphemeralOwner != c.s.ID() || v.stat.Czxid != c.Token", "!v.exists"},
	}},
	{"no verification that the lock is still ours", []change{
		{"election/claim.go", "		if !v.exists || v.stat.EphemeralOwner != c.s.ID() || v.stat.Czxid != c.Token {\n			return ErrLost\n		}\n", ""},
	}},
	{"no grace delay", []change{
		{"fencing/chain.go", "	if left <= 0 {\n		return nil\n	}\n", "	if left > -time.Hour {\n		return nil\n	}\n"},
	}},
	{"no fencing at all", []change{
		{"supervisor/term.go", "	fenced := fencing.Outcome{By: nobody}\n	if claim.Previous == nil {",
			"	fenced := fencing.Outcome{By: nobody}\n	if claim != nil {"},
	}},
	{"take a clone's machine id for this machine", []change{
		{"supervisor/term.go", "p.Machine == v.node.Machine && p.Node == v.node.Node", "p.Machine == v.node.Machine"},
	}},
	{"believe a tree on this machine to be dead without a look", []change{
		{"supervisor/term.go", "	err := v.machine.KillTree(ctx, p.Tree)\n", "	err := ctx.Err()\n"},
	}},
	{"close the session though a death is unproved", []change{
		{"election/session.go", "			s.Expire(err) // P2: what may be alive keeps its lock, until the session ends by itself\n			e.discard(conn)\n			return err\n",
			"			s.Expire(err)\n"},
	}},
	{"a guardian closes the session though a death is unproved", []change{
		{"election/ticket.go", "	if !all {\n		return nil\n	}\n", ""},
	}},
	{"no quarantine after a loss of data", []change{
		{"supervisor/service.go", "	if v.birth != (election.Birth{}) && v.birth != birth {", "	if v.birth == birth {"},
	}},
	{"start again beside what the child left behind", []change{
		{"supervisor/active.go", "	if err := v.empty(ctx, tree); err != nil {", "	if err := ctx.Err(); err != nil {"},
	}},
	{"do not watch the lock while active", []change{
		{"supervisor/active.go", "		cancel(fmt.Errorf(\"%w: %w\", election.ErrLost, claim.Watch(ctx)))\n", "		_ = fmt.Errorf(\"%w\", claim.Watch(ctx))\n"},
	}},
	{"write the breadcrumb whoever has claimed the lock since", []change{
		{"election/claim.go", "&zk.CheckVersionRequest{Path: c.paths.Lock(), Version: -1}, c.unclaimed(), write)", "write)"},
		{"election/claim.go", "!unknown(err) && failed < 2", "!unknown(err) && failed < 0"},
	}},
	{"stop a child politely after its lock was lost", []change{
		{"supervisor/active.go", "	if why == lockLost {\n", "	if why == lockLost && p == nil {\n"},
	}},
	{"no removal of the container when a lease ends", []change{
		{"supervisor/sim/proc.go", "	t.removed = t.removed || remove\n", ""},
	}},
	{"guardians do not end leases", []change{
		{"supervisor/sim/guardian.go", "	if !w.ended && w.deadline > 0 && g.host.now() >= w.deadline {\n		g.end(w, \"the lease ran out\")\n	}\n	switch m.op {", "	switch m.op {"},
		{"supervisor/sim/guardian.go", "		if !w.ended && w.deadline > 0 && now >= w.deadline {\n			g.end(w, \"the lease ran out\")\n		}\n		if !w.ended {\n			sooner(w.deadline)\n", "		if !w.ended {\n"},
	}},
	{"guardians do not mind their supervisor's death", []change{
		{"supervisor/sim/guardian.go", "		g.orphaned = true\n		g.endAll(", "		g.orphaned = true\n		_ = fmt.Sprint("},
		{"supervisor/sim/guardian.go", "import (\n", "import (\n	\"fmt\"\n"},
	}},
}

// TestSabotageIsCaught applies each sabotage to a build of its own, and expects the simulation to notice.
func TestSabotageIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the simulation once for each sabotage")
	}
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%-58s %-12s %6s %8s\n", "sabotage", "caught by", "seeds", "time")
	for _, s := range sabotages {
		if !strings.Contains(s.what, *sabotageOnly) {
			continue
		}
		began := time.Now()
		exe, err := overlaid(t.Context(), module, t.TempDir(), s.changes)
		if err != nil {
			t.Errorf("%s: %v", s.what, err)
			continue
		}
		caught, seeds := "", uint64(0)
		err = simulate(exe, *seedFlag, *workersFlag, task{}, func(r *report) bool {
			seeds++
			caught = r.Promise
			return caught == "" && seeds < *sabotageSeeds
		})
		if err != nil {
			caught, err = "hang or panic", nil
		}
		if caught == "" {
			t.Errorf("%q is not noticed within %d seeds", s.what, seeds)
			caught = "NOTHING"
		}
		fmt.Printf("%-58s %-12s %6d %8v\n", s.what, caught, seeds, time.Since(began).Round(time.Second/10))
	}
}
