package ocf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
)

// agent writes a resource agent for the test.
func agent(t *testing.T, script string) Resource {
	t.Helper()
	root := t.TempDir()
	t.Setenv("OCF_ROOT", root)
	dir := filepath.Join(root, "resource.d", "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Agent"), []byte("#!/bin/sh\ncd "+root+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Resource{Agent: "test:Agent", Name: "one", Params: map[string]string{"device": "/dev/a b"}}
}

func TestAnAgentGetsItsEnvironment(t *testing.T) {
	r := agent(t, "env | grep ^OCF_ | sort > env; echo $1 >> env")
	if err := r.Run(t.Context(), Action{"start", time.Minute, 0}); err != nil {
		t.Fatal(err)
	}
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
	err = r.Run(t.Context(), Action{"monitor", 20 * time.Millisecond, 0})
	if err == nil || err.Error() != "test:Agent monitor: killed, it took longer than 20ms" {
		t.Error(err)
	}
	err = Resource{Agent: "test:None"}.Run(t.Context(), Action{Name: "start"})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func TestAWatchEndsWithItsResource(t *testing.T) {
	for _, one := range []struct {
		codes        string // of the monitor actions, one after the other
		ready, fails bool
		code, said   int
	}{
		{"7", false, true, 7, 0},
		{"1", false, true, 1, 0},
		{"0 0 7", true, true, 7, 0},
		{"0 1 1 0 1 1 1", true, true, 1, 4},
		{"0 1 1 0", true, false, 0, 2},
	} {
		r := agent(t, "set -- "+one.codes+"\necho x >> n; i=$(wc -l < n); [ $i -lt $# ] || { i=$#; touch last; }; shift $((i - 1)); exit $1")
		ctx, cancel := context.WithCancel(t.Context())
		ready, said := false, 0
		pauses := Action{"monitor", time.Minute, time.Millisecond}
		err := r.Watch(ctx, pauses, func() error {
			ready = true
			if !one.fails {
				time.AfterFunc(0, func() {
					for again := time.Tick(time.Millisecond); ctx.Err() == nil; <-again {
						if _, err := os.Stat(filepath.Join(os.Getenv("OCF_ROOT"), "last")); err == nil {
							cancel()
						}
					}
				})
			}
			return nil
		}, func(string) { said++ })
		cancel()
		failed, _ := errors.AsType[*Failed](err)
		if ready != one.ready || said != one.said || (failed != nil) != one.fails || one.fails && failed.Code != one.code {
			t.Errorf("%s: ready %v, said %d, %v", one.codes, ready, said, err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Params, []string{"device", "options"}) || !slices.Equal(m.Required, []string{"device"}) {
		t.Errorf("%+v", m)
	}
	for _, want := range []Action{{"start", time.Minute, 0}, {"stop", time.Minute, 0}, {"monitor", 40 * time.Second, 500 * time.Millisecond}, {"notify", 0, 0}} {
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
		if err != nil {
			t.Fatal(err)
		}
		return 0
	}
	for _, step := range []struct {
		action string
		code   int
	}{{"monitor", NotRunning}, {"stop", 0}, {"start", 0}, {"monitor", 0}, {"stop", 0}, {"monitor", NotRunning}} {
		if code := run(step.action); code != step.code {
			t.Errorf("%s: exit code %d, wanted %d", step.action, code, step.code)
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
