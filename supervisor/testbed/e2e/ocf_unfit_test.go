package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// monitored is how long the agent's monitor may take.
const monitored = 4 * time.Second

// unfitAgent handles a file on each node, and says what a script adds.
func unfitAgent(t *testing.T, more string) (dir string) {
	t.Helper()
	root := t.TempDir()
	t.Setenv("OCF_ROOT", root)
	must.OK(t, os.MkdirAll(filepath.Join(root, "resource.d", "test"), 0o755))
	must.OK(t, os.WriteFile(filepath.Join(root, "resource.d", "test", "Agent"), fmt.Appendf(nil, `#!/bin/sh
cd %s
[ "$1" = meta-data ] && exec echo '<resource-agent><actions><action name="monitor" timeout="%s" interval="50ms"/></actions></resource-agent>'
there="there-$UNDERSTUDY_NODE"
%s
case $1 in
start) touch "$there";;
stop) rm -f "$there";;
monitor) [ -e "$there" ] || exit 7;;
*) exit 3;;
esac
`, root, monitored, more), 0o755))
	return root
}

func (p *play) withAgent(t *testing.T, h *kit.Host) *kit.Supervisor {
	t.Helper()
	return p.FromFile(t, h, p.Config(t, h, "", "restart: {delay: 100ms, rejoin_after: 1m}", "processes:", "  - {name: fs, ocf: 'test:Agent'}", "  - {name: web, command: [sleep, '1000']}"))
}

func (p *play) says(t *testing.T, limit time.Duration, node, role, health, why string) {
	t.Helper()
	kit.Until(t, limit, node+" is "+role+" and "+health+": "+why, func() bool {
		m, ok := p.Member(p.Options.Service, node)
		return ok && m.Role == role && m.Health == health && strings.Contains(m.Why, why)
	})
}

// A standby whose agent says that it cannot run the service is not fit, and says why. It is asked again when it stands again.
func TestAStandbyWhoseAgentSaysNoIsUnfit(t *testing.T) {
	p := newPlay(t, stage(t))
	dir := unfitAgent(t, `[ $UNDERSTUDY_NODE = b ] && [ ! -e installed ] && { echo "one line" >&2; echo "ocf-exit-reason:no kmod here" >&2; exit 5; }`)
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	standby := p.withAgent(t, b)
	const why = "it could not start here: test:Agent monitor: exit code 5 (something is not installed): no kmod here"
	p.says(t, soon, "b", "standby", "unfit", why)
	active := p.withAgent(t, a)
	p.says(t, soon, "a", "active", "ok", "")
	must.OK(t, os.WriteFile(filepath.Join(dir, "installed"), nil, 0o644))
	standby.Stop(t)
	p.withAgent(t, b)
	p.says(t, soon, "b", "standby", "ok", "")
	active.Stop(t)
	p.says(t, soon, "b", "active", "ok", "")
}

// What cannot start on a host moves to another one at once, and does not wait for an undo that cannot succeed, as nothing was done.
func TestAServiceLeavesAHostOnWhichItsAgentCannotStart(t *testing.T) {
	p := newPlay(t, stage(t))
	dir := unfitAgent(t, `[ $1 = start ] && [ $UNDERSTUDY_NODE = a ] && [ -e broken ] && touch broken-a
[ $UNDERSTUDY_NODE = a ] && [ -e broken-a ] && { echo "ocf-exit-reason:no kmod here" >&2; exit 5; }`)
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	p.withAgent(t, a)
	p.says(t, soon, "a", "active", "ok", "")
	must.OK(t, os.WriteFile(filepath.Join(dir, "broken"), nil, 0o644))
	p.withAgent(t, b)
	p.says(t, soon, "b", "standby", "ok", "")
	began := time.Now()
	must.OK(t, os.Remove(filepath.Join(dir, "there-a"))) // it is started again, and cannot be
	p.says(t, soon, "b", "active", "ok", "")
	t.Logf("b is active %v after it failed on a", time.Since(began))
	p.says(t, 10*time.Second, "a", "failed", "failed", "fs: test:Agent start: exit code 5 (something is not installed): no kmod here")
}

// A monitor that hangs is a failure once its time is over, not after the third one. Started again where it hangs still, the service moves.
func TestAServiceLeavesAHostOnWhichItsAgentHangs(t *testing.T) {
	p := newPlay(t, stage(t))
	dir := unfitAgent(t, `[ $1 = monitor ] && [ $UNDERSTUDY_NODE = a ] && [ -e hangs ] && exec sleep 1000`)
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	active := p.withAgent(t, a)
	p.says(t, soon, "a", "active", "ok", "")
	p.withAgent(t, b)
	p.says(t, soon, "b", "standby", "ok", "")
	must.OK(t, os.WriteFile(filepath.Join(dir, "hangs"), nil, 0o644))
	began := time.Now()
	took := kit.Until(t, monitored+kit.Stall, "it has failed", func() bool { return active.Says("monitor: killed, it took longer than 4s") })
	kit.Until(t, monitored+time.Second+kit.Stall, "b is active", func() bool {
		m, _ := p.Member(p.Options.Service, "b")
		return m.Role == "active"
	})
	t.Logf("it failed after %v, and b is active after %v", took, time.Since(began))
}

// Where no node can, nothing is tried five times, and each says why.
func TestAMissingAgentIsNamed(t *testing.T) {
	p := newPlay(t, stage(t))
	dir := unfitAgent(t, "")
	must.OK(t, os.Remove(filepath.Join(dir, "resource.d", "test", "Agent")))
	p.withAgent(t, p.Lab.Machine(t, "a"))
	p.says(t, soon, "a", "standby", "unfit", "test:Agent monitor: ")
}

// P2: a start that is killed half done, as of an agent that asks a daemon elsewhere, is followed by a stop, though monitor says that nothing
// runs: what the start has set going is not seen yet.
func TestAHalfDoneStartOfAnAgentIsStopped(t *testing.T) {
	p, d := newPlay(t, stage(t)), newDiary(t)
	unfitAgent(t, fmt.Sprintf(`case $UNDERSTUDY_NODE$1 in
*stop) echo "-$UNDERSTUDY_NODE" >> %[1]s;;
astart) echo +a >> %[1]s; exec sleep 1000;;
bstart) echo +b >> %[1]s;;
esac`, d))
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	active := p.withAgent(t, a)
	d.until(t, "+a")
	p.withAgent(t, b)
	p.says(t, soon, "b", "standby", "ok", "")
	active.Kill9()
	d.until(t, "+a -a +b")
}
