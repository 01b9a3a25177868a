package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
)

// ask runs a command that looks at the play's cluster, and reads what it prints as JSON.
func (p *play) ask(t *testing.T, answer any, words ...string) kit.Result {
	t.Helper()
	words = append(words, "--zk", strings.Join(p.Options.ZK, ","), "--root", p.Options.Root)
	began := time.Now()
	result := p.Lab.Here("asker").Ask(t, words...)
	t.Logf("%q took %v", words[0], time.Since(began))
	if answer != nil {
		if err := json.Unmarshal([]byte(result.Out), answer); err != nil {
			t.Fatalf("%q: %v\n%+v", words, err, result)
		}
	}
	return result
}

// What the commands tell is what happened.
func TestStatusAndHistoryTellWhatHappened(t *testing.T) {
	p := newPlay(t, stage(t))
	a, _, run := p.OnTwoHosts(t)
	p.Role(t, "a", "active")
	var status struct {
		Services []struct {
			Service, Active string
			Token           int64
			Members         []struct{ Node, Role string }
		}
	}
	p.ask(t, &status, "status", "--json")
	if len(status.Services) != 1 || status.Services[0].Active != "a" || status.Services[0].Token != run.Token {
		t.Fatalf("status: %+v, but the run is %+v", status, run)
	}
	roles := map[string]string{}
	for _, m := range status.Services[0].Members {
		roles[m.Node] = m.Role
	}
	if roles["a"] != "active" || roles["b"] != "standby" || len(roles) != 2 {
		t.Errorf("roles: %v", roles)
	}
	a.Stop(t)
	next := p.On(t, soon, "b", run.First)
	var history struct {
		Activations []struct {
			Node, Reason string
			Token        int64
			Active       bool
		}
	}
	kit.Until(t, soon, "the new activation is in the history", func() bool {
		p.ask(t, &history, "history", p.Options.Service, "--json")
		return len(history.Activations) == 2
	})
	now, before := history.Activations[0], history.Activations[1]
	if now.Node != "b" || !now.Active || now.Token != next.Token || before.Node != "a" || before.Active || before.Token != run.Token || before.Reason == "" {
		t.Errorf("history: %+v", history)
	}
	if text := p.ask(t, nil, "status"); text.Code != 0 || !strings.Contains(text.Out, "active") || !strings.Contains(text.Out, p.Options.Service) {
		t.Errorf("status as text: %+v", text)
	}
	if wrong := p.ask(t, nil, "status", "no-such-service"); wrong.Code != 1 || !strings.Contains(wrong.Err, "no-such-service") || strings.Count(wrong.Err, "\n") != 1 {
		t.Errorf("status of nothing: %+v", wrong)
	}
}

// A program that has moved itself to another cgroup is told of in the log and in the status, and is killed there.
func TestAProgramThatHasLeftItsCgroupIsInTheStatus(t *testing.T) {
	need.These(t, "cgroup")
	p := newPlay(t, stage(t))
	a, _, run := p.OnTwoHosts(t)
	out := awayFrom(t, run.Pid)
	must(t, os.WriteFile(filepath.Join(out, "cgroup.procs"), []byte(strconv.Itoa(run.Pid)), 0))
	said := fmt.Sprintf("pid %d (", run.Pid)
	var status struct {
		Services []struct {
			Members []struct{ Node, Health, Why string }
		}
	}
	kit.Until(t, time.Minute, "the status says so", func() bool { // it looks less and less often
		p.ask(t, &status, "status", "--json")
		for _, m := range status.Services[0].Members {
			if m.Node == "a" && m.Health == "ok" && strings.Contains(m.Why, said) && strings.Contains(m.Why, filepath.Base(out)) {
				return true
			}
		}
		return false
	})
	if text := p.ask(t, nil, "status"); !strings.Contains(strings.Join(strings.Fields(text.Out), " "), "a: "+said) {
		t.Errorf("status as text: %+v", text)
	}
	if !strings.Contains(a.Log(), "a program has moved itself to another cgroup") {
		t.Error("the log does not say so")
	}
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}

// awayFrom is a new cgroup beside those that understudy has made for a process.
func awayFrom(t *testing.T, pid int) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 2 && words[2] == "cgroup2" {
			_, path, _ := strings.Cut(strings.TrimSpace(string(own)), "0::")
			out, err := os.MkdirTemp(filepath.Join(words[1], filepath.Dir(filepath.Dir(path))), "away-")
			must(t, err)
			t.Cleanup(func() { _ = os.Remove(out) })
			return out
		}
	}
	t.Fatal("no cgroup v2 is mounted")
	return ""
}
