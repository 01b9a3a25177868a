package mistakes

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is a wrong use and the cases that show what a user sees of it. A case has the name that its test gives it: a command line, the first
// string of an entry of a table, or what is given to wants and logs. A test has the name of its function, in another package behind that
// package's folder and a dot.
type row struct {
	use   string
	cases []string
}

const (
	e2e    = "supervisor/testbed/e2e."
	config = "supervisor/config."
)

var rows = slices.Concat(configFiles, commandLines, atRunTime)

// What is wrong in a config file, as `check` shows it.
var configFiles = []row{
	{"an empty file, or only comments", []string{"empty", "only a comment"}},
	{"a key misspelt", []string{"a key misspelt"}},
	{"a key of the top misspelt", []string{"a key of the top misspelt"}},
	{"a duration without a unit", []string{"no unit"}},
	{"yes instead of true", []string{"yes"}},
	{"a tab", []string{"a tab"}},
	{"two documents in one file", []string{"two documents"}},
	{"no text file at all", []string{"not UTF-8", "a folder as the config", "a config that is missing", "a device as the config"}},
	{"shell syntax in a command", []string{"a pipe"}},
	{"an open quote, a wrong umask, signal or limit", []string{"an open quote", "umask", "a signal", "a limit"}},
	{"the password in the config", []string{"the password itself"}},
	{"a relative path, a wrong port, root or name", []string{"a relative path", "a port", "a root", "a name"}},
	{"something given twice", []string{"a service twice", "a key twice", "a server twice", "a service in two files"}},
	{"a secret that others read, a config that others write to", []string{"a secret that others read", "a config that others write to"}},
	{"a single value where a list or a mapping belongs", []string{
		"zookeeper: HOST", "servers: HOST", "a list of services", "a list of variables", "methods without items",
	}},
	{"wrong indentation", []string{"indentation"}},
	{"a brace that is not closed", []string{"an open brace"}},
	{"the agent method without an agent", []string{"the agent method without an agent"}},
	{"a restart delay above the longest one", []string{"delays"}},
	{"a health check too slow for its restarts", []string{"a slow health check"}},
	{"a session timeout that is too short", []string{"a short session", "a short session, what to write"}},
	{"a watchdog with a short session timeout", []string{"a watchdog with a short session"}},
	{"no services", []string{"no services", "an empty mapping of services", "a config that stops everything"}},
	{"a health check without a method", []string{"health without a method"}},
	{"a program, user, folder, env file or secret that is missing", []string{
		"no such program", "a program without the right to execute", "no such user", "no such folder", "no such env file", "no such secret",
	}},
	{"another user for a supervisor without root", []string{"user: daemon"}},
	{"KILL as the stop signal", []string{"KILL to stop"}},
	{"an auth file without user:password", []string{"a secret without a colon"}},
	{"servers that any client may reach", []string{"servers that any client may reach", config + "TestWhoReachesTheServersIsToldUnlessTheyAreTrusted"}},
}

// What cannot be obeyed on the command line and over HTTP.
var commandLines = []row{
	{"an unknown command or flag, a missing argument, two at once", []string{
		"statsu", "status --zkk x", "fence confirm --zk ZK", "run --config CONFIG -- sleep 1", "run --zk ZK --service a",
	}},
	{"no ZooKeeper is named", []string{"no ZooKeeper is named"}},
	{"an unknown service or node", []string{"status nosuch --zk ZK", "switchover a --to nosuch --zk ZK"}},
	{"fence confirm of the wrong node", []string{
		"fence confirm a --zk ZK", "fence confirm a --node n1 --yes --zk ZK", "fence confirm a --node n2 --yes --zk ZK",
		"fence confirm of a node that is not pending",
	}},
	{"dev on a port that is in use", []string{"dev --listen ZK"}},
	{"a ZooKeeper that refuses, has no address or is silent", []string{
		"status --timeout 2s --zk 127.0.0.1:1", "status --timeout 500ms --zk no-such-host.invalid", "status --timeout 500ms --zk SILENT",
	}},
	{"--zk with an HTTP server", []string{"status --timeout 2s --zk PAGE"}},
	{"TLS to a port without TLS", []string{"status --timeout 2s --config TLS"}},
	{"another --root", []string{"status --root /other --zk ZK"}},
	{"a flag's duration without a unit", []string{
		"status --timeout 5 --zk ZK", "run --grace 1 --zk ZK -- sleep 1", "run --session-timeout 4 --zk ZK -- sleep 1",
	}},
	{"a word instead of a number", []string{"history -n abc --zk ZK"}},
	{"a wrong value of a flag", []string{
		"run --election foo --zk ZK -- sleep 1", "run --restart x --zk ZK -- sleep 1", "run --log-level x --zk ZK -- sleep 1",
		"run --http 8437 --zk ZK -- sleep 1", "run --node x/y --zk ZK -- sleep 1", "run --stop-timeout -5s --zk ZK -- sleep 1",
	}},
	{"a missing file of the agent's secret", []string{"run --agent-secret /nosuch --agent-listen 127.0.0.1:1 --zk ZK -- sleep 1"}},
	{"a session timeout of an hour", []string{"a session timeout that no server grants"}},
	{"--once with --restart always", []string{"run --once --restart always --zk ZK -- sleep 1"}},
	{"wrong token over HTTP", []string{"no token", "a wrong token"}},
	{"a form instead of JSON over HTTP", []string{"a form instead of JSON"}},
	{"an unknown host name over HTTP", []string{"an unknown host"}},
	{"an unknown service, order or node over HTTP", []string{"an unknown service", "an unknown order", "an unknown node"}},
	{"logs without a config or without a log file", []string{"logs a --zk ZK", "logs a --config CONFIG", e2e + "TestLogsTellsWhereTheOutputIs"}},
	{"logs on a host that has another name than its node", []string{"logs of a node with another name than its host"}},
	{"a switchover to a node that fails", []string{"a switchover to a node that fails"}},
	{"sweep by hand", []string{"sweep"}},
}

