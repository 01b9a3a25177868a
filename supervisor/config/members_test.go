package config

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/packaging/need"
	"understudy/supervisor/ocf"
)

// own is a program of this binary that stands for a member.
func own(name string, ready time.Duration, command string) Process {
	return Process{Name: name, Program: Program{
		Command: strings.Split(command, " "), StopSignal: Signal(syscall.SIGTERM), StopTimeout: 5 * time.Second, Ready: Ready{Notify: true, Timeout: ready},
	}, Member: true}
}

func effect(name string, undoWithin, within time.Duration, command, undo string) Process {
	p := own(name, within, command)
	p.Oneshot, p.Undo, p.UndoTimeout = true, strings.Split(undo, " "), undoWithin
	return p
}

// sets is effect for an address.
func sets(a Address, words string) Process {
	name := a.IP.Addr()
	p := effect(name, 2*time.Second, 10*time.Second, "understudy address up "+words, "understudy address down "+words)
	p.Sets = &a
	return p
}

func keeps(name, command string) Process {
	p := own(name, 10*time.Second, command)
	p.Keeps = true
	return p
}

func expanded(t *testing.T, text string) []Process {
	t.Helper()
	got, err := load(head + text)
	if err != nil {
		t.Fatal(err)
	}
	checkRoundTrip(t, got)
	return got.Services["web"].Members("web", "understudy", func(ocf.Resource) ocf.Meta { return ocf.Meta{} }).Processes
}

func TestAddressesBecomeMembersBeforeThePrograms(t *testing.T) {
	v4 := []Process{
		sets(Address{IP: "192.0.2.10/32", Announce: time.Minute}, "--device  --ip 192.0.2.10/32"),
		keeps("192.0.2.10-keeper", "understudy address keep --announce 1m0s --device  --ip 192.0.2.10/32"),
	}
	v6 := []Process{
		sets(Address{IP: "2001:db8::10/64", Device: "eth0", Announce: 5 * time.Second}, "--device eth0 --ip 2001:db8::10/64"),
		keeps("2001:db8::10-keeper", "understudy address keep --announce 5s --device eth0 --ip 2001:db8::10/64"),
	}
	both := []Process{v4[0], v6[0], keeps("192.0.2.10-keeper",
		"understudy address keep --announce 1m0s --device  --ip 192.0.2.10/32 --announce 5s --device eth0 --ip 2001:db8::10/64")}
	program := own(MainProcess, 0, "nginx")
	program.Ready, program.User, program.StopTimeout, program.Member = Ready{}, "www", 7*time.Second, false
	const service = "services: {web: {command: nginx, user: www, stop_timeout: 7s, address: "
	for text, want := range map[string][]Process{
		"192.0.2.10}}":       v4,
		"192.0.2.10/32}}":    v4,
		"{ip: 192.0.2.10}}}": v4,
		"[192.0.2.10]}}":     v4,
		"[]}}":               nil,
		"[192.0.2.10, {ip: '2001:db8::10/64', device: eth0, announce: 5s}]}}":                     both,
		"192.0.2.1, nodes: {n: {address: {ip: '2001:db8::10/64', device: eth0, announce: 5s}}}}}": v6,
	} {
		if diff := cmp.Diff(append(slices.Clone(want), program), expanded(t, service+text+"\n")); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}

	in := expanded(t, `
services:
  web:
    user: www
    processes:
      - {name: data, command: mount, oneshot: true}
      - {name: 192.0.2.10, address: 192.0.2.10}
      - {name: "2001:db8::10", address: {ip: "2001:db8::10/64", device: eth0, announce: 5s}}
      - {name: web, command: nginx}
`)
	if diff := cmp.Diff(both, in[1:4]); diff != "" || len(in) != 5 {
		t.Error(diff)
	}
	want := [][]Process{in[:1], both[:2], both[2:], in[4:]}
	if diff := cmp.Diff(want, Service{Processes: in}.Groups()); diff != "" {
		t.Error(diff)
	}
}

