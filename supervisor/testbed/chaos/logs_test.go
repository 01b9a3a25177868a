package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What agents say is as they write it.
func TestMistakesOfAgentsAreHeard(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"@message":"asked to make sure that a child is dead","asked_by":"b","from":"10.0.0.1:555","service":"plain"}`, "stranger"},
		{`{"@message":"asked to make sure that a child is dead","asked_by":"b","from":"10.0.0.12:555","service":"plain"}`, ""},
		{`{"@message":"asked to make sure that a child is dead","asked_by":"b","from":"10.0.0.1:555","service":"nobody"}`, ""},
		{`{"@message":"the fencing agent refused a client","from":"10.0.0.12:5","others_before":3,"why":"not made with our secret"}`, "turned away"},
		{`{"@message":"the fencing agent refused a client","from":"10.0.0.12:5","why":"TLS: remote error: tls: unknown certificate authority"}`, "turned away"},
		{`{"@message":"the fencing agent refused a client","from":"10.0.0.12:5","why":"TLS: read tcp 10.0.0.1:8438: i/o timeout"}`, ""},
		{`{"@message":"the fencing agent refused a client","from":"10.0.0.1:5","why":"not made with our secret"}`, ""},
		{`{"@message":"role","from":"standby","to":"active","service":"plain"}`, ""},
		{"what a program writes", ""},
	} {
		got := ""
		listen(strings.NewReader(c.line+"\n"), func(s said) { got = mistaken(s, "10.0.0.1", []string{"10.0.0.11", "10.0.0.12"}) })
		if got != c.want {
			t.Errorf("%q, not %q: %s", got, c.want, c.line)
		}
	}
}

// A message counts from a moment on.
func TestWhatWasSaidBeforeIsNotTheAnswer(t *testing.T) {
	from := time.Now()
	line := func(at time.Time, message string) string {
		return fmt.Sprintf("{\"@message\":%q,\"@timestamp\":%q}\n", message, at.Format(time.RFC3339Nano))
	}
	for want, log := range map[bool]string{
		true:  line(from.Add(-time.Second), "shown") + line(from, "shown to ZooKeeper"),
		false: line(from.Add(-time.Second), "shown") + line(from, "withheld"),
	} {
		if got := saidSince(log, from, "shown"); got != want {
			t.Errorf("%v of %s", got, log)
		}
	}
}
