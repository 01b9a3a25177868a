package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

// says runs a command line in this process and returns its code and what it printed.
func says(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	was := [2]*os.File{os.Stdout, os.Stderr}
	var files [2]*os.File
	for i, name := range []string{"out", "err"} {
		f, err := os.Create(filepath.Join(dir, name))
		must.OK(t, err)
		defer f.Close()
		files[i] = f
	}
	os.Stdout, os.Stderr = files[0], files[1]
	code = Main("1.2.3", "", args)
	os.Stdout, os.Stderr = was[0], was[1]
	read := func(f *os.File) string {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		must.OK(t, err)
		return string(data)
	}
	return code, read(files[0]), read(files[1])
}

func emptyCluster(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	server := zkfaults.New(zkfaults.Config{})
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().String()
}

// testbed/mistakes has more of them.
func TestWhatIsWrongIsToldInOneLineWithItsExitCode(t *testing.T) {
	zk := emptyCluster(t)
	t.Setenv("UNDERSTUDY_ZK", "")
	noKey, pipe := filepath.Join(t.TempDir(), "u.yaml"), filepath.Join(t.TempDir(), "pipe")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	must.OK(t, os.WriteFile(noKey, []byte("zookeeper: {servers: ["+zk+"], tls: {cert_file: /no/cert, key_file: /no/key}}\n"), 0o600))
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"status a b --zk " + zk, 2, "one service at most"},
		{"status db --zk " + zk, 1, `no service "db": there is none yet`},
		{"status --timeout 0s --zk " + zk, 2, "--timeout must be"},
		{"status db --watch --zk " + zk, 1, `no service "db"`},
		{"completion tcsh", 2, `unknown command "tcsh"`},
		{"history db --zk " + zk, 1, `no service "db"`},
		{"history -n -1 --zk " + zk, 2, "--number"},
		{"fence confirm db --node a --zk " + zk, 1, `no service "db"`},
		{"undrain db-1 --zk " + zk, 1, `no node "db-1": there is none yet`},
		{"dev --listen nowhere", 2, `--listen: "nowhere" is not host:port: write 127.0.0.1:2181`},
		{"dev more", 2, "no arguments"},
		{"dev --listen 192.0.2.77:2181", 1, "--listen: 192.0.2.77:2181 is no address of this host: use one that it has, or :PORT for all"},
		{"-- status", 2, "\"status\" is a command of understudy: leave `--` out"},
		{"fence -- confirm", 2, "\"confirm\" is a command of understudy fence: leave `--` out"},
		{"-- sleep 1", 2, "`run` is missing before `--`: say `understudy run --zk HOSTS -- COMMAND`"},
		{"nosuch --help", 2, `unknown command "nosuch"`},
		{"address up", 2, "--ip is missing, such as --ip 192.0.2.10/32"},
		{"mount down /", 2, "--device is missing, such as --device /dev/vdb"},
		{"import /dev/zero", 1, "/dev/zero is not a regular file"},
		{"fence cofirm -h", 2, `unknown command "cofirm" (did you mean "confirm"?)`},
		{"switchover db --to= --zk " + zk, 2, "--to is empty: give it a value, or leave it out"},
		{"pause db --reason --zk " + zk, 2, "--reason has no value: the next word is --zk"},
		{"status --node --zk " + zk, 2, "--node has no value: the next word is --zk"},
		{"switchover db --to --force --zk " + zk, 2, "--to has no value: the next word is --force"},
		{"drain db-1 --reason --wait --zk " + zk, 2, "--reason has no value: the next word is --wait"},
		{"copy " + pipe, 1, pipe + " is no program, and this binary would take its place"},
		{"copy /proc/x", 1, "/proc/x cannot be written there"},
		{"switchover db --at 02:00 --zk " + zk, 2, "unknown flag: --at: to have it done later, systemd-run --on-calendar='2026-12-31 02:00' understudy switchover"},
		{"fence --zk " + zk, 2, "understudy fence takes a command first: understudy fence confirm db --node db-1"},
		{"run understudy.yaml", 2, "understudy.yaml is no program: `understudy run --config understudy.yaml` runs the services of a config"},
		{"status --root / --zk " + zk, 2, `--root: "/" is no path in ZooKeeper: write one such as /understudy`},
		{"logs db -n -1", 2, "--lines must not be negative"},
		{"demo -- /no/such", 2, "/no/such is no program that can be run here: name one that is installed, or its path"},
		{"check a.yaml b.yaml", 2, "check takes one file"},
		{"run --zk " + zk + " other:2181 -- sleep 1", 2, "commas separate servers"},
		{"run --zk " + zk + " --node -x -- sleep 1", 2, "must not start with -"},
		{"run --zk " + zk + " --node= -- sleep 1", 2, "--node is empty: give it a value, or leave it out"},
		{"run --zk " + zk + " --agent-listen :1 -- sleep 1", 2, "takes --agent-secret"},
		{"run --zk " + zk + " --agent-secret /no/such --agent-listen here -- sleep 1", 2, `--agent-listen: "here" is not host:port`},
		{"status --root= --zk " + zk, 2, "--root is empty: give it a value, or leave it out"},
		{"status -zk " + zk, 2, `unknown shorthand flag: 'z' in -zk (did you mean "--zk"?)`},
		{"status --server " + zk, 2, `unknown flag: --server (did you mean "--zk"?)`},
		{"status --output json --zk " + zk, 2, `(did you mean "--json"?)`},
		{"status --zk a;b", 2, `--zk: "a;b": commas separate servers`},
		{"switchover db --from db-1", 2, "unknown flag: --from: switchover has --config, --dry-run, --first, --force, --json, --root, --timeout, --to, --zk"},
		{"cordon db-1", 2, `unknown command "cordon" (did you mean "drain"?)`},
		{"enable db", 2, `unknown command "enable" (did you mean "start"?)`},
		{"drain db-1 --root /wrong --zk " + zk, 1, "nothing of Understudy is below /wrong on " + zk + " (is --root right?)"},
		{"explain program started: service=web pid=7", 1, "this line is not in docs/operations.md"},
		{"explain [INFO] understudy: ready after a takeover", 1, "one of INFO tells what is done, and needs nothing"},
		{"run --config /no/such --agent-secret /no/such", 2, "goes with a COMMAND"},
		{"run --zk " + zk + " --agent-secret /no/such --agent-listen :1 -- sleep 1", 2, "--agent-secret: /no/such: no such file or directory (openssl rand -hex 32 > /no/such makes one"},
		{"pause db --all --zk " + zk, 2, "give a service or --all, not both"},
		{"failover db --zk " + zk, 2, `unknown command "failover" (did you mean "switchover"?)`},
		{"stop db --zk " + zk, 1, `no service "db"`},
		{"resume --zk " + zk, 2, "resume takes one service, or --all"},
		{"copy /no/such/file", 1, "/no/such/file: the folder /no/such does not exist"},
		{"fence kill-local", 2, "--target is missing"},
		{"fence kill-local --target x", 2, "--target: this is not what"},
		{"fence kill-local x", 2, "kill-local takes no arguments (see"},
		{"reexec --pid 1", 2, "--pid 1: no such supervisor"},
		{"status --timeout 2s --zk 127.0.0.1:1,127.0.0.1:2", 3, "no ZooKeeper server of 127.0.0.1:1, 127.0.0.1:2 answers: connection refused (is"},
		{"run --wait 0 --log-level error --zk 127.0.0.1:1 --lease 500ms -- true", 75, "at the first try: no ZooKeeper server of 127.0.0.1:1 answers"},
		{"pause db --zk " + zk + " --reason " + strings.Repeat("x", 2000), 2, "--reason is 2000 bytes"},
		{"demo --nodes 1", 2, "--nodes must be from 2 to 9"},
		{"demo sleep 1", 2, "after `--`"},
		{"demo python3 -m http.server", 2, "write the command after `--`, as in `understudy demo -- COMMAND`"},
		{"status --zk " + zk + " h2:2181", 1, "if h2:2181 is a server, write it after --zk: commas separate servers"},
		{"status –zk h:2181", 2, "–zk begins with a long dash: write --zk"},
		{"reexec --timeout 0s", 2, "--timeout must be more than zero"},
		{"run --zk " + zk + " -- --service db sleep 100", 2, "\"--service\" is taken for the program's name: options come before `--`"},
		{"balance --root /wrong --zk " + zk, 1, "nothing of Understudy is below /wrong on " + zk + ": is --root right?"},
		{"demo -- no-such-program", 2, "no-such-program"},
		{"status --config /no/such", 2, "/no/such: cannot be read"},
		{"status --timeout 1s --config " + noKey, 2, "understudy: zookeeper.tls: read our certificate: open /no/cert: no such file or directory\n"},
		{"status --root here --zk " + zk, 2, "--root"},
		{"fence confrim", 2, `did you mean "confirm"?`},
		{"help statsu", 2, `did you mean "status"?`},
		{"logs", 2, "logs takes one service"},
		{"roll --timeout 10s --zk " + zk + " -- true", 2, "--timeout: 10s can never be enough, because a node has to be well for 10s after COMMAND: write 15s, or more where COMMAND takes longer"},
		{"roll --timeout 11s --zk " + zk + " -- true", 1, "nothing of Understudy is below"},
		{"run --lease 250ms --zk " + zk + " -- sleep 1", 2, "--lease: 250ms is too short"},
		{"run --stop-signal NOPE --zk " + zk + " -- sleep 1", 2, "--stop-signal"},
		{"run --contain box --zk " + zk + " -- sleep 1", 2, `--contain: "box" must be`},
		{"run --once=maybe --zk " + zk + " -- sleep 1", 2, `--once: "maybe" must be true or false`},
		{"status --check --json --zk " + zk, 2, "--check goes with neither"},
		{"status --node nobody --zk " + zk, 1, `no node "nobody"`},
	} {
		code, out, errs := says(t, strings.Fields(c.line)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: code %d, out %q, err %q; want %d, %q", c.line, code, out, errs, c.code, c.want)
		}
	}
}

