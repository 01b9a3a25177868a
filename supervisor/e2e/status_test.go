package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
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
	a, _, run := p.pair(t)
	p.role(t, "a", "active")
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
