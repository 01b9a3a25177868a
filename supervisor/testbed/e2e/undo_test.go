package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/testbed/hung"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// exclusive is a oneshot that fails if its effect is there already, as of another host, and whose undo fails so often before it works.
func (d diary) exclusive(t *testing.T, failures int) string {
	return d.exclusiveUntil(t, fmt.Sprintf(`echo x >> tries; [ $(wc -l < tries) -gt %d ] || exit 32`, failures), 2*time.Second)
}

// exclusiveUntil has an undo that works once a script ends with success.
func (d diary) exclusiveUntil(t *testing.T, script string, within time.Duration) string {
	dir := t.TempDir()
	do := fmt.Sprintf(`cd %s; set -C; if echo x > effect; then echo "+$UNDERSTUDY_NODE" >> %s; else echo clash >> %[2]s; exit 1; fi`, dir, d)
	undo := fmt.Sprintf(`cd %s; %s; rm -f effect; echo "-$UNDERSTUDY_NODE" >> %s`, dir, script, d)
	return fmt.Sprintf(`  - {name: fs, command: [sh, -c, '%s'], oneshot: true, undo: [sh, -c, '%s'], undo_timeout: %v}`, do, undo, within)
}

// P2: an effect that outlives its process, as a mount does, is on one host alone, though its undo fails.
func TestWhatIsNotUndoneIsOnOneHostAlone(t *testing.T) {
	p, d := newPlay(t, stage(t)), newDiary(t)
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	unit := []string{"processes:", d.exclusive(t, 3), `  - {name: web, command: [sleep, "1000"]}`}
	p.FromFile(t, a, p.Config(t, a, "", unit...))
	d.until(t, "+a")
	p.FromFile(t, b, p.Config(t, b, "", unit...))
	p.Role(t, "b", "standby")
	asked := make(chan kit.Result, 1)
	go func() { asked <- p.Lab.Host(t, "op").Ask(t, p.asking("switchover", p.Options.Service, "--to", "b")...) }()
	kit.Until(t, soon, "the status says why it stops", func() bool {
		m, _ := p.Member(p.Options.Service, "a")
		return m.Role == "stopping" && strings.HasPrefix(m.Why, "not undone: fs: exit code 32, next try in ")
	})
	if l, held := p.Lock(p.Options.Service); !held || l.Node != "a" {
		t.Errorf("the lock is %+v, %v", l, held)
	}
	if r := <-asked; r.Code != 0 {
		t.Errorf("%+v", r)
	}
	d.until(t, "+a -a +b")
}

// P2: whoever stops a supervisor waits for its undo. One that works only in the last try, which ends after half a minute, counts: nothing is left.
func TestAnUndoThatWorksLateLeavesNothing(t *testing.T) {
	p, d := newPlay(t, stage(t)), newDiary(t)
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	unit := []string{"processes:", d.exclusiveUntil(t, `[ -e since ] || date +%s > since; [ $(($(date +%s) - $(cat since))) -ge 27 ] || exit 32; sleep 5`, 10*time.Second),
		`  - {name: web, command: [sleep, "1000"]}`}
	s := p.FromFile(t, a, p.Config(t, a, "", unit...))
	d.until(t, "+a")
	p.FromFile(t, b, p.Config(t, b, "", unit...))
	p.Role(t, "b", "standby")
	began := time.Now()
	s.Stop(t)
	if took := time.Since(began); took < 30*time.Second {
		t.Errorf("it ended after %v", took)
	}
	d.until(t, "+a -a +b")
	if s.Says("is not undone: the lock ends with its session") {
		t.Error("it says that something is left")
	}
}

// P2: guardians undo what a supervisor did that was killed, or is frozen at the end of its lease, and nothing is done elsewhere before that.
func TestGuardiansUndoWhatAKilledOrFrozenSupervisorDid(t *testing.T) {
	for name, fault := range map[string]func(s *kit.Supervisor){
		"killed": func(s *kit.Supervisor) { s.Kill9() },
		"frozen": func(s *kit.Supervisor) { s.Signal(syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			p, d := newPlay(t, stage(t)), newDiary(t)
			a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
			unit := []string{"restart: {rejoin_after: 1s}", "processes:", d.exclusive(t, 1), `  - {name: web, command: [sleep, "1000"]}`}
			s := p.FromFile(t, a, p.Config(t, a, "", unit...))
			d.until(t, "+a")
			p.FromFile(t, b, p.Config(t, b, "", unit...))
			p.Role(t, "b", "standby")
			fault(s)
			d.until(t, "+a -a +b") // its first attempt has failed
			if name == "frozen" {  // and once it goes on, it claims nothing else
				s.Signal(syscall.SIGCONT)
				p.Role(t, "a", "standby")
				if s.Says("not undone") {
					t.Error("it says that what its guardians have undone is not undone")
				}
			}
		})
	}
}

