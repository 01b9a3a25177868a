package demo

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

const milli = time.Millisecond

func TestHandoversTellGapAndOverlap(t *testing.T) {
	a := life{node: "a", first: 0, last: 100 * milli}
	for _, c := range []struct {
		name         string
		next         life
		gap, overlap time.Duration
	}{
		{"a gap", life{node: "b", first: 112 * milli, last: 200 * milli}, 12 * milli, 0},
		{"an overlap", life{node: "b", first: 90 * milli, last: 200 * milli}, 0, 10 * milli},
		{"one within the other", life{node: "b", first: 40 * milli, last: 45 * milli}, 0, 5 * milli},
		{"one that was seen but once", life{node: "b", first: 40 * milli, last: 40 * milli}, 0, time.Nanosecond},
	} {
		got := handovers([]life{c.next, a})
		if len(got) != 1 || got[0].gap != c.gap || got[0].overlap != c.overlap || got[0].to.node != "b" {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestAnOverlapWithAnyPreviousLifeCounts(t *testing.T) {
	got := handovers([]life{
		{node: "a", first: 0, last: 100 * milli},
		{node: "b", first: 10 * milli, last: 20 * milli},
		{node: "c", first: 30 * milli, last: 40 * milli},
	})
	if len(got) != 2 || got[1].overlap != 10*milli || got[1].from.node != "a" {
		t.Errorf("got %+v", got)
	}
}

func TestTheProgramSignsThatItRuns(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("UNDERSTUDY_NODE", "node-1")
	t.Setenv("UNDERSTUDY_TOKEN", "42")
	begun := now()
	ctx, cancel := context.WithTimeout(t.Context(), 50*milli)
	defer cancel()
	must.OK(t, Program(ctx, dir, nil))
	end := now()
	got := signs(dir).lives()
	if len(got) != 1 || got[0].node != "node-1" || got[0].token != 42 {
		t.Fatalf("got %+v", got)
	}
	if l := got[0]; l.first != began || l.last < begun+50*milli || l.last > end { // it signs once more when it is told to end
		t.Errorf("first %v, last %v, told to end at %v, now %v", l.first, l.last, begun+50*milli, end)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

func TestACommandIsSignedForUntilItHasEnded(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("UNDERSTUDY_NODE", "node-1")
	t.Setenv("UNDERSTUDY_TOKEN", "42")
	ctx, cancel := context.WithTimeout(t.Context(), 50*milli)
	defer cancel()
	begun := now()
	err := Program(ctx, dir, []string{"sh", "-c", "trap 'sleep 0.3; exit 3' TERM; while :; do sleep 0.01; done"})
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Errorf("it ended with %v", err)
	}
	if got := signs(dir).lives(); len(got) != 1 || got[0].last < begun+350*milli || got[0].last > now() {
		t.Errorf("got %+v, begun at %v", got, begun)
	}
	if err := Program(t.Context(), t.TempDir(), []string{"/no such program"}); err == nil {
		t.Error("a command that is not there was started")
	}
}
