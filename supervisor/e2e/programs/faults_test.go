package programs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// faulty is one supervisor with a service that is well, and others that are not.
type faulty struct {
	*set
	*kit.Accounts // of the service that is well
	*kit.Supervisor
	t    *testing.T
	conf string // the config's directory, a file system of its own
	file string
	dir  string // for what the other services need
}

// newFaulty runs services beside the one that is well. What they need they find in DIR.
func newFaulty(t *testing.T, services string) *faulty {
	t.Helper()
	f := &faulty{set: newSet(t, "well"), t: t, conf: mount(t, "1m"), dir: t.TempDir()}
	f.Accounts = kit.NewAccounts(t, f.Lab)
	f.file = filepath.Join(f.conf, "understudy.yaml")
	f.edit(services)
	return f
}

func (f *faulty) edit(services string) {
	f.t.Helper()
	text := fmt.Sprintf(`node: a
zookeeper: {servers: [%s], root: %s, session_timeout: %v, trusted_network: true}
defaults: {restart: {delay: 100ms, rejoin_after: 1s}}
services:
  well: {command: [%s]}
%s`, strings.Join(f.Servers, ", "), f.root, session, strings.Join(f.Child("every=5ms"), ", "), strings.ReplaceAll(services, "DIR", f.dir))
	must(f.t, os.WriteFile(f.file+".new", []byte(text), 0o600))
	must(f.t, os.Rename(f.file+".new", f.file))
}

func (f *faulty) run() {
	f.t.Helper()
	f.files["a"] = f.file
	f.Supervisor = f.start(f.t, f.a)
	f.On(f.t, soon, "a", 0)
}

// says waits for one line of the log that holds all the words.
func (f *faulty) says(words ...string) {
	f.t.Helper()
	if !kit.Reached(soon, func() bool { return f.Says(words...) }) {
		f.t.Fatalf("no line of the log says %q", words)
	}
}

// unmoved demands that the service that is well was never touched.
func (f *faulty) unmoved() {
	f.t.Helper()
	if runs, running := f.Accounts.Runs(), f.Accounts.Running(); len(runs) != 1 || len(running) != 1 {
		f.t.Errorf("the service that is well was touched: %+v", runs)
	}
}

// mount makes a file system of some size, and returns where it is.
func mount(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, syscall.Mount("none", dir, "tmpfs", 0, "mode=755,size="+size))
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// number reads a number that a program keeps writing to a file.
func number(file string) (n int) {
	text, _ := os.ReadFile(file)
	_, _ = fmt.Sscan(string(text), &n) // none yet, or half of it
	return n
}

func TestAFullDiskUnderALogHoldsUpNobody(t *testing.T) {
	t.Parallel()
	disk := mount(t, "256k")
	f := newFaulty(t, `  talks:
    command: [sh, -c, 'i=0; while :; do i=$((i+1)); echo "line $i: 0123456789012345678901234567890123456789012345678901234567890123456789"; echo $i >DIR/n.new; mv DIR/n.new DIR/n; sleep 0.001; done']
    log: {file: `+disk+`/talks.log, max_size: 10MiB}
`)
	must(t, os.WriteFile(filepath.Join(disk, "ballast"), make([]byte, 240<<10), 0o600))
	f.run()
	f.says("cannot be written", "the program goes on", disk+"/talks.log", "no space left")
	at := number(f.dir + "/n")
	kit.Until(t, soon, "the program goes on", func() bool { return number(f.dir+"/n") > at+100 })
	must(t, os.Remove(filepath.Join(disk, "ballast")))
	f.says("can be written again", disk+"/talks.log", "lost_lines")
	f.unmoved()
}

func TestAConfigDirectoryThatCannotBeWrittenToIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	const other = "  other: {command: [sleep, '1000']}\n"
	f := newFaulty(t, other)
	kit.Until(t, soon, "the directory cannot be written to", func() bool {
		err := syscall.Mount("none", f.conf, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		if !errors.Is(err, syscall.EBUSY) { // what another test is just forking may still have the file open
			must(t, err)
		}
		return err == nil
	})
	if err := os.WriteFile(f.file, nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Fatalf("the directory can be written to: %v", err)
	}
	f.run()
	if strings.Contains(f.Log(), "[ERROR]") || strings.Contains(f.Log(), "[WARN]") {
		t.Error("it complains")
	}
	f.Signal(syscall.SIGHUP)
	must(t, syscall.Mount("none", f.conf, "tmpfs", syscall.MS_REMOUNT, ""))
	f.edit(other + "  another: {command: [sleep, '1000']}\n")
	f.says("config reloaded", "another")
	f.unmoved()
}

