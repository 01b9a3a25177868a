package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
)

// transition is a role's line in a log.
type transition struct{ Service, From, To, Reason string }

// transitions reads them from a log, in text or as JSON.
func transitions(t *testing.T, log, format string) (all []transition) {
	t.Helper()
	text := regexp.MustCompile(`\[INFO\]  understudy: role: service=(\S+) from=(\S+) to=(\S+) reason=("[^"]*"|\S+)`)
	for line := range strings.Lines(log) {
		if format == "json" {
			var entry struct {
				transition
				Message, Level string
			}
			keys := strings.NewReplacer(`"@message"`, `"message"`, `"@level"`, `"level"`)
			if err := json.Unmarshal([]byte(keys.Replace(line)), &entry); err != nil {
				t.Fatalf("no JSON: %q", line)
			}
			if entry.Message == "role" && entry.Level == "info" {
				all = append(all, entry.transition)
			}
		} else if f := text.FindStringSubmatch(line); f != nil {
			all = append(all, transition{f[1], f[2], f[3], strings.Trim(f[4], `"`)})
		}
	}
	return all
}

// story is the roles that a service had, each with the reason. Every one follows from the one before.
func story(t *testing.T, s *kit.Supervisor, service, format string) (steps string) {
	t.Helper()
	role := "offline"
	for _, tr := range transitions(t, s.Log(), format) {
		if tr.Service != service || tr.From != role || tr.To == role || tr.Reason == "" {
			t.Errorf("%s: after %s comes %+v", s.Host.Name, role, tr)
		}
		role = tr.To
		steps += tr.To + "(" + tr.Reason + ") "
	}
	// Who claims while the order that freed the lock is being taken back has to look again.
	return strings.ReplaceAll(steps, "claiming(lock free) standby(lock taken) ", "")
}

// What happened at night is read in the morning from the logs alone.
func TestTheLogsTellTheStoryOfAFailover(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			p := brief(t, stage(t))
			p.Options.Flags = []string{"--log-format", format}
			a, b, op := p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), p.Lab.Host(t, "op")
			service := p.Options.Service
			first, second, run := p.Pair(t, a, b)
			p.order(t, op, "pause", service, "--reason", "new disks")
			p.Role(t, "b", "paused") // what is taken back at once nobody need have noticed
			kit.Until(t, soon, "a has heard of it", func() bool { return first.Says("new disks") })
			p.order(t, op, "resume", service)
			kit.Until(t, soon, "a has heard of that", func() bool { return first.Says("automatic takeovers are on again") })
			p.Stands(t, b)
			p.order(t, op, "restart", service)
			p.order(t, op, "switchover", service, "--to", "b")
			p.On(t, soon, "b", run.First)
			p.Stands(t, a)
			p.order(t, op, "switchover", service)
			p.Alone(t, 0, "a")
			p.Stands(t, b)
			first.Kill9()
			run = p.On(t, soon, "b", run.First)
			third := p.Standby(t, a)
			b.Cut(t)
			run = p.On(t, soon, "a", run.First)
			for what, told := range map[string]func() bool{
				"guardians tell what they did": func() bool { return first.Says("warn", "the supervisor died", "killed", service) },
				"b took over from a":           func() bool { return second.Says("warn", "took over without a switchover", "guardians") },
				"b tells the outage":           func() bool { return second.Says("info", "ready after a takeover", "nothing_ran") },
				"a took over from b":           func() bool { return third.Says("warn", "took over without a switchover", "grace", "proof_took") },
			} {
				kit.Until(t, soon, what, told)
			}
			b.Heal(t)
			p.Stands(t, b)
			third.Stop(t)
			p.On(t, soon, "b", run.First)

			const taken = "claiming(lock free) active(no other node runs it) "
			const fenced = "claiming(lock free) fencing(lock won) active(no other node runs it) "
			const switched = "stopping(switchover) standby(lock released) "
			for s, want := range map[*kit.Supervisor]string{
				first: "standby(session opened) " + taken + switched + taken,
				second: "standby(session opened) paused(service paused) standby(service resumed) " + taken + switched + taken +
					"stopping(lease ending) offline(session over) standby(session opened) " + taken,
				third: "standby(session opened) " + fenced + "stopping(stop asked) ",
			} {
				if got := story(t, s, service, format); !strings.HasPrefix(got, want) {
					t.Errorf("%s:\n%s, want\n%s", s.Host.Name, got, want)
				}
			}
			for _, c := range []struct {
				s     *kit.Supervisor
				words []string
			}{
				{first, []string{"new disks", "paused", "root@"}}, // it went on, and says so all the same
				{first, []string{"automatic takeovers are on again"}},
				{first, []string{"orders a restart", "root@"}},
				{first, []string{"orders a switchover", "root@", "b"}},
				{second, []string{"acknowledges nothing", "lease is ending"}},
				{third, []string{"fencing the previous node", "grace"}},
				{third, []string{"stopping", "terminated"}},
			} {
				if !c.s.Says(c.words...) {
					t.Errorf("the log of %s has no line with %q:\n%s", c.s.Host.Name, c.words, c.s.Log())
				}
			}
		})
	}
}
