package e2e

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// inventory is a copy of the example with the role, and the machines of its inventory: two hosts and a small third.
type inventory struct {
	lab      *kit.Lab
	dir      string
	machines []*machine
	env      []string
}

// example makes a copy of it in a folder, with a package, and with what it leaves out.
const example = `cp -r ../ansible/. ../../examples/conf.d/clock.yaml $0
cp $1 $0/understudy.deb
mkdir $0/pids
echo "0123456789abcdef0123456789abcdef" >$0/agent.secret
printf 'understudy_conf_d=["clock.yaml"]\nunderstudy_secrets=["agent.secret"]\n' >>$0/inventory.ini
echo 'fencing: {agent: {listen: ":8438", secret_file: /etc/understudy/agent.secret}}' >>$0/understudy.yaml.j2`

func newInventory(t *testing.T) *inventory {
	t.Helper()
	deb := file(t, packages(t, buildOlder), "*_"+runtime.GOARCH+".deb")
	f := &inventory{lab: kit.NewLab(t), dir: t.TempDir()}
	if err := run(exec.Command("sh", "-ec", example, f.dir, deb)); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var hosts []*kit.Host
	names := "127.0.0.1 localhost\n"
	for _, name := range []string{"db-1", "db-2", "small"} {
		host := f.lab.Host(t, name)
		hosts, names = append(hosts, host), names+host.Addr+" "+name+"\n"
	}
	for _, host := range hosts {
		m := boot(t, host, member, nil, func(root string) {
			put(filepath.Join(root, "etc/hosts"), names)
			put(filepath.Join(root, "etc/apt/sources.list"), "") // the machine reaches none of them
		})
		put(filepath.Join(f.dir, "pids", host.Name), fmt.Sprint(m.pid))
		f.machines = append(f.machines, m)
	}
	// This stands for ssh: the last two of its words are a host and a command.
	ssh := filepath.Join(f.dir, "ssh")
	put(ssh, "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nexec nsenter --target \"$(cat '"+f.dir+"/pids/'\"$1\")\" --all "+
		"env -i --chdir=/root HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c \"$2\"\n")
	f.env = append(os.Environ(), "HOME="+f.dir, "LC_ALL=C.UTF-8", "ANSIBLE_SSH_EXECUTABLE="+ssh, "ANSIBLE_SSH_TRANSFER_METHOD=piped",
		"ANSIBLE_PIPELINING=1", "ANSIBLE_REMOTE_USER=root", "ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3")
	return f
}

// play runs a command of the page with more words.
func (f *inventory) play(t *testing.T, words ...string) (said string, err error) {
	t.Helper()
	began := time.Now()
	cmd := exec.Command("sh", "-c", strings.Join(words, " "))
	cmd.Dir, cmd.Env = f.dir, f.env
	out, err := cmd.CombinedOutput()
	t.Logf("%v: %s", time.Since(began).Round(time.Second), cmd.Args[2])
	return string(out), err
}

var played = regexp.MustCompile(`(?m)^\S+ +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0 `)

// plays is play for what has to succeed on so many hosts; it reports whether something was changed on any.
func (f *inventory) plays(t *testing.T, hosts int, words ...string) (changed bool) {
	t.Helper()
	said, err := f.play(t, words...)
	ends := played.FindAllStringSubmatch(said, -1)
	if err != nil || len(ends) != hosts {
		t.Fatalf("%v: %v\n%s", words, err, said)
	}
	return slices.ContainsFunc(ends, func(end []string) bool { return end[1] != "0" })
}

// probes asks the hosts for a page of the service while something is done, 50 times a second. A probe that no host answers has failed.
func (f *inventory) probes(t *testing.T, during func()) (failed int, longest time.Duration) {
	t.Helper()
	client := http.Client{Timeout: kit.Soon, Transport: &http.Transport{DisableKeepAlives: true}}
	stop, done := make(chan struct{}), make(chan struct{})
	serves := func(m *machine) bool {
		answer, err := client.Get("http://" + m.Addr + ":8000/understudy/README.md")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}
	asked := 0
	go func() {
		defer close(done)
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for last := time.Now(); ; asked++ {
			if slices.ContainsFunc(f.machines[:2], serves) {
				last = time.Now()
			} else {
				failed, longest = failed+1, max(longest, time.Since(last))
			}
			select {
			case <-stop:
				return
			case <-again.C:
			}
		}
	}()
	defer func() {
		close(stop)
		<-done
		t.Logf("of %d probes %d failed; the longest time without an answer was %v", asked, failed, longest.Round(time.Millisecond))
	}()
	during()
	return failed, longest
}

