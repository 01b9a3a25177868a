package watchdog

import (
	"testing"

	"understudy/supervisor/testbed/kit/tick"
)

// inside is the cgroup of the program, in the machine's shell.
const inside = "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$(pidof child | sed 's/ .*//')/cgroup)"

// The limits of memory, cpu and tasks need a kernel that has their controllers in cgroup v2, which machines that run tests may not have.
func TestAProgramsProcessesAreBoundedTogether(t *testing.T) {
	p := newPlayWith(t, "    limits: {memory: 32MiB, cpu: 50%, tasks: 30, nofile: 100}\n    restart: {delay: 100ms}\n", "off", "children=1")
	if got, want := p.a.do(t, "cd "+inside+" && cat memory.max cpu.max pids.max memory.oom.group"), "33554432\n50000 100000\n30\n1"; got != want {
		t.Errorf("in %s: %q, want %q", p.a.do(t, "echo "+inside), got, want)
	}
	if got := p.a.do(t, "cat /sys/fs/cgroup/unit/cgroup.procs; sed -n 's/^0:://p' /proc/$(cat /run/understudy.pid)/cgroup"); got != "/unit/understudy.self" {
		t.Errorf("the supervisor is in %q", got)
	}
	// Where memory is short for all, the kernel ends programs before supervisors, and guardians last.
	if got, want := p.a.do(t, "for p in $(pidof child understudy); do cat /proc/$p/oom_score_adj; done | sort -n | uniq"), "-1000\n-900\n0"; got != want {
		t.Errorf("scores for the kernel's choice: %q, want %q", got, want)
	}
	// One process more that takes what there is: all of them are killed together, and the program is started again.
	began := tick.Now()
	p.a.do(t, "sh -c 'echo $$ >'"+inside+"'/cgroup.procs; exec tail /dev/zero' || true")
	p.On(t, soon, "a", began)
	const status = "understudy status --json --config /etc/understudy.yaml | grep -o 'killed by [^.\"]*' | head -n 1"
	if got, want := p.a.do(t, status), "killed by SIGKILL, out of memory"; got != want {
		t.Errorf("status says %q, not %q", got, want)
	}
	if got := p.a.do(t, "cd "+inside+" && cat memory.max"); got != "33554432" {
		t.Errorf("the next run has %q", got)
	}
	p.CheckOverlap(t)
}