// What the log and `status` show where a program, a node or ZooKeeper is not as it should be.
var atRunTime = []row{
	{"a program that is missing", []string{"no-binary"}},
	{"a program that is a folder or may not be executed", []string{"folder", "no-right"}},
	{"a user that is missing", []string{"no-user"}},
	{"a working directory that is missing", []string{"no-folder"}},
	{"an env file that is missing", []string{"no-env"}},
	{"a log file in a folder that is missing", []string{"no-log"}},
	{"a program that goes to the background", []string{"daemon"}},
	{"a health check that fails", []string{"ill"}},
	{"a program that is not ready in time", []string{"unready"}},
	{"an on_active hook that fails", []string{"hook"}},
	{"a program that crashes", []string{"crash"}},
	{"a token file that is missing", []string{"a token that is not there"}},
	{"a port of HTTP or the agent that is in use", []string{"a port that is taken", "the agent's port"}},
	{"no ZooKeeper at the start", []string{"a ZooKeeper that is not there", e2e + "TestZooKeeperThatIsNotThereIsWaitedFor"}},
	{"a ZooKeeper that freezes", []string{"a ZooKeeper that freezes"}},
	{"znodes of other credentials", []string{"znodes of other credentials", e2e + "TestWrongDigestIsTold"}},
	{"a node's name that is taken", []string{"a name that is taken"}},
	{"a config that is changed and has an error", []string{"an error in a changed config"}},
	{"a config that is removed", []string{"a config that is removed"}},
	{"a change that is loaded in part", []string{"a change that needs a restart"}},
	{"a supervisor without rights", []string{"TestWithoutRights"}},
	{"a fencing that fails", []string{"a fencing that fails", e2e + "TestFencingMethodDecides", e2e + "TestWhatTheStatusAdvisesMendsIt"}},
	{"an alert without advice", []string{"TestTheAlertOfTwoActiveNodes"}},
}

func TestEveryWrongUseHasACase(t *testing.T) {
	here, known := casesHere(t), 0
	if len(rows) < 75 {
		t.Errorf("only %d wrong uses are listed", len(rows))
	}
	for _, r := range rows {
		if len(r.cases) == 0 {
			t.Errorf("%s: it has no case", r.use)
		}
		for _, name := range r.cases {
			dir, function, elsewhere := strings.Cut(name, ".Test")
			switch {
			case elsewhere && !hasTest(t, filepath.Join("../../..", dir), "Test"+function):
				t.Errorf("%s: no test has the name %s", r.use, name)
			case !elsewhere && here[name] != 1:
				t.Errorf("%s: %d cases have the name %q, want 1", r.use, here[name], name)
			}
			known++
		}
	}
	t.Logf("%d wrong uses, %d cases", len(rows), known)
}

// hasTest reports whether a test file of a folder has the function.
func hasTest(t *testing.T, dir, function string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	must(t, err)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		must(t, err)
		return bytes.Contains(text, []byte("\nfunc "+function+"(t *testing.T) {"))
	})
}

// casesHere counts the names of this package's cases. It reads the source, since some cases are entries of tables and others single calls.
func casesHere(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	names := map[string]int{}
	for _, file := range files {
		if file == "rows_test.go" {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			if name, ok := caseName(n); ok {
				names[name]++
			}
			return true
		})
	}
	return names
}

// caseName is the name that a part of the source gives to a case.
func caseName(n ast.Node) (string, bool) {
	var name ast.Expr
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Name.Name, strings.HasPrefix(n.Name.Name, "Test")
	case *ast.CompositeLit: // an entry of a table leaves its type out
		if n.Type == nil && len(n.Elts) > 0 {
			name = n.Elts[0]
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 1 && (f.Sel.Name == "wants" || f.Sel.Name == "logs") {
			name = n.Args[1]
		}
	}
	literal, ok := name.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