// A wrong root is seen in what is not there.
func TestNothingIsToldWithItsPlace(t *testing.T) {
	zk := emptyCluster(t)
	for _, line := range []string{"history", "pause --all", "resume --all", "status"} {
		code, out, errs := says(t, append(strings.Fields(line), "--root", "/wrong", "--zk", zk)...)
		if code != 0 || !strings.Contains(out, "below /wrong on "+zk+".") || errs != "" {
			t.Errorf("%s: %d, %q, %q", line, code, out, errs)
		}
	}
	code, _, errs := says(t, "run", "--zk", zk, "--", "sleep 100")
	if want := `"sleep 100" is taken for the name of one program: leave the quotes off, as in -- sleep 100`; code != 2 || !strings.Contains(errs, want) {
		t.Errorf("a quoted command: %d, %q", code, errs)
	}
	code, _, errs = says(t, "run", "--zk", zk, "--", "cd /srv && ./x")
	if want := `is taken for the name of one program, and no shell runs it: write -- sh -c 'cd /srv && ./x'`; code != 2 || !strings.Contains(errs, want) {
		t.Errorf("a shell's line: %d, %q", code, errs)
	}
	for program, want := range map[string]string{
		"": "understudy: the program's name is empty\n", "/tmp/my prog": "understudy: give --service NAME, because of the program's: \"my prog\" is not a name: letters, digits and . _ - @ : are allowed\n",
	} {
		words := []string{"run", "--zk", zk, "--", program, "arg"}
		if code, _, errs := says(t, words...); code != 2 || errs != want {
			t.Errorf("%q: %d, %q", program, code, errs)
		}
	}
}

