package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/witness"
)

func TestMain(m *testing.M) { os.Exit(apart.Run(m)) }

// cgroupMount is where this machine's cgroups are.
func cgroupMount(t *testing.T) string {
	t.Helper()
	need.These(t, box.KindCgroup)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must.OK(t, err)
	for line := range strings.Lines(string(mounts)) {
		if before, _, ok := strings.Cut(line, " - cgroup2 "); ok {
			return strings.Fields(before)[4]
		}
	}
	t.Fatal("no cgroups are mounted here")
	return ""
}

// P2: a process that was seen alive of a tree is not dead because the tree's cgroup is gone: a process that leaves that can remove it as well.
// Each that can be asked looks for the process itself.
func TestWhatWasSeenAliveIsNotDeadWithItsCgroup(t *testing.T) {
	here, err := box.Identity()
	must.OK(t, err)
	this := host.This(nil, "", false, PendingEffects)
	cmd := exec.Command("sleep", "1000")
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pid := cmd.Process.Pid
	start := startOf(t, pid)
	base := cgroupMount(t)
	goneTree := func(born uint64) json.RawMessage { // of a supervisor that is no more
		info, err := os.Stat(base)
		must.OK(t, err)
		id := box.TreeID{Kind: box.KindCgroup, Name: "db", Boot: here.Boot, PidNS: here.PidNS, Pid: 1 << 30, StartTime: born}
		id.Inode = info.Sys().(*syscall.Stat_t).Ino
		id.Path = filepath.Join(base, fmt.Sprintf("n.db.p%d-%d-%d.0123456789ab", here.PidNS, id.Pid, born))
		data, err := json.Marshal(id)
		must.OK(t, err)
		return data
	}
	for _, c := range []struct {
		name string
		seen fencing.ProcessID
		born uint64
		want fencing.Liveness
	}{
		{"nobody was seen", fencing.ProcessID{}, 1, fencing.Dead},
		{"it is there", fencing.ProcessID{Pid: pid, Start: start}, 1, fencing.Alive},
		{"another has its pid", fencing.ProcessID{Pid: pid, Start: start + 1}, 1, fencing.Dead},
		{"nobody wrote down which", fencing.ProcessID{Pid: pid}, 1, fencing.Unknown},
		{"nobody has its pid and start", fencing.ProcessID{Pid: 1 << 29, Start: start}, 1, fencing.Dead},
	} {
		tree := goneTree(c.born)
		self := election.Node{Node: "a", Machine: here.Machine, Boot: here.Boot}
		q := agent.Question{Service: "db", Token: 1, Node: "a", Machine: here.Machine, Boot: here.Boot, Tree: tree, Seen: c.seen, By: "b", ByToken: 2}
		w := witness.Prover{Node: "a", Host: here, End: this.KillTree, Look: this.Outlasted}
		for who, ask := range map[string]func(context.Context) (fencing.Liveness, string, error){
			"the claimant": func(ctx context.Context) (fencing.Liveness, string, error) {
				return w.Prove(ctx, q.Target(""))
			},
			"the agent": func(ctx context.Context) (fencing.Liveness, string, error) {
				return (&answerer{machine: this, self: self, tree: func(string, json.RawMessage) *service.OwnTree { return nil }}).prove(ctx, q)
			},
		} {
			verdict, _, err := ask(t.Context())
			if verdict != c.want || (err != nil) != (c.want != fencing.Dead) {
				t.Errorf("%s, says %s: %v, %v", c.name, who, verdict, err)
			}
		}
		s := witness.KillLocal(t.Context(), fencing.Target{Node: "a", Machine: here.Machine, Boot: here.Boot, Tree: tree, Seen: c.seen}, this.PendingEffects)
		if s.Dead != (c.want == fencing.Dead) || s.Undone != s.Dead || s.Alive != (c.want == fencing.Alive) {
			t.Errorf("%s, says its machine: %+v", c.name, s)
		}
		if err := w.Look(tree, c.seen); (err == nil) != (c.want == fencing.Dead) { // before its breadcrumb goes
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_ = cmd.Process.Kill()
	_, _ = cmd.Process.Wait()
	w := witness.Prover{Node: "a", Host: here, End: this.KillTree, Look: this.Outlasted}
	if verdict, _, err := w.Prove(t.Context(), fencing.Target{Service: "db", Node: "a", Machine: here.Machine, Boot: here.Boot, Tree: goneTree(1), Seen: fencing.ProcessID{Pid: pid, Start: start}}); verdict != fencing.Dead {
		t.Errorf("dead at last: %v, %v", verdict, err)
	}
}

// P2: what systemd removed with its unit is known to be dead by the proof that was made before, if no process of it was seen alive.
func TestATreeThatIsGoneIsDeadWithAllThatItsSupervisorStarted(t *testing.T) {
	here := box.Host{Machine: "m", Boot: "b"}
	for name, c := range map[string]struct {
		died string
		seen fencing.ProcessID
		want fencing.Liveness
	}{
		"it is": {"0x7", fencing.ProcessID{}, fencing.Dead}, "another session's": {"0x8", fencing.ProcessID{}, fencing.Unknown},
		"a process was seen": {"0x7", fencing.ProcessID{Pid: 1 << 29, Start: 1}, fencing.Unknown},
	} {
		w := witness.Prover{Node: "a", Host: here, Died: func(session string) bool { return session == c.died },
			End:  func(context.Context, json.RawMessage) error { return box.ErrNotSeen },
			Look: func(json.RawMessage, fencing.ProcessID) error { return nil },
		}
		verdict, _, err := w.Prove(t.Context(), fencing.Target{Node: "a", Machine: "m", Boot: "b", Session: "0x7", Seen: c.seen})
		if verdict != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, verdict, err)
		}
	}
}

func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	must.OK(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	start, err := strconv.ParseUint(strings.Fields(rest)[19], 10, 64)
	must.OK(t, err)
	return start
}