// each is what a command says on each of so many machines.
func (f *inventory) each(t *testing.T, hosts int, words ...string) (said []string) {
	t.Helper()
	for _, m := range f.machines[:hosts] {
		said = append(said, m.do(t, words...))
	}
	return said
}

// The role makes an ensemble and supervisors of bare machines, as the page says, and changes and upgrades them while a service runs.
func TestTheAnsibleRoleMakesAFleetAndUpgradesIt(t *testing.T) {
	need.These(t, "nspawn", "ansible-playbook", "gpg", "dpkg-scanpackages", "createrepo_c")
	f := newInventory(t)
	lines := commands(t, installDoc, "ansible")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, " #") // more words follow
	}
	look, site, upgrade := lines[0], lines[1], lines[2]

	files := f.machines[0].files(t)
	if !f.plays(t, 1, look, "--limit db-1") {
		t.Error("nothing would be changed on bare machines")
	}
	if diff := gocmp.Diff(files, f.machines[0].files(t)); diff != "" {
		t.Errorf("what only looks changes: %s", diff)
	}
	f.repairs(t, site)
	out := f.machines[0].do(t, "understudy", "check", "--zk")
	if strings.Count(out, ", follower, tick 500ms") != 2 || strings.Count(out, ", leader, tick 500ms") != 1 {
		t.Errorf("the ensemble is not as the page has it: %s", out)
	}
	f.sameAsThePage(t)
	if f.plays(t, 2, site, "--limit db-2,small") {
		t.Error("the second run changes something")
	}

	config := filepath.Join(f.dir, "understudy.yaml.j2")
	right, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(right, "servces: {}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if said, err := f.play(t, site, "--limit db-2"); err == nil || !strings.Contains(said, "servces: unknown key") {
		t.Errorf("a config with an error is taken: %s", said)
	}
	if err := os.WriteFile(config, right, 0o600); err != nil {
		t.Fatal(err)
	}

	f.machines[1].do(t, "understudy", "pause", "hello")
	if said, err := f.play(t, site, "--limit db-2 -e understudy_patience=1"); err == nil || strings.Count(said, "fatal: ") != 1 ||
		!strings.Contains(said, "exit code 6: hello: ") {
		t.Errorf("a run ends well while a service is paused: %s", said)
	}
	f.machines[1].do(t, "understudy", "resume", "hello")

	// Each server is restarted when the others work, so no service notices.
	before := f.each(t, 3, show("zookeeper", "MainPID")...)
	if failed, _ := f.probes(t, func() {
		f.plays(t, 3, site, `-e '{"understudy_zookeeper_settings": {"globalOutstandingLimit": 2000}}'`)
	}); failed > 0 {
		t.Error("the service was away while the servers of ZooKeeper were restarted")
	}
	f.others(t, 3, before, "zookeeper")
	began := f.each(t, 3, show("zookeeper", "ActiveEnterTimestampMonotonic")...)
	slices.SortFunc(began, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	for i := range began[1:] {
		earlier, _ := strconv.Atoi(began[i])
		later, _ := strconv.Atoi(began[i+1])
		if between := time.Duration(later-earlier) * time.Microsecond; between < 400*time.Millisecond { // none works so soon
			t.Errorf("two servers of ZooKeeper were restarted within %v", between)
		}
	}

	repository := t.TempDir()
	published(t, repository, true, buildOlder, buildNewer)
	listener, err := net.Listen("tcp", f.lab.Addr()+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.FileServer(http.Dir(repository)))
	server.Listener = listener
	server.Start()
	defer server.Close()
	from := "-e 'understudy_deb= understudy_repository=" + server.URL + "/apt understudy_repository_key=" + repository + "/understudy.asc'"
	f.machines[0].write(t, "/etc/understudy/conf.d/bad.yaml", "servces: {}\n") // the supervisor cannot become the new version
	if said, err := f.play(t, upgrade, from); err == nil || !strings.Contains(said, "servces: unknown key") {
		t.Errorf("the upgrade goes on after a supervisor that keeps its version: %s", said)
	}
	f.machines[0].do(t, "rm", "/etc/understudy/conf.d/bad.yaml")
	if version := f.machines[1].do(t, "understudy", "version"); !strings.Contains(version, older) {
		t.Errorf("the second host has %s", version)
	}
	before = f.each(t, 2, show("understudy", "MainPID")...)
	if failed, _ := f.probes(t, func() { f.plays(t, 2, upgrade, from) }); failed > 0 {
		t.Error("the service was away while the supervisors were upgraded")
	}
	for i, version := range f.each(t, 2, "understudy", "version") {
		m := f.machines[i]
		if exe := m.do(t, "readlink", "/proc/"+m.main(t)+"/exe"); !strings.Contains(version, newer) || exe != "/usr/bin/understudy" {
			t.Errorf("after the upgrade %s has %s, and runs %s", m.Name, version, exe)
		}
	}
	if diff := gocmp.Diff(before, f.each(t, 2, show("understudy", "MainPID")...)); diff != "" {
		t.Errorf("supervisors were restarted: %s", diff)
	}

	if _, away := f.probes(t, func() { f.plays(t, 2, upgrade, "-e drain=true") }); away > kit.Soon {
		t.Errorf("the service was away for %v while hosts were drained", away)
	}
	f.others(t, 2, before, "understudy")
}

