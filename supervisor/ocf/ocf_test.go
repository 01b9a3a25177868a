package ocf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// agent writes a resource agent for the test.
func agent(t *testing.T, script string) Resource {
	t.Helper()
	root := t.TempDir()
	t.Setenv("OCF_ROOT", root)
	dir := filepath.Join(root, "resource.d", "test")
	must.OK(t, os.MkdirAll(dir, 0o755))
	must.OK(t, os.WriteFile(filepath.Join(dir, "Agent"), []byte("#!/bin/sh\ncd "+root+"\n"+script), 0o755))
	return Resource{Agent: "test:Agent", Name: "one", Params: map[string]string{"device": "/dev/a b"}}
}

func TestAnAgentGetsItsEnvironment(t *testing.T) {
	r := agent(t, "env | grep ^OCF_ | sort > env; echo $1 >> env")
	must.OK(t, r.Run(t.Context(), Action{Name: "start", Timeout: time.Minute}))
	root := os.Getenv("OCF_ROOT")
	text, err := os.ReadFile(filepath.Join(root, "env"))
	want := "OCF_RA_VERSION_MAJOR=1\nOCF_RA_VERSION_MINOR=1\nOCF_RESKEY_CRM_meta_timeout=60000\nOCF_RESKEY_device=/dev/a b\nOCF_RESOURCE_INSTANCE=one\n" +
		"OCF_RESOURCE_PROVIDER=test\nOCF_RESOURCE_TYPE=Agent\nOCF_ROOT=" + root + "\nstart\n"
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestAnActionsFailureIsTold(t *testing.T) {
	r := agent(t, `case $1 in stop) exit 5;; start) kill -9 $$;; monitor) exec sleep 100;; esac`)
	err := r.Run(t.Context(), Action{Name: "stop"})
	if failed, ok := errors.AsType[*Failed](err); !ok || failed.Code != 5 || err.Error() != "test:Agent stop: exit code 5 (something is not installed)" {
		t.Error(err)
	}
	if err := r.Run(t.Context(), Action{Name: "start"}); err == nil || err.Error() != "test:Agent start: signal: killed" {
		t.Error(err)
	}
	err = r.Run(t.Context(), Action{Name: "monitor", Timeout: 20 * time.Millisecond})
	if err == nil || err.Error() != "test:Agent monitor: killed, it took longer than 20ms" {
		t.Error(err)
	}
	err = Resource{Agent: "test:None"}.Run(t.Context(), Action{Name: "start"})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// Agents log to stderr, also where their exit code is a plain answer.
func TestAnAgentThatIsStoppedSaysSoOnStdout(t *testing.T) {
	for code, says := range map[int]string{7: "", 0: "it is running", 1: "test:Agent monitor: exit code 1 (it failed): INFO: looking", 5: "test:Agent monitor: exit code 5 (something is not installed): INFO: looking"} {
		r := agent(t, fmt.Sprintf("echo INFO: looking >&2; exit %d", code))
		saved, file := os.Stderr, filepath.Join(t.TempDir(), "stderr")
		var err error
		if os.Stderr, err = os.Create(file); err != nil {
			t.Fatal(err)
		}
		err = r.Stopped(t.Context(), Action{Name: "monitor"})
		os.Stderr.Close()
		os.Stderr = saved
		if said, _ := os.ReadFile(file); len(said) > 0 || (err == nil) != (says == "") || err != nil && err.Error() != says {
			t.Errorf("%d: %v, stderr %q", code, err, said)
		}
	}
}

// The first failure of the monitor action ends it, as Pacemaker's default is.
func TestAWatchEndsWithItsResource(t *testing.T) {
	for _, one := range []struct {
		codes string // of the monitor actions, one after the other
		ready bool
		code  int
	}{{"7", false, 7}, {"1", false, 1}, {"0 0 7", true, 7}, {"0 1 0", true, 1}, {"0 0", true, 0}} {
		r := agent(t, "set -- "+one.codes+"\necho x >> n; i=$(wc -l < n); [ $i -lt $# ] || i=$#; shift $((i - 1)); exit $1")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		ready := false
		err := r.Watch(ctx, Action{Name: "monitor", Timeout: time.Minute, Interval: time.Millisecond}, func() error {
			if ready = true; one.code == 0 {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			return nil
		})
		cancel()
		if failed, _ := errors.AsType[*Failed](err); ready != one.ready || (err != nil) != (one.code > 0) || err != nil && (failed == nil || failed.Code != one.code) {
			t.Errorf("%s: ready %v, %v", one.codes, ready, err)
		}
	}
}

// Only what an agent says in so many words makes a host unfit, and its last words say why. What it starts may keep its output open.
func TestAnAgentSaysThatAHostIsUnfit(t *testing.T) {
	for script, want := range map[string]string{
		"echo one >&2; echo ocf-exit-reason:no mount >&2; exit 5": "test:Agent monitor: exit code 5 (something is not installed): no mount",
		"exit 2": "test:Agent monitor: exit code 2 (a parameter is wrong)",
		"exit 4": "test:Agent monitor: exit code 4 (a right is missing)",
		"exit 6": "test:Agent monitor: exit code 6 (it is not configured)",
		"exit 0": "",
		"[ $OCF_RESKEY_CRM_meta_interval = 0 ] || exit 5": "", // ocf_is_probe
		"exit 1":            "",
		"exit 3":            "",
		"exit 7":            "",
		"exit 127":          "",
		"kill -9 $$":        "",
		"exec sleep 10":     "",
		"sleep 20 & exit 0": "",
		"[ $1 = monitor ] && exit 7; echo no disk; exit 5": "test:Agent validate-all: exit code 5 (something is not installed): no disk",
	} {
		r := agent(t, script)
		err := r.Probe(t.Context(), time.Second, true)
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s: %v", script, err)
		}
		if err := r.Probe(t.Context(), time.Second, false); (err == nil) != !strings.Contains(want, "monitor") {
			t.Errorf("%s: %v", script, err)
		}
	}
	if err := (Resource{Agent: "test:None"}).Probe(t.Context(), time.Second, true); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// Nothing was done where the agent could not do anything at all; whoever can say something else is asked to undo it.
func TestAStartThatDidNothing(t *testing.T) {
	for script, want := range map[string]bool{
		"exit 5":                             true,
		"[ $1 = stop ] || exit 5":            false,
		"[ $1 = monitor ] && exit 7; exit 5": false,
		"[ $1 = start ] && exit 1; exit 5":   false,
		"[ $1 = start ] || exit 5":           false,
		"exit 6":                             false,
	} {
		if nothing, _ := agent(t, script).Start(t.Context(), time.Minute); nothing != want {
			t.Errorf("%s: %v", script, nothing)
		}
	}
	if nothing, err := (Resource{Agent: "test:None"}).Start(t.Context(), time.Minute); !nothing || !Unfit(err) {
		t.Error(nothing, err)
	}
}

func TestMetaDataIsRead(t *testing.T) {
	r := agent(t, `cat <<END
<?xml version="1.0"?>
<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd">
<resource-agent name="Agent" version="1.0">
<parameters>
<parameter name="device" unique="0" required="1"><longdesc lang="en">x</longdesc><content type="string" default="" /></parameter>
<parameter name="options"><content type="string" /></parameter>
</parameters>
<actions>
<action name="start" timeout="60s" /> <action name="stop" timeout="1min" />
<action name="monitor" depth="0" timeout="40" interval="500ms" /> <action name="monitor" depth="20" timeout="90" interval="9" />
</actions>
</resource-agent>
END`)
	m, err := r.Meta(t.Context())
	must.OK(t, err)
	if !slices.Equal(m.Params, []string{"device", "options"}) || !slices.Equal(m.Required, []string{"device"}) {
		t.Errorf("%+v", m)
	}
	for _, want := range []Action{{"start", time.Minute, 0, false}, {"stop", time.Minute, 0, false}, {"monitor", 40 * time.Second, 500 * time.Millisecond, false}, {Name: "notify"}} {
		if got := m.Action(want.Name); got != want {
			t.Errorf("%+v, wanted %+v", got, want)
		}
	}
}

// Debian's agents work, those that are used most among them are understood.
func TestDebiansAgentsAreUnderstood(t *testing.T) {
	need.These(t, "root", "resource-agents")
	for name, want := range map[string]string{"Filesystem": "device directory", "IPaddr2": "ip", "LVM-activate": "vgname"} {
		m, err := Resource{Agent: "heartbeat:" + name}.Meta(t.Context())
		if err != nil || m.Action("start").Timeout == 0 || m.Action("stop").Timeout == 0 || m.Action("monitor").Interval == 0 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		for param := range strings.FieldsSeq(want) {
			if !slices.Contains(m.Required, param) {
				t.Errorf("%s: requires %v", name, m.Required)
			}
		}
	}
	r := Resource{Agent: "heartbeat:Dummy", Name: "d", Params: map[string]string{"state": filepath.Join(t.TempDir(), "state")}}
	run := func(action string) int {
		err := r.Run(t.Context(), Action{Name: action})
		if failed, ok := errors.AsType[*Failed](err); ok {
			return failed.Code
		}
		must.OK(t, err)
		return 0
	}
	for _, step := range []struct {
		action string
		code   int
	}{{"monitor", notRunning}, {"stop", 0}, {"start", 0}, {"monitor", 0}, {"stop", 0}, {"monitor", notRunning}} {
		if code := run(step.action); code != step.code {
			t.Errorf("%s: exit code %d, wanted %d", step.action, code, step.code)
		}
	}
}

// Debian's agents say of a host whether it is fit.
func TestDebiansAgentsAreProbed(t *testing.T) {
	need.These(t, "root", "resource-agents")
	file := filepath.Join(t.TempDir(), "none")
	for _, one := range []struct {
		agent    string
		params   map[string]string
		validate bool
		fit      bool
	}{
		{"Dummy", map[string]string{"state": file}, true, true},
		{"Filesystem", map[string]string{"directory": "/srv"}, false, false},
		{"anything", map[string]string{"binfile": file, "pidfile": file}, false, true},
	} {
		err := Resource{Agent: "heartbeat:" + one.agent, Name: "one", Params: one.params}.Probe(t.Context(), 20*time.Second, one.validate)
		if (err == nil) != one.fit {
			t.Errorf("%s %v: %v", one.agent, one.params, err)
		}
	}
}

// Agents name pid and state files after the instance, so that two must never share it.
func TestAnInstanceIsOfOneProcessOfOneService(t *testing.T) {
	names := []string{"a", "b", "c", "a-", "a-b", "b-c", "b--c", "a--b", "a.b", "a_b", "a@b", "a:b", "a.ab", "a.cb", "a.", "a@", "a:", "@a", ":a", "192.0.2.1"}
	allowed := regexp.MustCompile(`^[A-Za-z0-9_.-]+$`) // in the id of a resource of Pacemaker
	of := map[string]string{}
	for _, service := range names {
		for _, process := range names {
			instance, both := Instance(service, process), service+" "+process
			if other, taken := of[instance]; taken || !allowed.MatchString(instance) {
				t.Errorf("%s: %s, which is that of %q", both, instance, other)
			}
			of[instance] = both
		}
	}
	if got := Instance("two", "t"); got != "two-t" {
		t.Error(got)
	}
}