func TestWhoDoesNotSayWhichClusterIsAsked(t *testing.T) {
	need.These(t, "unconfigured")
	t.Setenv("UNDERSTUDY_ZK", "")
	if code, out, errs := says(t, "status"); code != 2 || out != "" || !strings.Contains(errs, "--zk is missing: ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	// A command is run without a config file: none is advised.
	if code, _, errs := says(t, "run", "--", "true"); code != 2 || !strings.Contains(errs, "--zk is missing: ") || strings.Contains(errs, "--config") {
		t.Errorf("run: code %d, %q", code, errs)
	}
}

func TestEveryTableIsThereAsJSON(t *testing.T) {
	zk := emptyCluster(t)
	for line, want := range map[string]string{
		"status --json --zk " + zk:  `{"nodes":[],"services":[]}`,
		"history --json --zk " + zk: `{"activations":[]}`,
	} {
		code, out, errs := says(t, strings.Fields(line)...)
		var v any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
			t.Fatalf("%s: code %d, %q, %q: %v", line, code, out, errs, err)
		}
		if got, _ := json.Marshal(v); string(got) != want {
			t.Errorf("%s: %s", line, got)
		}
	}
	_, out, _ := says(t, "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(out), &b); err != nil || b.Version != "1.2.3" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("version is %q: %v", out, err)
	}
	if _, out, _ = says(t, "version"); !strings.HasPrefix(out, "understudy 1.2.3, ") || strings.Count(out, "\n") != 1 {
		t.Errorf("version is %q", out)
	}
	for want, b := range map[string]build{
		"understudy 1.2.3, go1.26":                          {Version: "1.2.3", Go: "go1.26"},
		"understudy 1.2.3, commit abc, go1.26":              {Version: "1.2.3", Commit: "abc", Go: "go1.26"},
		"understudy 1.2.3, commit abc with changes, go1.26": {Version: "1.2.3", Commit: "abc", Modified: true, Go: "go1.26"},
	} {
		if b.String() != want {
			t.Errorf("%q, not %q", b, want)
		}
	}
}