// repairs runs a play in which no server reaches another one: one address is wrong, and another one is that of the host itself, as
// Debian's installer writes it. Supervisors reach none. The next run, with the right ones, repairs that.
func (f *inventory) repairs(t *testing.T, site string) {
	t.Helper()
	const right, small = "small understudy_zookeeper_id=3", " understudy_zookeeper_address="
	wrong := f.lab.Addr() // of no server
	hosts := f.machines[0].do(t, "cat", "/etc/hosts")
	f.machines[0].write(t, "/etc/hosts", strings.Replace(hosts, f.machines[0].Addr, "127.0.1.1", 1)+"\n")
	must.OK(t, run(exec.Command("sed", "-i", "s/^"+right+"/&"+small+wrong+"/", filepath.Join(f.dir, "inventory.ini"))))
	said, err := f.play(t, site, `-e '{"understudy_patience": 5, "understudy_zookeeper_servers": ["`+wrong+`:2181"]}'`)
	for _, part := range []string{
		"db-2 does not reach ", "db-1 port 3888 (Connection refused)", "small at " + wrong + " port 2181 3888 (Connection refused)",
		"db-1 is a loopback address in /etc/hosts of db-1, so others do not reach its server",
	} {
		if err == nil || !strings.Contains(said, part) || strings.Count(said, "fatal: ") != 1 {
			t.Fatalf("not once %q where no server reaches another one: %v\n%s", part, err, said)
		}
	}
	f.machines[0].write(t, "/etc/hosts", hosts+"\n")
	must.OK(t, run(exec.Command("sed", "-i", "s/"+small+wrong+"//", filepath.Join(f.dir, "inventory.ini"))))
	f.plays(t, 3, site)
	f.machines[1].do(t, "sh", "-c", "understudy status --check || [ $? = 7 ]") // 7: without a standby
}

func show(unit, property string) []string {
	return []string{"systemctl", "show", "--value", "--property=" + property, unit}
}

// others makes sure that a unit has another process on each machine than it had.
func (f *inventory) others(t *testing.T, hosts int, had []string, unit string) {
	t.Helper()
	for i, now := range f.each(t, hosts, show(unit, "MainPID")...) {
		if now == had[i] || now == "0" {
			t.Errorf("%s on %s was process %s, and is %s", unit, f.machines[i].Name, had[i], now)
		}
	}
}

// sameAsThePage compares what the role writes with what a reader of the page types.
func (f *inventory) sameAsThePage(t *testing.T) {
	t.Helper()
	typed, err := block(zookeeperDoc, "ensemble")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)cat >(\S+) <<EOF\n(.*?)\nEOF\n`).FindAllStringSubmatch(typed, -1)
	if len(found) != 2 {
		t.Fatalf("%s writes %d files", zookeeperDoc, len(found))
	}
	names := strings.NewReplacer("=zk1:", "=db-1:", "=zk2:", "=db-2:", "=zk3:", "=small:")
	for _, file := range found {
		if diff := gocmp.Diff(names.Replace(file[2]), f.machines[0].do(t, "cat", file[1])); diff != "" {
			t.Errorf("%s of the role and of the page differ: %s", file[1], diff)
		}
	}
}
