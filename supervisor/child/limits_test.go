package child

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
)

func TestLimitsAreKnownToTheKernel(t *testing.T) {
	for name, resource := range limits {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(resource, &limit); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(limits) != 16 {
		t.Errorf("Linux has 16 limits, not %d", len(limits))
	}
}

// Go raises the soft limit of open files in every process that it starts in: programs are to see it as it was.
func TestProgramSeesTheSoftLimitThatTheSupervisorWasStartedWith(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if was.Max < 1000 {
		t.Fatalf("a hard limit of %d leaves no room", was.Max)
	}
	kindsInTurn(t, func(t *testing.T, kind string) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 611, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		before := givenUp.Load()
		defer func() {
			_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
			givenUp.Store(before)
		}()
		tree := planted(t, guarded(t, kind))
		for name, settings := range map[string]Settings{"plain": {}, "launched": {Umask: ptr(uint32(0o22))}} {
			if got := says(t, tree, Spec{Settings: settings}, "ulimit -Sn"); got != "611" {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

// The unit forbids core dumps, since the supervisor's memory has secrets. A service may have them all the same.
func TestProgramMayHaveCoreDumpsWhereTheSupervisorMayNot(t *testing.T) {
	need.These(t, "root")
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &was); err != nil {
		t.Fatal(err)
	}
	own := new(capSets)
	if errno := own.call(unix.SYS_CAPGET); errno != 0 {
		t.Fatal(errno)
	}
	hard := uint64(0)
	if own.data[0].Effective>>unix.CAP_SYS_RESOURCE&1 == 0 { // root in a container: it could not even take it back
		hard = was.Max
	}
	kindsInTurn(t, func(t *testing.T, kind string) {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 0, Max: hard}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &was) }()
		tree := planted(t, guarded(t, kind))
		some := Settings{Credential: asNobody(), NoNewPrivs: true, Capabilities: &Capabilities{Bounding: ptr(uint64(0))}}
		for want, limits := range map[string][]Limit{"0": nil, "2048": {{"core", 1 << 20, 1 << 20}}} { // in blocks of 512 bytes
			some.Limits = limits
			if got := says(t, tree, Spec{Settings: some}, "ulimit -Sc"); got != want {
				t.Errorf("it is %s, not %s", got, want)
			}
		}
	})
}