func TestResourceAgentsBecomeMembers(t *testing.T) {
	const agent = "heartbeat:Filesystem"
	const args = " -- heartbeat:Filesystem device=/dev/vdb directory=/srv/my data"
	for more, want := range map[string][2]time.Duration{
		"": {20 * time.Second, 20 * time.Second},
		", ready: {timeout: 3s}, undo_timeout: 4s, needs_proof: true, survives_boot: true": {3 * time.Second, 4 * time.Second},
	} {
		got := expanded(t, "services: {web: {stop_timeout: 1s, ready: {timeout: 2s}, processes: [{name: fs, ocf: '"+agent+
			"', params: {directory: /srv/my data, device: /dev/vdb}"+more+"}, {name: web, command: nginx}]}}\n")
		start, stop := want[0], want[1]
		words := func(word, flags string) Command {
			rest := strings.SplitAfterN(strings.TrimPrefix(args, " -- "), " ", 3)
			return append(strings.Fields("understudy ocf "+word+" --name web-fs "+flags+" --"), strings.TrimSpace(rest[0]), strings.TrimSpace(rest[1]), rest[2])
		}
		fs := effect("fs", stop, start, "", "")
		fs.Command, fs.Undo = words("start", "--timeout "+start.String()), words("stop", "--timeout "+stop.String())
		fs.Undone, fs.NeedsProof, fs.SurvivesBoot = words("stopped", "--timeout 20s"), more != "", more != ""
		monitor := own("fs-monitor", 20*time.Second, "")
		monitor.Command, monitor.Probe = words("watch", "--timeout 20s"), words("probe", "--timeout 20s --validate")
		if diff := cmp.Diff([]Process{fs, monitor}, got[:2]); diff != "" || len(got) != 3 {
			t.Errorf("%s: %s", more, diff)
		}
		// What a later one needs may not be there yet: only its monitor action is asked.
		late := expanded(t, "services: {web: {processes: [{name: vip, address: 192.0.2.10}, {name: fs, ocf: '"+agent+
			"', params: {directory: /srv/my data, device: /dev/vdb}}]}}\n")
		if diff := cmp.Diff(words("probe", "--timeout 20s"), late[3].Probe); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMountsBecomeMembers(t *testing.T) {
	const words = " --device /dev/vdb --type xfs --options noatime,nodev /srv/db"
	for more, want := range map[string][2]time.Duration{
		"": {time.Minute, time.Minute},
		", ready: {timeout: 3s}, undo_timeout: 4s, needs_proof: false": {3 * time.Second, 4 * time.Second},
	} {
		item := "{name: db, mount: {device: /dev/vdb, directory: /srv/db, type: xfs, options: [noatime, nodev]}" + more + "}"
		got := expanded(t, "services: {web: {stop_timeout: 1s, ready: {timeout: 2s}, processes: ["+item+", {name: web, command: nginx}]}}\n")
		db := effect("db", want[1], want[0], "understudy mount up"+words, "understudy mount down"+words)
		db.NeedsProof, db.Probe = more == "", strings.Fields("understudy mount probe"+words)
		if diff := cmp.Diff([]Process{db, own("db-watch", 10*time.Second, "understudy mount watch"+words)}, got[:2]); diff != "" || len(got) != 3 {
			t.Errorf("%s: %s", more, diff)
		}
		// What a later one needs may not be there yet.
		if late := expanded(t, "services: {web: {address: 192.0.2.10, processes: ["+item+"]}}\n"); late[2].Probe != nil {
			t.Error(late[2].Probe)
		}
	}
}

func TestWhatAddressesAndAgentsLackHereIsNamed(t *testing.T) {
	need.These(t, "root") // who asks an agent whether parameters are right
	root := tree(t, map[string]string{"resource.d/test/Agent": `#!/bin/sh
[ "$1" = validate-all ] && { echo "$OCF_RESKEY_device is no disk"; exit 2; }
[ "$1" = meta-data ] && echo '<resource-agent><parameters><parameter name="device" required="1"/><parameter name="options"/></parameters></resource-agent>'
`})
	t.Setenv("OCF_ROOT", root)
	if err := os.Chmod(root+"/resource.d/test/Agent", 0o755); err != nil {
		t.Fatal(err)
	}
	r := newLoader("u.yaml", disk{}).load([]byte(head + `services:
  s:
    address: {ip: 192.0.2.10, device: none7}
    processes:
      - {name: vip, address: {ip: 192.0.2.11, device: none8}}
      - {name: one, ocf: "test:Agent", params: {option: x}}
      - {name: two, ocf: "test:Agent", params: {device: x}}
      - {name: three, ocf: "test:None"}
  m: {processes: [{name: db, mount: {device: /dev/none9, directory: /etc, type: xfs}}]}
`))
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	var got []string
	for _, f := range r.Here() {
		if text := f.String(); !strings.Contains(text, "CAP_NET") && !f.Danger {
			got = append(got, text)
		}
	}
	want := []string{
		"u.yaml:5:14: services.s.address: there is no device none7 (on this machine)",
		"u.yaml:7:30: services.s.processes[0].address: there is no device none8 (on this machine)",
		"u.yaml:8:48: services.s.processes[1].params: test:Agent requires the parameter device (on this machine)",
		`u.yaml:8:57: services.s.processes[1].params.option: test:Agent has no such parameter (did you mean "options"?) (on this machine)`,
		"u.yaml:9:48: services.s.processes[2].params: test:Agent validate-all: exit code 2 (a parameter is wrong): x is no disk (on this machine)",
		"u.yaml:10:28: services.s.processes[3].ocf: no such file or directory: " + root + "/resource.d/test/None (on this machine)",
		"u.yaml:11:37: services.m.processes[0].mount: stat /dev/none9: no such file or directory (on this machine)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A node whose device cannot carry the service's address does not stand. What the device of a later one is may depend on a program before it.
func TestANodeWithoutTheDeviceOfAnAddressLacksIt(t *testing.T) {
	for text, want := range map[string]string{
		"{web: {command: 'true', address: [{ip: 192.0.2.10, device: lo}, {ip: 192.0.2.11, device: none7}]}}":                     "192.0.2.11: there is no device none7",
		"{web: {processes: [{name: a, command: 'true', oneshot: true}, {name: vip, address: {ip: 192.0.2.10, device: none7}}]}}": "",
	} {
		s := Service{Processes: expanded(t, "services: "+text+"\n")}
		got := ""
		if err := s.LacksDevice(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