func TestAnEnvFileThatVanishesIsMissedAtTheNextStartOnly(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, `  reads: {command: [sh, -c, 'echo $$ >DIR/$NAME; exec sleep 1000'], env_file: DIR/env}
`)
	env := filepath.Join(f.dir, "env")
	must(t, os.WriteFile(env, []byte("NAME=first\n"), 0o600))
	f.run()
	var pid int
	kit.Until(t, soon, "it runs", func() bool { pid = number(f.dir + "/first"); return pid > 0 })
	must(t, os.Remove(env))
	kit.Throughout(t, 300*time.Millisecond, "it goes on without the file", func() bool { return kit.Alive(pid) })
	kit.Signal(syscall.SIGKILL, pid)
	f.says("cannot be started", "service=reads", "env_file", env, "no such file")
	must(t, os.WriteFile(env+".new", []byte("NAME=second\n"), 0o600)) // never half of it: it is looked for again and again
	must(t, os.Rename(env+".new", env))
	kit.Until(t, soon, "it runs again once the file is back", func() bool { return number(f.dir+"/second") > 0 })
	f.unmoved()
}

// An upgrade replaces programs while they run; a bad one leaves what is no program.
func TestAProgramThatIsReplacedIsTheNewOneAtTheNextStart(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, "  upgraded: {command: [DIR/program]}\n")
	program := filepath.Join(f.dir, "program")
	replace := func(text string) {
		t.Helper()
		must(t, os.WriteFile(program+".new", []byte(text), 0o700))
		must(t, os.Rename(program+".new", program))
	}
	version := func(n int) string { return fmt.Sprintf("#!/bin/sh\necho $$ >%s/v%d\nexec sleep 1000\n", f.dir, n) }
	pid := func(n int) (pid int) {
		t.Helper()
		kit.Until(t, soon, fmt.Sprint("version ", n, " runs"), func() bool { pid = number(fmt.Sprintf("%s/v%d", f.dir, n)); return pid > 0 })
		return pid
	}
	replace(version(1))
	f.run()
	first := pid(1)
	replace(version(2))
	kit.Throughout(t, 300*time.Millisecond, "the old one goes on", func() bool { return kit.Alive(first) })
	f.order(t, "restart", "upgraded")
	second := pid(2)
	replace("\x7fELF and no more\n")
	kit.Signal(syscall.SIGKILL, second)
	f.says("cannot be started", "service=upgraded", program, "exec format error")
	replace(version(3))
	pid(3)
	f.unmoved()
}

// What is wrong with some services, all at once, is told of each, and holds up none of the others.
func TestManyFaultyServicesLeaveTheOthersAlone(t *testing.T) {
	t.Parallel()
	nap := fmt.Sprint(88000000 + os.Getpid())
	f := newFaulty(t, `  stranger: {command: [sleep, '1000'], user: no-such-user}
  hangs:
    command: [sleep, '1000']
    health: {exec: [sh, -c, 'setsid sleep `+nap+` & while :; do sleep 1000 & wait; done'], interval: 200ms, timeout: 100ms, failures: 2}
  missing: {command: [DIR/no-such-program]}
  unready: {command: [sleep, '1000'], ready: {tcp: '127.0.0.1:1', timeout: 200ms}}
`)
	f.run()
	f.says("service=stranger", "no-such-user", "does not exist", "create it")
	f.says("service=hangs", "unhealthy")
	f.says("service=missing", f.dir+"/no-such-program", "no such file")
	f.says("service=unready", "not ready within 200ms", "refused")
	for _, name := range []string{"stranger", "hangs", "missing", "unready"} {
		kit.Until(t, soon, name+" shows in the status", func() bool {
			r := f.a.Ask(t, "status", name, "--zk", strings.Join(f.Servers, ","), "--root", f.root)
			return r.Code == 0 && strings.Contains(r.Out, "failed")
		})
	}
	f.unmoved()
	f.Stop(t)
	kit.Until(t, soon, "nothing of the check is left", func() bool {
		found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range found {
			if line, _ := os.ReadFile(file); string(line) == "sleep\x00"+nap+"\x00" {
				return false
			}
		}
		return true
	})
}
