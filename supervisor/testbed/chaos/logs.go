package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit/tick"
)

// said is a line of a supervisor's log.
type said struct {
	Message  string    `json:"@message"`
	Time     time.Time `json:"@timestamp"`
	Service  string
	From, To string
	Reason   string
	Why      string
}

// listen reads the lines of a log that can be read. What a program writes is among them.
func listen(log io.Reader, hear func(said)) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var s said
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			hear(s)
		}
	}
}

// saidSince tells whether a log has a message that begins so, from a moment on.
func saidSince(log string, from time.Time, message string) (found bool) {
	listen(strings.NewReader(log), func(s said) {
		found = found || strings.HasPrefix(s.Message, message) && !s.Time.Before(from)
	})
	return found
}

// listenAll reads all logs. The supervisors' clock is the wall's, ours is not.
func (rc *record) listenAll(hear func(at int64, node string, s said)) {
	offset := tick.Now() - time.Now().UnixNano()
	for _, n := range rc.fleet.nodes {
		files, _ := filepath.Glob(filepath.Join(rc.logs, n.name+"-*.log")) // the pattern is well formed
		for _, file := range files {
			f, err := os.Open(file)
			if err != nil {
				continue
			}
			listen(f, func(s said) { hear(s.Time.UnixNano()+offset, n.name, s) })
			f.Close()
		}
	}
}

// roles takes the roles out of the logs.
func (rc *record) roles() (all []history.Role) {
	rc.listenAll(func(at int64, node string, s said) {
		if s.Message == "role" {
			all = append(all, history.Role{At: at, Node: node, Service: s.Service, From: s.From, To: s.To, Why: s.Reason})
		}
	})
	slices.SortFunc(all, func(a, b history.Role) int { return cmp.Compare(a.At, b.At) })
	return all
}

// mistrust finds in the logs who was believed at an agent and should not have been, and who was not and should have been.
func (rc *record) mistrust() (wrong []history.Violation) {
	var members []string
	for _, n := range rc.fleet.nodes {
		members = append(members, n.host.Addr)
	}
	rc.listenAll(func(at int64, node string, s said) {
		if what := mistaken(s, rc.stage.Lab.Addr(), members); what != "" {
			wrong = append(wrong, history.Violation{What: what, Service: s.Service, At: at, Text: "by the agent on " + node + ": " + s.From + " " + s.Why})
		}
	})
	return wrong
}

// mistaken tells whether an agent says that it took a stranger for a member, or a member for a stranger: keys are changed in such
// steps that members always believe one another. Strangers come from where we are; we ourselves ask there about nobody.
func mistaken(s said, ours string, members []string) (what string) {
	from, _, _ := net.SplitHostPort(s.From) // a role's is none
	switch {
	case strings.HasPrefix(s.Message, "asked to make sure") && from == ours && s.Service != nobody:
		return "stranger"
	case strings.HasPrefix(s.Message, "the fencing agent refused a client") && slices.Contains(members, from) &&
		(strings.Contains(s.Why, "not made with our secret") || strings.Contains(s.Why, "certificate")):
		return "turned away"
	}
	return ""
}
