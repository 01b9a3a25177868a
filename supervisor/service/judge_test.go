package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// told is the log of a run's end.
func told(t *testing.T, conf config.Service, failed int, why error) string {
	t.Helper()
	var log bytes.Buffer
	v := made(t, Conf{Service: conf}, func(n *LocalNode) { n.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true}) })
	v.mem.restarts.cfg = conf.Restart
	for range failed {
		v.mem.restarts.ended(time.Now(), false, true)
	}
	r := v.testStay(t.Context(), Session{}, &endingTree{})
	r.term.run.why = why
	r.term.ended()
	return strings.TrimSpace(log.String())
}

// journalctl -p warning has each end of a program that nobody ordered, and what follows.
func TestAnEndThatNobodyOrderedIsAWarning(t *testing.T) {
	conf := config.Service{Restart: config.Restart{
		Policy: config.RestartOnFailure, Delay: time.Second, MaxDelay: time.Minute, GiveUpAfter: 5, Within: time.Minute,
	}}
	endless, several := conf, conf
	endless.Restart.GiveUpAfter = 0
	several.Processes = []config.Process{{Name: "a"}, {Name: "b"}}
	crash := &unit.Ended{Name: "b", Status: child.ExitStatus{Code: 139, Signal: syscall.SIGSEGV}}
	exit := func(code int) error { return &unit.Ended{Name: "b", Status: child.ExitStatus{Code: code}} }
	for _, c := range []struct {
		conf   config.Service
		failed int
		why    error
		want   string
	}{
		{conf, 2, crash, `[WARN]  program crashed: service=db failure="3 of 5" next_start=4s status="killed by SIGSEGV"`},
		{conf, 4, crash, `[WARN]  program crashed: service=db failure="5 of 5" status="killed by SIGSEGV"`},
		{conf, 0, &unit.Ended{Name: "b", Status: child.ExitStatus{Code: 137, Signal: syscall.SIGKILL, OutOfMemory: true}},
			`[WARN]  program crashed: service=db failure="1 of 5" next_start=1s status="killed by SIGKILL, out of memory"`},
		{endless, 1, exit(3), `[WARN]  program exited: service=db failure=2 next_start=2s status="exit code 3"`},
		{several, 0, exit(3), `[WARN]  program exited: service=db process=b failure="1 of 5" next_start=1s status="exit code 3"`},
		{conf, 0, exit(0), `[WARN]  program exited: service=db status="exit code 0"`},
		{conf, 0, &unit.StartError{Err: errors.New("no such file")}, `[ERROR] the program cannot be started: service=db error="no such file" failure="1 of 2" next_start=1s`},
		{conf, 0, &unit.Unfit{Err: &unit.Ended{Name: "b", Status: child.ExitStatus{Code: 69}, Why: "192.0.2.10 is in use by 02:00:00:00:00:01"}},
			`[WARN]  program exited: service=db status="exit code 69" why="192.0.2.10 is in use by 02:00:00:00:00:01"`},
		{conf, 0, &unit.Unfit{Err: errors.New("eth0 is down, or has no carrier")}, `[ERROR] the service does not work: service=db why="eth0 is down, or has no carrier"`},
		{conf, 1, fmt.Errorf("%w: timeout", unit.ErrUnhealthy), `[ERROR] the service does not work: service=db why="unhealthy: timeout" failure="2 of 5" next_start=2s`},
		{conf, 0, errRestart, `[INFO]  stopping the service: service=db why="an operator wants it restarted"`},
	} {
		if got := told(t, c.conf, c.failed, c.why); got != c.want {
			t.Errorf("%v:\n%s, not\n%s", c.why, got, c.want)
		}
	}
	once := Conf{Service: conf, Once: true}
	var log bytes.Buffer
	v := made(t, once, func(n *LocalNode) { n.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true}) })
	r := v.testStay(t.Context(), Session{}, &endingTree{})
	r.term.run.why = exit(0)
	if r.term.ended(); log.String() != "[INFO]  program exited: service=db status=\"exit code 0\"\n" {
		t.Errorf("a command that was to run once: %s", &log)
	}
	if e := r.Judge(t.Context()); e.Kind != role.RanOnce || v.Finished() == nil {
		t.Errorf("once it has run: %v", e.Kind)
	}
}

// What ran once may keep its lock for a while. Whatever ends that wait, it does not run again.
func TestWhatRanOnceKeepsItsLockForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := made(t, Conf{Once: true, Hold: time.Minute}, nil)
		r := v.testStay(t.Context(), Session{}, &endingTree{})
		r.term.run.why = &unit.Ended{Status: child.ExitStatus{Code: 7}}
		if e := r.Judge(t.Context()); e.Kind != role.Again || v.Finished().Code != 7 {
			t.Fatalf("%v", e.Kind)
		}
		began := time.Now()
		if e := r.Wait(t.Context()); e.Kind != role.RanOnce || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", e.Kind, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if e := r.Wait(ctx); e.Kind != role.RanOnce || time.Since(began) != time.Minute {
			t.Errorf("asked to stop meanwhile: %v after %v", e.Kind, time.Since(began))
		}
	})
}

// What is logged of the next start decides nothing: Judge counts.
func TestTellingAFailureCountsNone(t *testing.T) {
	v := made(t, Conf{Service: config.Service{Restart: config.Restart{Policy: config.RestartOnFailure, Delay: time.Second, MaxDelay: time.Minute, GiveUpAfter: 2, Within: time.Minute}}}, nil)
	r := v.testStay(t.Context(), Session{}, &endingTree{})
	r.term.run.why = &unit.Ended{Status: child.ExitStatus{Code: 1}}
	for range 3 {
		r.term.ended()
	}
	if n := len(v.mem.restarts.failures); n != 0 {
		t.Errorf("%d failures", n)
	}
}

// A host that cannot run the service is left at the first failure, and says why. What was counted before is forgotten.
func TestAHostThatCannotRunTheServiceIsLeftAtOnce(t *testing.T) {
	v := made(t, Conf{Service: config.Service{Restart: config.Restart{Policy: config.RestartOnFailure, Delay: time.Second, MaxDelay: time.Minute, GiveUpAfter: 5, Within: time.Minute}}}, nil)
	r := v.testStay(t.Context(), Session{}, &endingTree{})
	for _, why := range []error{
		&unit.Unfit{Err: &unit.Ended{Name: "vip", Status: child.ExitStatus{Code: 69}, Why: "192.0.2.10 is in use by 02:00:00:00:00:01"}},
		&unit.Unfit{Err: errors.New("eth0 is down, or has no carrier")},
	} {
		r.term.run.why, v.mem.unstarted = why, false
		if e := r.Judge(t.Context()); e.Kind != role.Failed || !v.mem.unstarted || v.mem.lastTerm.failure != why.Error() {
			t.Errorf("%v: %v, %q", why, e.Kind, v.mem.lastTerm.failure)
		}
	}
	if (&unit.Ended{Name: "vip", Why: "192.0.2.10 is in use by M"}).Error() != "vip: 192.0.2.10 is in use by M" {
		t.Error("the reason is not told")
	}
}

// A pause that is over at the moment in which its term ends starts no program, only to stop it.
func TestNoProgramIsStartedAtTheEndOfItsTerm(t *testing.T) {
	v := made(t, Conf{}, nil)
	v.applyConfig()
	r := v.testStay(t.Context(), Session{}, &endingTree{})
	r.term.run.held = role.Again
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select takes any of what is ready
		if e := r.Wait(ctx); e.Kind != role.StopAsked {
			t.Fatalf("%v", e.Kind)
		}
	}
}
