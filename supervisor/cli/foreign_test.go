package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

const other = 4711 // a user who is not root

// foreign is a folder with a resource agent that notes each call of it, and a server that counts who comes.
func foreign(t *testing.T) (at func(string) string, server string, calls func() string) {
	t.Helper()
	need.These(t, "root")
	t.Setenv("SUDO_UID", "")
	t.Setenv("UNDERSTUDY_ZK", "")
	dir := t.TempDir()
	at = func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("OCF_ROOT", at("ocf"))
	put(t, at("ocf/resource.d/test/Agent"), "#!/bin/sh\necho agent $1 >>"+at("called")+"\n"+
		"echo '<resource-agent><parameters><parameter name=\"x\"/></parameters></resource-agent>'\n", 0o755)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	var came atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			came.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return at, l.Addr().String(), func() string {
		text, _ := os.ReadFile(at("called")) // none: it was not called
		if n := came.Load(); n > 0 {
			text = fmt.Appendf(text, "%d connections\n", n)
		}
		return string(text)
	}
}

func put(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	for _, err := range []error{os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode), os.Chmod(name, mode)} {
		must.OK(t, err)
	}
}

// As root, nothing of a config that another user wrote is executed, or sent to the servers that it names: by no command that takes one.
func TestNothingIsDoneForAConfigThatAnotherUserWrote(t *testing.T) {
	at, server, calls := foreign(t)
	put(t, at("secret"), "root:of root alone", 0o600)
	put(t, at("m.yaml"), "node: n\nzookeeper: {servers: ["+server+"], auth: {scheme: digest, file: "+at("secret")+"}}\n"+
		"services: {s: {processes: [{name: a, ocf: 'test:Agent', params: {x: y}}]}}\n", 0o644)
	must.OK(t, os.Chown(at("m.yaml"), other, other))
	want := at("m.yaml") + " belongs to user 4711, who can change it: chown 0 " + at("m.yaml")
	tried := 0
	for words := range configCommands(Root("1", ""), nil) {
		tried++
		before, after, _ := strings.Cut(words, "-- ")
		line := append(strings.Fields(before), "--config", at("m.yaml"))
		if after != "" {
			line = append(line, "--", after)
		}
		code, out, errs := says(t, line...)
		if code != 2 || strings.Count(out+errs, want) != 1 {
			t.Errorf("%s: code %d, %q %q", words, code, out, errs)
		}
		if called := calls(); called != "" {
			t.Fatalf("%s: %s", words, called)
		}
	}
	if tried < 14 {
		t.Errorf("%d commands", tried)
	}
	if code, out, errs := says(t, "check", "--elsewhere", at("m.yaml")); code != 0 || calls() != "" {
		t.Errorf("a file for another machine is looked at all the same: %d %q %q %s", code, out, errs, calls())
	}
	if code, _, errs := says(t, "check", "--elsewhere", "--zk", at("m.yaml")); code != 2 || calls() != "" {
		t.Errorf("its servers are not asked: %d %q %s", code, errs, calls())
	}
}

// configCommands are all command lines that take a config.
func configCommands(cmd *cobra.Command, words []string) func(yield func(string) bool) {
	needs := map[string]string{ // beside the config
		"history": "s", "logs": "s", "switchover": "s", "pause": "s", "resume": "s", "stop": "s", "start": "s", "drain": "n", "undrain": "n", "roll": "-- true", "forget": "s", "restart": "s",
		"reload": "s", "reclone": "s --node n", "fence confirm": "s --node n",
	}
	return func(yield func(string) bool) {
		if cmd.Flags().Lookup("config") != nil && !yield(strings.TrimSpace(strings.Join(words, " ")+" "+needs[strings.Join(words, " ")])) {
			return
		}
		for _, c := range cmd.Commands() {
			for line := range configCommands(c, append(words[:len(words):len(words)], c.Name())) {
				if !yield(line) {
					return
				}
			}
		}
	}
}

// A part that another user wrote is not looked at, and the agents of the others are not asked then. Nor is an agent that he can change.
func TestNoAgentIsAskedForAPartOfAnotherUser(t *testing.T) {
	for _, theirs := range []string{"conf.d/m.yaml", "conf.d", "ocf/resource.d/test/Agent"} {
		at, server, calls := foreign(t)
		put(t, at("u.yaml"), "node: n\nzookeeper: {servers: ["+server+"]}\ninclude: [conf.d/*.yaml]\nservices: {}\n", 0o644)
		put(t, at("conf.d/m.yaml"), "services: {s: {processes: [{name: a, ocf: 'test:Agent'}]}}\n", 0o644)
		if code, out, errs := says(t, "check", at("u.yaml")); code != 0 || !strings.Contains(calls(), "agent validate-all") {
			t.Fatalf("root's own: %d %q %q %q", code, out, errs, calls())
		}
		must.OK(t, os.Remove(at("called")))
		must.OK(t, os.Chown(at(theirs), other, other))
		code, out, errs := says(t, "check", at("u.yaml"))
		if code != 2 || !strings.Contains(out, at(theirs)+" belongs to user 4711") || strings.Contains(calls(), "agent") {
			t.Errorf("%s: %d %q %q %q", theirs, code, out, errs, calls())
		}
	}
}

// Who ran sudo, and a user without root, use their own.
func TestAUsersOwnConfigIsHisToUse(t *testing.T) {
	at, _, _ := foreign(t)
	put(t, at("m.yaml"), "node: n\nzookeeper: {servers: [127.0.0.1], trusted_network: true}\nservices: {s: {command: [sleep, '1']}}\n", 0o644)
	must.OK(t, os.Chown(at("m.yaml"), other, other))
	t.Setenv("SUDO_UID", "4711")
	if code, out, errs := says(t, "check", at("m.yaml")); code != 0 {
		t.Errorf("%d %q %q", code, out, errs)
	}
}
