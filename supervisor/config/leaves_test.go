package config

import (
	"testing"

	"understudy/supervisor/ocf"
)

// What an operator has to look at is named by its kind, and no agent's password with it.
func TestWhatAOneshotLeavesIsNamed(t *testing.T) {
	cfg, err := load(head + `services:
  s:
    address: 192.0.2.10/24
    processes:
      - {name: mnt, command: [mount, /dev/vdb, /srv/db], oneshot: true, undo: [/usr/bin/umount, /srv/db]}
      - {name: fs, ocf: "heartbeat:Filesystem", params: {device: /dev/vdb, directory: /srv/fs, fstype: ext4}}
      - {name: own, mount: {device: /dev/vdc, directory: /srv/own, type: xfs}}
      - {name: cloud, ocf: "heartbeat:aliyun-vpc-move-ip", params: {password: secret}}
      - {name: dns, command: x, oneshot: true, undo: [dns, del, it]}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][3]string{
		"192.0.2.10": {"", "192.0.2.10"}, "mnt": {"/srv/db"}, "fs": {"/srv/fs"}, "own": {"/srv/own"}, "cloud": {"", "", "the stop action of heartbeat:aliyun-vpc-move-ip"}, "dns": {"", "", "dns del it"},
	}
	s := cfg.Services["s"].Members("s", "/usr/bin/understudy", func(ocf.Resource) ocf.Meta { return ocf.Meta{} })
	for _, process := range s.Processes {
		if len(process.Undo) == 0 {
			continue
		}
		mount, address, undo := process.Leaves()
		if got := [3]string{mount, address, undo}; got != want[process.Name] {
			t.Errorf("%s: %q", process.Name, got)
		}
		delete(want, process.Name)
	}
	if len(want) > 0 {
		t.Errorf("not seen: %v", want)
	}
}
