package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// The reader of the supervisors' output has stopped reading: a stopped `| tee`, a log driver that blocks, a journal that hangs. A program
// that dies is started again, a standby takes over, and a supervisor stops.
func TestALogThatNobodyReadsHoldsUpNothing(t *testing.T) {
	p := newPlay(t, stage(t))
	dir := t.TempDir()
	full, script := filepath.Join(dir, "full"), filepath.Join(dir, "understudy")
	must.OK(t, unix.Mkfifo(full, 0o600))
	must.OK(t, os.WriteFile(script, []byte("#!/bin/sh\nexec "+kit.UnderstudyBinary(t)+` "$@" 2>`+full+"\n"), 0o755))
	fd, err := unix.Open(full, unix.O_RDWR|unix.O_NONBLOCK, 0)
	must.OK(t, err)
	defer unix.Close(fd)
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 4096))
	}
	if err != unix.EAGAIN {
		t.Fatal(err)
	}
	p.Options.Binary = script
	a, b := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	active := p.Start(t, a)
	run := p.Accounts.On(t, soon, "a", 0)
	standby := p.Start(t, b)
	p.Stands(t, b)

	at := tick.Now()
	kit.Signal(syscall.SIGKILL, run.Pid)
	p.Accounts.On(t, soon, "a", at)
	at = tick.Now()
	active.Kill9()
	p.Accounts.On(t, soon, "b", at)
	standby.Stop(t)
}
