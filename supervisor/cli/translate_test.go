package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/config"
	"understudy/supervisor/testbed/must"
)

func TestTheLimitsOfAConfigAreThoseOfAChild(t *testing.T) {
	if diff := cmp.Diff(inside.LimitNames(), config.LimitNames()); diff != "" {
		t.Error(diff)
	}
}

// What the file says of a method is what the method gets.
func TestMethodsAreTranslatedWhole(t *testing.T) {
	some := map[string]string{"a": "b"}
	shared := agent.Shared([]byte("ours"))
	for name, c := range map[string]struct {
		in   config.FenceMethod
		want fencing.Method
	}{
		"exec": {config.FenceMethod{Exec: &config.FenceExec{Command: config.Command{"x", "y"}, Timeout: time.Second}}, fencing.Exec{Command: []string{"x", "y"}}},
		"ssh": {config.FenceMethod{SSH: &config.FenceSSH{User: "u", KeyFile: "/k", KnownHosts: "/h", Address: "a:1", Command: "c", Timeout: time.Second}},
			fencing.SSH{User: "u", KeyFile: "/k", KnownHosts: "/h", Address: "a:1", Command: "c"}},
		"http": {config.FenceMethod{HTTP: &config.FenceHTTP{URL: "u", Method: "PUT", Headers: some, Body: "b", Status: []int{201}, BearerFile: "/b", CAFile: "/c", Timeout: time.Second}},
			fencing.HTTP{URL: "u", Method: "PUT", Headers: some, Body: "b", Status: []int{201}, BearerFile: "/b", CAFile: "/c"}},
		"fence_agent": {config.FenceMethod{FenceAgent: &config.FenceProgram{Command: config.Command{"f"}, Options: some, Secrets: some, Plugs: some, Timeout: time.Second}},
			fencing.FenceAgent{Command: []string{"f"}, Options: some, Secrets: some, Plugs: some}},
		"agent": {config.FenceMethod{Agent: &config.FenceAsk{Timeout: time.Second}}, agent.Method{}},
	} {
		got := step(c.in, shared)
		if asks, ok := got.Method.(agent.Method); ok {
			if asks.Keys != shared { // the very same: a config that is read anew has not changed then
				t.Errorf("%s: other keys", name)
			}
			got.Method = agent.Method{}
		}
		if diff := cmp.Diff(fencing.Step{Method: c.want, Timeout: time.Second}, got); diff != "" || got.Method.Name() != name {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A secret that could be guessed, or is missing, is told before anything starts.
func TestAgentStartsOnlyWithASecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	c := config.Default()
	if a, err := listen(c, hclog.NewNullLogger()); a != nil || err != nil {
		t.Errorf("without an agent: %v, %v", a, err)
	}
	c.Fencing.Agent = &config.Agent{Listen: ":1", SecretFile: file}
	for text, says := range map[string]string{"": "no such file", "too-short\n": "less than 16", "long-enough-for-one\ntoo-short": "less than 16"} {
		if text != "" {
			must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		}
		_, err := listen(c, hclog.NewNullLogger())
		if err == nil || !strings.Contains(err.Error(), says) || text != "" && strings.Contains(err.Error(), strings.Fields(text)[0]) {
			t.Errorf("%q: %v", text, err)
		}
		_ = os.Remove(file)
	}
	must.OK(t, os.WriteFile(file, []byte("long enough to be one\n"), 0o600))
	a, err := listen(c, hclog.NewNullLogger())
	if err != nil || a.Listen != ":1" {
		t.Fatalf("%+v, %v", a, err)
	}
	must.OK(t, os.WriteFile(file, []byte("a secret that was changed\n"), 0o600))
	_, err = a.Keys.Secrets()
	must.Report(t, err)
	must.OK(t, os.Remove(file))
	if _, err := listen(c, hclog.NewNullLogger()); err == nil {
		t.Error("it starts with no secret")
	}
}

// Agents are asked at once, each once, and those that hang delay the others' services by one limit.
func TestAgentsThatHangDelayNobodyForLong(t *testing.T) {
	root := t.TempDir()
	t.Setenv("OCF_ROOT", root)
	dir := filepath.Join(root, "resource.d", "test")
	must.OK(t, os.MkdirAll(dir, 0o755))
	for name, script := range map[string]string{
		"One": "exec sleep 100", "Two": "exec sleep 100",
		"Good": "echo x >>" + root + "/asked; echo '<resource-agent><actions><action name=\"start\" timeout=\"99s\"/></actions></resource-agent>'",
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	c := &config.Config{Services: map[string]config.Service{}}
	for _, name := range []string{"One", "Two", "Good", "None"} {
		c.Services[name] = config.Service{Processes: []config.Process{{Name: "fs", OCF: "test:" + name}}}
	}
	began := time.Now()
	for range 2 {
		for _, v := range services(c, false, nil) {
			want := map[string]time.Duration{"Good": 99 * time.Second}[v.Name]
			if got := v.Processes[0].Ready.Timeout; got != max(want, 20*time.Second) {
				t.Errorf("%s: %v", v.Name, got)
			}
		}
	}
	if took := time.Since(began); took > 3*metaPatience {
		t.Errorf("it took %v", took)
	}
	if asked, err := os.ReadFile(filepath.Join(root, "asked")); err != nil || string(asked) != "x\n" {
		t.Errorf("asked %q, %v", asked, err)
	}
}
