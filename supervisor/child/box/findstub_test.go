package box

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// stubOf is a process that holds a dead signal as a stub does, and whether that is raised.
func stubOf(t *testing.T, raised bool) (s Stat, end func()) {
	t.Helper()
	signal, err := NewDeadSignal()
	must.OK(t, err)
	defer signal.Close()
	if raised {
		must.OK(t, Ring(int(signal.Fd())))
	}
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles = []*os.File{os.Stderr, signal}
	must.OK(t, cmd.Start())
	end = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(end)
	s, err = StatOf(cmd.Process.Pid)
	must.OK(t, err)
	return s, end
}

// P2: a walked tree is dead by the word of a stub that was held. One that has ended before that has taken its word with it, though it was
// found, and though another has said that all below itself is dead.
func TestAStubThatEndedBeforeItWasHeldProvesNothing(t *testing.T) {
	need.These(t, "root")
	maker, end := stubOf(t, false)
	end()
	users, err := UserNS()
	must.OK(t, err)
	id := TreeID{Kind: KindWalk, Name: "db", Mark: StubMark + "0123456789", Pid: maker.Pid, StartTime: maker.Start, UserNS: users}
	for name, c := range map[string]struct {
		ended  []bool // of each that was found: before it is held
		proved bool
	}{
		"none is found":           {nil, false},
		"it has ended":            {[]bool{true}, false},
		"the first one has ended": {[]bool{true, false}, false},
		"the other one has ended": {[]bool{false, true}, false},
		"it says so":              {[]bool{false}, true},
	} {
		var found []Stat
		for _, ended := range c.ended {
			s, end := stubOf(t, true)
			if ended {
				end()
			}
			found = append(found, s)
		}
		if err := id.killStubs(t.Context(), found); (err == nil) != c.proved || err != nil && !errors.Is(err, ErrUnproved) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
