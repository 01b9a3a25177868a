package promises

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

// A node without the program does not stand for it. One that does not stay is tried a few times, and then another node has its turn.
func TestProgramThatDoesNotRunIsGivenUpToTheStandby(t *testing.T) {
	noProgram := filepath.Join(t.TempDir(), "no-such-program")
	for name, c := range map[string]struct {
		command func(p *kit.Play) []string
		says    []string // all of them in one line of the log
		runs    int      // how often it may run before it is given up
	}{
		"missing":       {func(*kit.Play) []string { return []string{noProgram} }, []string{"it could not start here", noProgram, "no such file"}, 0},
		"exits at once": {func(p *kit.Play) []string { return p.Child("exit=3", "after=0s") }, []string{"another node", "3 times"}, 3},
		"crash loop":    {func(p *kit.Play) []string { return p.Child("crash=100ms") }, []string{"another node", "3 times"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, stage(t))
			a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
			ill := p.FromFile(t, a, p.Config(t, a, "", kit.Command(c.command(p)), kit.Impatient))
			kit.Until(t, soon, "the fault is told", func() bool { return ill.Says(c.says...) })
			p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child()), kit.Impatient))
			p.On(t, soon, "b", 0)
			p.Alone(t, 500*time.Millisecond, "b")
			if n := len(p.Runs()) - 1; n != c.runs {
				t.Errorf("it ran %d times on a, not %d", n, c.runs)
			}
			p.Role(t, "a", map[bool]string{true: "failed", false: "standby"}[c.runs > 0])
			if strings.Contains(ill.Log(), "goroutine ") {
				t.Error("the log shows a stack")
			}
		})
	}
}

// An unhealthy child is started again here, and given to the standby when that does not help.
func TestAnUnhealthyServiceIsGivenToTheStandby(t *testing.T) {
	p := play(t, stage(t))
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	well := filepath.Join(t.TempDir(), "well")
	must.OK(t, os.WriteFile(well, nil, 0o600))
	health := fmt.Sprintf("health: {exec: [test, -e, %s], interval: 100ms, timeout: 1s, failures: 2}", well)
	s := p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), health, kit.Impatient))
	run := p.On(t, soon, "a", 0)
	p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child())))
	p.Stands(t, b)
	p.Untouched(t, run)
	must.OK(t, os.Remove(well))
	p.On(t, soon, "b", run.First)
	p.Role(t, "a", "failed")
	// One that is ended again before it came to keep an account was a start all the same.
	onB := 0
	for _, r := range p.Runs() {
		if r.Node == "b" {
			onB++
		}
	}
	if n := strings.Count(s.Log(), "program started"); n != 3 || onB != 1 {
		t.Errorf("it ran %d times on a and %d on b: wanted 3 and 1", n, onB)
	}
	if !s.Says("unhealthy") {
		t.Error("the log does not say why")
	}
}

// A check that hangs, and forks what nobody waits for, is killed with all of it; the child is restarted, others do not notice.
func TestACheckThatHangsIsKilledWithWhatItForked(t *testing.T) {
	p := play(t, stage(t))
	seconds := fmt.Sprint(77000000 + os.Getpid())
	health := fmt.Sprintf(`health: {exec: [sh, -c, 'setsid sleep %s & sleep 1000'], interval: 300ms, timeout: 200ms, failures: 2}`, seconds)
	a := p.Lab.Machine(t, "a")
	s := p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), health, kit.Impatient))
	kit.Until(t, soon, "it is found unhealthy", func() bool { return s.Says("unhealthy") })
	p.Role(t, "a", "failed")
	kit.Until(t, soon, "nothing of the check is left", func() bool { return sleepers(seconds) == 0 })
}

// sleepers counts the processes that sleep for so long.
func sleepers(seconds string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	n := 0
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && string(line) == "sleep\x00"+seconds+"\x00" {
			n++
		}
	}
	return n
}

// What is missing here is told in one line that says what to do, and the standby, which has it, takes over. The lines of other things
// that are missing are rows of testbed/mistakes.
func TestAWorldThatCannotBeHadIsGivenToTheStandby(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	for name, c := range map[string]struct {
		line string
		says []string
	}{
		"env file":    {"env_file: " + gone, []string{"it could not start here: env_file", gone}},
		"never ready": {fmt.Sprintf("ready: {exec: [test, -e, %s], timeout: 100ms}", gone), []string{"is not ready within 100ms", "exit code 1"}},
		"never says":  {"ready: {notify: true, timeout: 100ms}", []string{"READY=1 within 100ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, stage(t))
			a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
			ill := p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child()), c.line, kit.Impatient))
			kit.Until(t, soon, "the fault is told", func() bool { return ill.Says(c.says...) })
			role := "failed"
			if !strings.HasPrefix(name, "never") {
				role = "standby" // it does not stand
			}
			p.Role(t, "a", role)
			p.FromFile(t, b, p.Config(t, b, "", kit.Command(p.Child())))
			p.On(t, soon, "b", 0)
			p.Alone(t, 500*time.Millisecond, "b")
		})
	}
}