// every calls f for each command that help shows.
func every(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			every(c, f)
		}
	}
}

// Whoever copies an example gets what it says: its command, flags and arguments are those that there are.
func TestEveryCommandHasHelpWithAnExampleThatWorks(t *testing.T) {
	root, n := Root("1.2.3", ""), 0
	every(root, func(cmd *cobra.Command) {
		n++
		if cmd.Short == "" || len(cmd.Short) > 80 || cmd.Example == "" {
			t.Errorf("%s: short %q, example %q", cmd.CommandPath(), cmd.Short, cmd.Example)
		}
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, ">")
			words := strings.Fields(line)
			found, rest, err := Root("1.2.3", "").Find(words[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil || words[0] != "understudy" || cmd.HasParent() && found.Name() != cmd.Name() && found.Parent().Name() != cmd.Name() {
				t.Errorf("%s: the example %q: %v", cmd.CommandPath(), line, err)
			}
		}
		code, out, _ := says(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(line); n > 81 && !strings.HasPrefix(line, "  understudy ") {
				t.Errorf("%s --help: a line of %d signs: %s", cmd.CommandPath(), n-1, line)
			}
		}
		if code != 0 || !strings.Contains(out, "Examples:\n  understudy") {
			t.Errorf("%s --help: code %d\n%s", cmd.CommandPath(), code, out)
		}
	})
	if n < 16 {
		t.Errorf("only %d commands", n)
	}
}

func TestDevServesUntilItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := dev(ctx, in, "127.0.0.1:0")
		_ = in.CloseWithError(err)
		done <- err
	}()
	words := make([]byte, 4096)
	n, err := out.Read(words) // written in one piece, as soon as it listens
	addr := regexp.MustCompile(`--zk (\S+)`).FindSubmatch(words[:n])
	if addr == nil || !strings.Contains(string(words[:n]), "NOT FOR PRODUCTION") || !strings.Contains(string(words[:n]), "timeouts of 1s to 10s.") {
		t.Fatalf("it says %q, %v", words[:n], err)
	}
	c, err := net.Dial("tcp", string(addr[1]))
	must.OK(t, err)
	defer c.Close()
	if _, err := io.WriteString(c, "ruok"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "imok" {
		t.Errorf("got %q, %v", got, err)
	}
	cancel()
	must.Report(t, <-done)
}

// Who typed sudo gives an order, and the user that sudo made of it: the environment's word for it is a claim, so it counts as a plain name alone.
func TestWhoOrdersIsWhoTypedSudo(t *testing.T) {
	t.Setenv("SUDO_USER", "")
	self := operator()
	name, host, _ := strings.Cut(self, "@")
	for sudo, want := range map[string]string{
		"alice": "alice (" + name + ")@" + host, name: self, "-rf": self, "al ice": self, "x\x1b[2J": self, "x\nINFO": self,
		strings.Repeat("a", 65): self,
	} {
		t.Setenv("SUDO_USER", sudo)
		if got := operator(); got != want {
			t.Errorf("SUDO_USER=%q: %q, not %q", sudo, got, want)
		}
	}
}
