package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

const walkthroughDoc = "../../docs/walkthrough.md"

// step is a command of the page, the machine that it is typed on, and what the page says that it prints.
type step struct{ host, command, prints string }

var (
	shown    = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")
	prompted = regexp.MustCompile(`(?m)^(n\d)# (.*)\n((?:[^n\n].*\n|n[^\d\n].*\n|n\d[^#].*\n)*)`)
	varying  = regexp.MustCompile(`[~<>]?\b[\d.]+(?:-[\d.]+)?(?:(?:ms|s|m|h)(?:[\d.]+(?:ms|s|m))*)?\b`)
	advice   = regexp.MustCompile(`(?s)\n *[Nn]ote: any client.*?set\s+its\s+auth\b\.?`) // which the page leaves out
	passing  = regexp.MustCompile(`(?m)^ *n\d has stopped it\n`)                         // told if it lasts until somebody looks
)

// steps are those of a part of the page.
func steps(part string) (all []step) {
	for _, b := range shown.FindAllStringSubmatch(part, -1) {
		for _, s := range prompted.FindAllStringSubmatch(b[1], -1) {
			all = append(all, step{s[1], s[2], s[3]})
		}
	}
	return all
}

// alike is a text without what differs each time: numbers and times, which server leads, and the width of columns.
func alike(text string) string {
	text = strings.ReplaceAll(passing.ReplaceAllString(advice.ReplaceAllString("\n"+text, ""), ""), ", leader,", ", follower,")
	return strings.Join(strings.Fields(varying.ReplaceAllString(text, "0")), " ")
}

// Whoever types the page on three empty machines sees what it shows.
func TestTheWalkthroughIsAsItsPageShows(t *testing.T) {
	need.These(t, "nspawn")
	deb := file(t, packages(t, buildOlder), "*_"+runtime.GOARCH+".deb")
	lab := kit.NewLab(t)
	names, hosts := "127.0.0.1 localhost\n", []*kit.Host{}
	for _, n := range []string{"1", "2", "3"} {
		host := lab.Host(t, "n"+n)
		hosts, names = append(hosts, host), names+host.Addr+" n"+n+" zk"+n+"\n"
	}
	machines := map[string]*machine{}
	for _, host := range hosts {
		machines[host.Name] = boot(t, host, member, nil, func(root string) {
			must.OK(t, os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(names), 0o644))
			must.OK(t, run(exec.Command("cp", deb, filepath.Join(root, "root"))))
		})
	}
	ensemble, err := block(zookeeperDoc, "ensemble")
	must.OK(t, err)
	_, rest, _ := strings.Cut(ensemble, "\n") // the first line made the disks
	for _, m := range machines {
		m.do(t, "sh", "-ec", rest)
	}
	install, err := block(walkthroughDoc, "pair")
	must.OK(t, err)
	for _, name := range []string{"n1", "n2"} {
		machines[name].do(t, "sh", "-ec", install)
	}
	page, err := os.ReadFile(walkthroughDoc)
	must.OK(t, err)
	before, after, found := strings.Cut(string(page), "\n## Pull the plug\n")
	if !found {
		t.Fatal("the page pulls no plug")
	}
	follow := func(all []step) {
		for _, s := range all {
			out := ""
			look := func() bool {
				out, _ = machines[s.host].try("sh", "-c", s.command)
				return alike(out) == alike(s.prints)
			}
			orders := strings.HasPrefix(s.command, "understudy switchover ") || strings.HasPrefix(s.command, "systemctl ") // typed once
			if orders && !look() || !orders && !kit.Reached(time.Minute, look) {
				t.Fatalf("%s# %s\n%s", s.host, s.command, out)
			}
			t.Logf("%s# %s\n%s", s.host, s.command, out)
		}
	}
	follow(steps(before))
	machines["n1"].powerOff(t)
	follow(steps(after))
	if len(steps(before)) < 5 || len(steps(after)) < 2 {
		t.Error("too few commands")
	}
}
