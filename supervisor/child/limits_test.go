package child

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/testbed/must"
)

// Go raises the soft limit of open files in every process that it starts in: programs are to see it as it was.
func TestProgramSeesTheSoftLimitThatTheSupervisorWasStartedWith(t *testing.T) {
	if !innerHalf(t, "sh", "-c", `ulimit -Sn 611 && exec "$0" "$@"`) {
		return
	}
	kindsInTurn(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		for name, settings := range map[string]inside.Settings{"plain": {}, "launched": {Umask: new(uint32(0o22))}} {
			if got := says(t, tree, Spec{Settings: settings}, "ulimit -Sn"); got != "611" {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

// When memory is short the kernel is to take any program before the supervisor and its guardians, and programs are as likely as without them.
func TestProgramsAreKilledBeforeTheSupervisorWhenMemoryIsShort(t *testing.T) {
	need.These(t, "root")
	if !innerHalf(t, "sh", "-c", `echo 77 >/proc/self/oom_score_adj && exec "$0" "$@"`) {
		return
	}
	lowest := "0" // root in a container can only take back what it has raised
	var own [2]unix.CapUserData
	must.OK(t, unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &own[0]))
	if own[0].Effective>>unix.CAP_SYS_RESOURCE&1 != 0 {
		lowest = "-900"
	}
	kindsInTurn(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		text, err := os.ReadFile("/proc/self/oom_score_adj")
		if got := strings.TrimSpace(string(text)); got != lowest || err != nil {
			t.Errorf("the supervisor's is %s, %v", got, err)
		}
		for want, settings := range map[string]inside.Settings{"77": {}, "5": {OOMScoreAdj: new(5)}} {
			if got := says(t, tree, Spec{Settings: settings}, "cat /proc/self/oom_score_adj"); got != want {
				t.Errorf("a program's is %s, not %s", got, want)
			}
		}
	})
}

// The unit forbids core dumps, since the supervisor's memory has secrets. A service may have them all the same.
func TestProgramMayHaveCoreDumpsWhereTheSupervisorMayNot(t *testing.T) {
	need.These(t, "root")
	var was unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_CORE, &was))
	var own [2]unix.CapUserData
	must.OK(t, unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &own[0]))
	hard := uint64(0)
	if own[0].Effective>>unix.CAP_SYS_RESOURCE&1 == 0 { // root in a container: it could not even take it back
		hard = was.Max
	}
	kindsInTurn(t, func(t *testing.T, kind string) {
		must.OK(t, unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 0, Max: hard}))
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &was) }()
		tree := planted(t, guarded(t, kind))
		some := inside.Settings{Credential: asNobody(), NoNewPrivs: true, Capabilities: &inside.Capabilities{Bounding: new(uint64(0))}}
		for want, limits := range map[string][]inside.Limit{"0": nil, "2048": {limitOf("core", 1<<20, 1<<20)}} { // in blocks of 512 bytes
			some.Limits = limits
			if got := says(t, tree, Spec{Settings: some}, "ulimit -Sc"); got != want {
				t.Errorf("it is %s, not %s", got, want)
			}
		}
	})
}
