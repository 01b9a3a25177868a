package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"understudy/supervisor"
	"understudy/supervisor/config"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/service"
	"understudy/supervisor/testbed/must"
)

func TestCheckSaysThatAFileIsSound(t *testing.T) {
	code, out, errs := says(t, "check", "--config", "testdata/sound.yaml")
	if code != 0 || out != "ok: 2 services in 2 files\n" || errs != "" {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

func TestCheckPrintsEveryFaultAndEndsWithTwo(t *testing.T) {
	want := `testdata/faulty.yaml:4:5: services.redis.comand: unknown key (did you mean "command"?)
testdata/faulty.yaml:5:19: services.redis.stop_timeout: "10" has no unit: write 10s for seconds
`
	code, out, errs := says(t, "check", "--config", "testdata/faulty.yaml")
	if code != 2 || out != want || errs != "understudy: testdata/faulty.yaml is refused: 2 errors\n" {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	code, out, errs = says(t, "check", "--effective", "--config", "testdata/faulty.yaml")
	if code != 2 || out != "" || !strings.HasPrefix(errs, want) {
		t.Errorf("code %d, %q, %q: where a config is asked for, nothing else may be printed", code, out, errs)
	}
	code, out, errs = says(t, "check", "--config", "testdata/none.yaml")
	if code != 2 || out != "testdata/none.yaml: cannot be read: no such file or directory\n" || errs != "" {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

func TestWarningChangesNoExitCode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "u.yaml")
	text := "node: n\nzookeeper: {servers: [zk1], trusted_network: true}\nservices:\n  s:\n    command: no-such-program\n    health: {interval: 1s}\n"
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	code, out, errs := says(t, "check", "--config", file)
	want := "warning: " + file + ":6:13: services.s.health: has no effect without a way to check: add exec:, http: or tcp:\n" +
		"warning: " + file + ":5:14: services.s.command: \"no-such-program\" is not in PATH (on this machine)\n" +
		"ok: 1 service in 1 file\n"
	if code != 0 || out != want || errs != "" {
		t.Errorf("code %d\n%s\nwant\n%s\n%s", code, out, want, errs)
	}
	code, out, errs = says(t, "check", "--effective", "--config", file)
	if code != 0 || strings.Contains(out, "warning") || strings.Count(errs, "warning: ") != 2 {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

func TestCheckAndStatusNoteOnceWhatStrangersCanDo(t *testing.T) {
	for zookeeper, want := range map[string]string{
		"{servers: [zk1]}":       "or set its auth\n",
		"{servers: [localhost]}": "",
		"{servers: [zk1], auth: {scheme: digest, file: /dev/null}}":                        "`trusted_network: true` in zookeeper\n",
		"{servers: [zk1], auth: {scheme: digest, file: /dev/null}, trusted_network: true}": "",
	} {
		file := filepath.Join(t.TempDir(), "u.yaml")
		must.OK(t, os.WriteFile(file, []byte("node: n\nzookeeper: "+zookeeper+"\nservices: {}\n"), 0o600))
		code, out, _ := says(t, "check", "--elsewhere", file)
		if told := strings.Count(out, "note: any client that reaches the ZooKeeper servers can"); code != 0 || (told == 1) != (want != "") || !strings.HasSuffix(out, want) {
			t.Errorf("%s: code %d, %d notes\n%s", zookeeper, code, told, out)
		}
		var status strings.Builder
		f := statusFlags{visit: visit{clusterFlags: clusterFlags{Config: file}}}
		if err := f.noteExposure(&status); err != nil || strings.Contains(status.String(), "any client that reaches the ZooKeeper servers can") != (want != "") {
			t.Errorf("%s: %v, %q", zookeeper, err, status.String())
		}
	}
}

func TestCheckNotesANodeThatTheFileDoesNotName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "u.yaml")
	text := "zookeeper: {servers: [zk1], trusted_network: true}\nservices: {s: {command: [sleep, '1'], nodes: {db-1: {priority: 1}}}}\n"
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	const note = `note: --node: the file does not name db-2, but db-1 (did you mean "db-1"?)`
	for node, want := range map[string]bool{"db-1": false, "db-2": true} {
		if code, out, _ := says(t, "check", "--node", node, file); code != 0 || strings.Contains(out, note) != want {
			t.Errorf("%s: code %d, %s", node, code, out)
		}
	}
}

func TestCheckTellsTheSameAsJSON(t *testing.T) {
	for file, want := range map[string]verdict{
		"testdata/sound.yaml": {OK: true, Services: 2, Faults: []remark{}, Warnings: []remark{}, Notes: []string{}},
		"testdata/faulty.yaml": {Warnings: []remark{}, Notes: []string{}, Faults: []remark{
			{"testdata/faulty.yaml", 4, 5, "services.redis.comand", `unknown key (did you mean "command"?)`},
			{"testdata/faulty.yaml", 5, 19, "services.redis.stop_timeout", `"10" has no unit: write 10s for seconds`},
		}},
	} {
		code, out, _ := says(t, "check", "--json", "--config", file)
		var got verdict
		if err := json.Unmarshal([]byte(out), &got); err != nil || (code == 0) != want.OK {
			t.Fatalf("%s: code %d, %v: %s", file, code, err, out)
		}
		if len(got.Files) == 0 || filepath.Base(got.Files[0]) != filepath.Base(file) {
			t.Errorf("files %q", got.Files)
		}
		got.Files = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEffectiveConfigIsTheSameConfig(t *testing.T) {
	want := config.Read("testdata/sound.yaml", "")
	if want.Err() != nil {
		t.Fatal(want.Err())
	}
	for _, flags := range [][]string{{"--effective"}, {"--effective", "--json"}} {
		code, out, errs := says(t, append([]string{"check", "--config", "testdata/sound.yaml"}, flags...)...)
		if code != 0 || errs != "" {
			t.Fatalf("code %d, %q", code, errs)
		}
		if isJSON := json.Valid([]byte(out)); isJSON != (len(flags) == 2) {
			t.Errorf("%v: JSON is %v", flags, isJSON)
		}
		if !strings.Contains(out, "give_up_after") {
			t.Errorf("no default is filled in:\n%s", out)
		}
		file := filepath.Join(t.TempDir(), "effective.yaml")
		must.OK(t, os.WriteFile(file, []byte(out), 0o600))
		got := config.Read(file, "")
		if got.Err() != nil {
			t.Fatal(got.Err())
		}
		if diff := cmp.Diff(want.Config, got.Config); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCheckReadsTheFileAsOneNodeAndFindsTheErrorsOfAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "u.yaml")
	write := func(one string) {
		t.Helper()
		text := "zookeeper: {servers: [localhost]}\nnode: {n1: {http: {listen: \"127.0.0.1:8437\"}}}\n" +
			"services:\n  s: {command: [\"true\"], env: {A: all}, nodes: {n1: {" + one + ", env: {B: own}}}}\n"
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("priority: 7")
	for node, want := range map[string][]string{
		"n1": {"node: n1\n", "priority: 7\n", "B: own\n", "A: all\n", "listen: 127.0.0.1:8437\n"}, "n2": {"node: n2\n", "priority: 0\n", "A: all\n"},
	} {
		code, out, errs := says(t, "check", "--node", node, "--effective", file)
		if code != 0 || errs != "" || strings.Contains(out, "nodes:") {
			t.Errorf("%s: code %d, %q\n%s", node, code, errs, out)
		}
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %q in\n%s", node, line, out)
			}
		}
	}
	write("priorty: 7")
	want := file + ":4:54: services.s.nodes.n1.priorty: unknown key (did you mean \"priority\"?)\n"
	for _, words := range [][]string{{"check", file}, {"check", "--node", "n2", file}} {
		if code, out, _ := says(t, words...); code != 2 || out != want {
			t.Errorf("%v: code %d, %q, want %q", words, code, out, want)
		}
	}
	if code, _, errs := says(t, "check", "--node", "-x", file); code != 2 || !strings.Contains(errs, "--node: ") {
		t.Errorf("code %d, %q", code, errs)
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		must.OK(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	secret, env := write("zk", "me:hunter2"), write("env", "PASSWORD=hunter2\nhunter2\n")
	file := write("u.yaml", "node: n\nzookeeper: {servers: [a], auth: {scheme: digest, file: "+secret+"}}\n"+
		"services: {s: {command: sh, env_file: "+env+"}}\n")
	misplaced := write("m.yaml", "node: n\nzookeeper: {servers: [a], auth: {scheme: digest, file: \"me:hunter2\"}}\nservices: {s: {command: sh}}\n")
	short := write("s.yaml", "node: n\nzookeeper: {servers: [a], auth: \"me:hunter2\"}\nservices: {s: {command: sh}}\n")
	files := []string{file, misplaced, short, secret} // the last, and those below, are not YAML, or no config
	for i, text := range []string{"hunter2\n", "hunter2: x\n", "- hunter2\n", "*hunter2\n", "\"hunter2\n", "@hunter2\n", "x\nhunter2: y\n"} {
		files = append(files, write(fmt.Sprint("secret", i), text))
	}
	for _, file := range files {
		for _, flags := range [][]string{{}, {"--json"}, {"--effective"}, {"--effective", "--json"}} {
			_, out, errs := says(t, append([]string{"check", "--config", file}, flags...)...)
			if strings.Contains(out+errs, "hunter2") || out+errs == "" {
				t.Errorf("%s %v:\n%s%s", file, flags, out, errs)
			}
		}
	}
	if _, out, _ := says(t, "check", "--config", file); !strings.Contains(out, "lets others read it: chmod 600 "+secret) {
		t.Errorf("no warning: %s", out)
	}
}

// What keeps `run` from starting here fails `check` here, and not for another machine.
func TestCheckFailsWhereRunWould(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.secret")
	for keys, at := range map[string]string{
		"zookeeper: {servers: [127.0.0.1:1], auth: {scheme: digest, file: " + gone + "}}\n":                                 ":2:66: zookeeper.auth.file: ",
		"zookeeper: {servers: [127.0.0.1:1]}\nfencing: {agent: {listen: \":8438\", secret_file: " + gone + "}}\n":           ":3:49: fencing.agent.secret_file: ",
		"zookeeper: {servers: [127.0.0.1:1]}\nnode: {n: {fencing: {agent: {listen: \":1\", secret_file: " + gone + "}}}}\n": ":3:57: node.n.fencing.agent.secret_file: ",
	} {
		file := filepath.Join(t.TempDir(), "u.yaml")
		must.OK(t, os.WriteFile(file, []byte("services: {s: {command: sh}}\n"+keys), 0o600))
		code, out, _ := says(t, "check", "--node", "n", file)
		if code != 2 || strings.Count(out, gone+": no such file or directory") != 1 || !strings.Contains(out, file+at+gone) {
			t.Errorf("%s: code %d\n%s", keys, code, out)
		}
		if code, out, _ := says(t, "check", "--node", "n", "--elsewhere", file); code != 0 || strings.Contains(out, gone) {
			t.Errorf("%s, elsewhere: code %d\n%s", keys, code, out)
		}
		if code, _, errs := says(t, "run", "--node", "n", "--config", file); code != 2 || !strings.Contains(errs, file+at+gone+": no such file or directory") {
			t.Errorf("%s: run ends with %d: %s", keys, code, errs)
		}
	}
}

// With files of no use `run` would try in vain for ever.
func TestCheckFailsWhereNoServerCouldBeSpokenTo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "u.yaml")
	must.OK(t, os.WriteFile(file, []byte("zookeeper: {servers: [127.0.0.1:1], tls: {ca_file: /etc/services}}\nservices: {s: {command: sh}}\n"), 0o600))
	const want = ":1:42: zookeeper.tls: read the authorities: /etc/services holds no certificate in PEM\n"
	if code, out, _ := says(t, "check", file); code != 2 || out != file+want {
		t.Errorf("code %d\n%s", code, out)
	}
	if code, out, _ := says(t, "check", "--elsewhere", file); code != 0 {
		t.Errorf("elsewhere: code %d\n%s", code, out)
	}
}

// Whoever gives zookeeper.name, or takes it away, is told what the next supervisor would not find.
func TestCheckNamesWhatIsNotFoundUnderAnotherName(t *testing.T) {
	t.Setenv(keyfile.RunVariable, t.TempDir())
	file := filepath.Join(t.TempDir(), "u.yaml")
	check := func(name string) string {
		t.Helper()
		text := "node: n\nzookeeper: {servers: [zk1], root: /r" + name + ", trusted_network: true}\nservices:\n  s: {command: /bin/true}\n  other: {command: /bin/true}\n"
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		_, out, _ := says(t, "check", "--config", file)
		return out
	}
	left := supervisor.Config{Node: "n", Root: "/r", Servers: []string{"zk1:2181"}, Cluster: "one", Logger: hclog.NewNullLogger()}
	supervisor.NewMemory(left).Save("s", service.Known{Token: 7})
	if out := check(", name: one"); out != "ok: 2 services in 1 file\n" {
		t.Errorf("the same name: %q", out)
	}
	if out := check(", name: two"); strings.Count(out, "note: zookeeper.name: ") != 1 || !strings.Contains(out, "was left on this host for s ") {
		t.Errorf("another name: %q", out)
	}
	if out := check(""); strings.Count(out, "note: zookeeper.name: ") != 1 {
		t.Errorf("no name: %q", out)
	}
}

// A system's file that was named in error is to be read by all, and its mode is no mistake.
func TestCheckLeavesTheModeOfWhatIsNoSecretAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "u.yaml")
	for _, name := range []string{"/etc", "/etc/services"} {
		must.OK(t, os.WriteFile(file, []byte("zookeeper: {servers: [127.0.0.1:1], auth: {scheme: digest, file: "+name+"}}\nservices: {s: {command: sh}}\n"), 0o600))
		if _, out, _ := says(t, "check", file); strings.Contains(out, "lets others read it") {
			t.Errorf("%s: %s", name, out)
		}
	}
}
