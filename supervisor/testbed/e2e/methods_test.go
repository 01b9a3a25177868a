package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/fencing"
	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

const sshPort = "2222"

// sshd is a real one on a host, whom one key opens.
type sshd struct {
	addr       string
	key, known string // files
	otherKey   string // one that opens nothing
	tiedKey    string // one that is good for kill-local alone
}

func startSSHD(t *testing.T, h *kit.Host) sshd {
	t.Helper()
	need.These(t, "sshd")
	dir := t.TempDir()
	s := sshd{addr: h.Addr + ":" + sshPort, key: filepath.Join(dir, "id"), known: filepath.Join(dir, "known"), otherKey: filepath.Join(dir, "other"), tiedKey: filepath.Join(dir, "tied")}
	for _, key := range []string{s.key, s.otherKey, s.tiedKey, filepath.Join(dir, "host")} {
		must.OK(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	}
	public, err := os.ReadFile(s.key + ".pub")
	must.OK(t, err)
	tied, err := os.ReadFile(s.tiedKey + ".pub")
	must.OK(t, err)
	authorized := fmt.Appendf(public, "restrict,command=\"%s fence kill-local --forced\" %s", kit.UnderstudyBinary(t), tied)
	must.OK(t, os.WriteFile(filepath.Join(dir, "authorized"), authorized, 0o600))
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	must.OK(t, err)
	must.OK(t, os.WriteFile(s.known, fmt.Appendf(nil, "[%s]:%s %s", h.Addr, sshPort, hostKey), 0o600))
	conf := fmt.Sprintf("ListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\nPidFile none\n"+
		"PermitRootLogin prohibit-password\nPasswordAuthentication no\n", s.addr, dir, dir)
	must.OK(t, os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600))
	must.OK(t, os.MkdirAll("/run/sshd", 0o755))
	h.Run(t, "/usr/sbin/sshd", "-D", "-f", filepath.Join(dir, "conf"))
	kit.Until(t, soon, "sshd listens", func() bool {
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return s
}

// A child that lives, on a host that ZooKeeper does not hear, is killed over ssh by its identity.
func TestChildIsFencedOverSSH(t *testing.T) {
	need.These(t, "cgroup") // a tree that somebody else than its supervisor can kill
	p := brief(t, stage(t), "term=ignore", "daemons=1", "every=2ms")
	p.Options.Grace = longGrace
	ha, hb := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	s := startSSHD(t, ha)
	method := fmt.Sprintf("fencing: {methods: [{ssh: {user: root, key_file: %s, known_hosts: %s, address: %q, command: %s fence kill-local}}]}",
		s.key, s.known, s.addr, kit.UnderstudyBinary(t))
	p.FromFile(t, ha, p.Config(t, ha, "", kit.Command(p.Options.Child)))
	run := p.On(t, soon, "a", 0)
	b := p.FromFile(t, hb, p.Config(t, hb, "", kit.Command(p.Options.Child), method))
	p.Stands(t, hb)
	ha.Mute(t, p.Addrs()...)
	at := tick.Now()
	must.OK(t, p.Conn().Delete(p.Path("services", p.Options.Service, "ActiveStandbyElectorLock"), -1))
	t.Logf("succeeded after %v", time.Duration(p.On(t, soon, "b", run.First).First-at))
	p.Alone(t, time.Second, "b")
	p.fencedBy(t, b.Host, "ssh")
	ha.Heal(t)
	p.Stands(t, ha)
	p.Alone(t, time.Second, "b")
}

// What a host that is logged in to says is believed only when it is a statement of that very child's death.
func TestSSHIsBelievedOnlyWithAStatement(t *testing.T) {
	h := stage(t).Lab.Host(t, "a")
	s := startSSHD(t, h)
	target := fencing.Target{Service: "db", Node: "a", Host: "a", Machine: "m", Boot: "b", Token: 41}
	dead := `{"dead":true,"service":"db","token":41,"node":"a","machine":"m","boot":"b"}`
	strangers := filepath.Join(t.TempDir(), "known")
	must.OK(t, os.WriteFile(strangers, nil, 0o600))
	impostor := filepath.Join(t.TempDir(), "known")
	key, err := os.ReadFile(s.otherKey + ".pub")
	must.OK(t, err)
	must.OK(t, os.WriteFile(impostor, fmt.Appendf(nil, "[%s]:%s %s", h.Addr, sshPort, key), 0o600))
	for name, c := range map[string]struct {
		change func(*fencing.SSH)
		says   string // empty: it is believed
	}{
		"a statement":         {change: func(m *fencing.SSH) { m.Command = "echo noise; echo '" + dead + "' #" }},
		"a success only":      {change: func(m *fencing.SSH) { m.Command = "true" }, says: "no statement"},
		"of another token":    {change: func(m *fencing.SSH) { m.Command = "echo '" + strings.Replace(dead, "41", "40", 1) + "' #" }, says: "token 40"},
		"of another machine":  {change: func(m *fencing.SSH) { m.Command = "echo '" + strings.Replace(dead, `"m"`, `"x"`, 1) + "' #" }, says: "another machine"},
		"dead, but it failed": {change: func(m *fencing.SSH) { m.Command = "echo '" + dead + "'; false" }, says: "it failed there"},
		"it lives":            {change: func(m *fencing.SSH) { m.Command = `echo '{"alive":true,"why":"it does not die"}'; false` }, says: "it does not die"},
		"no such command":     {change: func(m *fencing.SSH) { m.Command = "no-such-command" }, says: "not found"},
		"hang":                {change: func(m *fencing.SSH) { m.Command = "sleep 1000 #" }, says: "no answer within 2s"},
		"refused key":         {change: func(m *fencing.SSH) { m.KeyFile = s.otherKey }, says: "unable to authenticate"},
		"no such user":        {change: func(m *fencing.SSH) { m.User = "no-such-user" }, says: "unable to authenticate"},
		"unknown host":        {change: func(m *fencing.SSH) { m.KnownHosts = strangers }, says: "key is unknown"},
		"another host's key":  {change: func(m *fencing.SSH) { m.KnownHosts = impostor }, says: "key mismatch"},
		"nobody listens":      {change: func(m *fencing.SSH) { m.Address = h.Addr + ":1" }, says: "refused"},
		"a tied key":          {change: func(m *fencing.SSH) { m.KeyFile = s.tiedKey }, says: "knows nothing about it"},
		"a tied key, misused": {change: func(m *fencing.SSH) { m.KeyFile, m.Command = s.tiedKey, "echo '"+dead+"' #" }, says: "is not about kill-local"},
		"nothing known of it": {change: func(m *fencing.SSH) { m.Command = kit.UnderstudyBinary(t) + " fence kill-local" }, says: "knows nothing about it"},
	} {
		t.Run(name, func(t *testing.T) {
			m := fencing.SSH{User: "root", KeyFile: s.key, KnownHosts: s.known, Address: s.addr}
			c.change(&m)
			limit := soon
			if name == "hang" {
				limit = 2 * time.Second
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("no answer within %v", limit))
			defer cancel()
			began := time.Now()
			err := m.Fence(ctx, target)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if took := time.Since(began); took > limit+soon {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// ClusterLabs' own dummy stands for a power switch.
func TestFenceAgentOfClusterLabsSwitchesOff(t *testing.T) {
	need.These(t, "root", "fence-agents")
	state := filepath.Join(t.TempDir(), "state")
	must.OK(t, os.WriteFile(state, []byte("on"), 0o600))
	target := fencing.Target{Service: "db", Node: "a", Host: "a", Machine: "m", Boot: "b", Token: 41}
	agent := func(options map[string]string) fencing.FenceAgent {
		return fencing.FenceAgent{Command: []string{"fence_dummy"}, Options: options}
	}
	must.Report(t, agent(map[string]string{"type": "file", "status_file": state}).Fence(t.Context(), target))
	if text, err := os.ReadFile(state); err != nil || strings.TrimSpace(string(text)) != "off" {
		t.Errorf("the switch is %q, %v", text, err)
	}
	// One that cannot switch, and says so.
	if err := agent(map[string]string{"type": "fail", "power_timeout": "1"}).Fence(t.Context(), target); err == nil || !strings.Contains(err.Error(), "Timed out waiting to power OFF") {
		t.Error(err)
	}
	// One that cannot switch, and says nothing for a long time.
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("no answer within 2s"))
	defer cancel()
	if err := agent(map[string]string{"type": "fail"}).Fence(ctx, target); err == nil || !strings.Contains(err.Error(), "no answer within 2s") {
		t.Error(err)
	}
}