// P2: what guardians can undo only after the session has ended, as where a disk answers late, another node takes, once they have.
func TestWhatIsUndoneAfterTheSessionIsTakenByAnother(t *testing.T) {
	p, d := brief(t, stage(t)), newDiary(t)
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	answers := filepath.Join(t.TempDir(), "answers")
	unit := []string{"processes:", fmt.Sprintf(
		`  - {name: fs, command: [sh, -c, 'echo "+$UNDERSTUDY_NODE" >> %s'], oneshot: true, undo: [sh, -c, '[ -e %s ] && echo "-$UNDERSTUDY_NODE" >> %[1]s'], undo_timeout: 2s}`,
		d, answers), `  - {name: web, command: [sleep, "1000"]}`}
	s := p.FromFile(t, a, p.Config(t, a, "", unit...))
	d.until(t, "+a")
	p.FromFile(t, b, p.Config(t, b, "", unit...))
	p.Role(t, "b", "standby")
	guardians := s.TwoGuardians(t)
	s.Kill9()
	kit.Until(t, soon, "the session has ended, and b may not start it", func() bool {
		l, held := p.Lock(p.Options.Service)
		m, _ := p.Member(p.Options.Service, "b")
		return (!held || l.Node != "a") && m.Role != "standby"
	})
	must.OK(t, os.WriteFile(answers, nil, 0o600))
	d.until(t, "+a -a +b")
	kit.Until(t, soon, "the guardians have ended", func() bool { return !kit.Alive(guardians[0]) && !kit.Alive(guardians[1]) })
	if !s.Says("its guardian killed the programs", "undone=") {
		t.Error("no guardian tells what it has undone")
	}
}

// noted reports whether a note of what is to be undone has the words.
func noted(words string) bool {
	all, _ := filepath.Glob(filepath.Join(os.Getenv(keyfile.RunVariable), "*.undo")) // the pattern is a good one
	return slices.ContainsFunc(all, func(path string) bool {
		text, _ := os.ReadFile(path) // it may be gone
		return strings.Contains(string(text), words)
	})
}

// P2: an unmount that hangs, as of a device whose server does not answer, goes on after all that looks done: the table of mounts has the file
// system no more, and what is not written yet is written once the server answers. Until its process has ended, nobody is believed that
// nothing is left: neither by the supervisor nor, if that is killed, by its guardians.
func TestAnUnmountThatHangsIsNotUndone(t *testing.T) {
	need.These(t, "cgroup")
	for name, killed := range map[string]bool{"asked to stop": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			p, d, dir := newPlay(t, stage(t)), newDiary(t), filepath.Join(kit.Open(t, t.TempDir()), "data")
			must.OK(t, os.Mkdir(dir, 0o755))
			a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
			unit := []string{"processes:", fmt.Sprintf(`  - {name: fs, command: [sh, -c, 'echo "+$UNDERSTUDY_NODE" >> %s'], oneshot: true, undo: [umount, %s], `+
				`undone: [sh, -c, 'if grep -qF " %[2]s " /proc/self/mountinfo; then exit 1; fi'], undo_timeout: 500ms}`, d, dir), `  - {name: web, command: [sleep, "1000"]}`}
			s := p.FromFile(t, a, p.Config(t, a, "", unit...))
			d.until(t, "+a")
			answer := hung.Unmount(t, dir, func(words ...string) *exec.Cmd {
				return exec.Command("nsenter", append([]string{fmt.Sprintf("--mount=/proc/%d/ns/mnt", s.Pid)}, words...)...)
			})
			p.FromFile(t, b, p.Config(t, b, "", unit...))
			p.Role(t, "b", "standby")
			if killed {
				s.Kill9()
				// By its end the process of the first attempt was killed as well.
				kit.Throughout(t, 40*time.Second, "b does not start it, and what is to be undone is noted", func() bool { return d.text() == "+a" && noted(dir) })
			} else {
				s.Signal(syscall.SIGTERM)
				kit.Until(t, soon, "the status says that it hangs", func() bool {
					m, _ := p.Member(p.Options.Service, "a")
					return strings.Contains(m.Why, "(umount), state D (disk sleep)")
				})
				if l, held := p.Lock(p.Options.Service); !held || l.Node != "a" {
					t.Errorf("the lock is %+v, %v", l, held)
				}
			}
			answer()
			d.until(t, "+a +b")
		})
	}
}
