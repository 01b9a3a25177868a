package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// P2: what a node did is undone by the version that runs there, whatever is in place of its binary by now, and whichever version did it.
func TestWhatIsInPlaceOfTheBinaryKeepsNothingFromBeingUndone(t *testing.T) {
	refused := func(t *testing.T, s *kit.Supervisor) {
		s.Signal(syscall.SIGUSR2)
		kit.Until(t, soon, "the upgrade is refused", func() bool { return s.Says("the upgrade is refused") || s.Says("the upgrade is cancelled") })
	}
	for name, spoil := range map[string]func(t *testing.T, b kit.Binary, s *kit.Supervisor){
		"gone": func(t *testing.T, b kit.Binary, _ *kit.Supervisor) { must.OK(t, os.Remove(string(b))) },
		"exits": func(t *testing.T, b kit.Binary, s *kit.Supervisor) {
			b.Replace(t, kit.Script(t, "exit 3"))
			refused(t, s)
		},
		"hangs": func(t *testing.T, b kit.Binary, s *kit.Supervisor) {
			b.Replace(t, kit.Script(t, "exec sleep 1000"))
			s.Signal(syscall.SIGUSR2)
		},
	} {
		for how, leave := range map[string]func(t *testing.T, s *scene){
			"switchover": func(t *testing.T, s *scene) { s.order(t, s.b, "switchover", s.Options.Service, "--to", "b") },
			"killed":     func(_ *testing.T, s *scene) { s.first.Kill9() },
			"killed with its guardians": func(t *testing.T, s *scene) {
				kit.Signal(syscall.SIGKILL, append(s.first.TwoGuardians(t), s.first.Pid)...)
				<-s.first.Ended()
				s.run(t, s.a, kit.UnderstudyBinary(t))
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := newScene(t)
				installed := kit.Install(t)
				s.first = s.run(t, s.a, string(installed))
				s.Role(t, "a", "active")
				kit.Until(t, soon, "a has the address", func() bool { return s.has(s.a) })
				s.run(t, s.b, kit.UnderstudyBinary(t))
				s.Role(t, "b", "standby")
				spoil(t, installed, s.first)
				leave(t, s)
				kit.Until(t, soon, "a has undone it, and one node does it again", func() bool { return strings.HasPrefix(s.diary.text(), "+a -a +") })
				again := s.diary.lines()[2] == "+a" // of its next supervisor and the standby, either may be quicker
				kit.Until(t, soon, "that node has the address", func() bool { return s.has(s.a) == again && s.has(s.b) != again })
			})
		}
	}
}

// scene is a service with an OCF resource and an address.
type scene struct {
	*play
	a, b    *kit.Host
	first   *kit.Supervisor
	diary   diary
	address string
}

func newScene(t *testing.T) *scene {
	s := &scene{play: brief(t, stage(t)), diary: newDiary(t)}
	s.a, s.b = s.Lab.Host(t, "a"), s.Lab.Host(t, "b")
	octets := strings.Split(s.a.Addr, ".")
	s.address = strings.Join([]string{octets[0], octets[1], "200", octets[3]}, ".") // other tests' hosts are in the same network
	root := t.TempDir()
	t.Setenv("OCF_ROOT", root)
	dir := filepath.Join(root, "resource.d", "test")
	must.OK(t, os.MkdirAll(dir, 0o755))
	must.OK(t, os.WriteFile(filepath.Join(dir, "Agent"), fmt.Appendf(nil, `#!/bin/sh
there=%[2]s/there-$UNDERSTUDY_NODE
case $1 in
start) echo "+$UNDERSTUDY_NODE" >>%[1]s; touch $there;;
stop) [ ! -e $there ] || { echo "-$UNDERSTUDY_NODE" >>%[1]s; rm -f $there; };;
monitor) [ -e $there ] || exit 7;;
esac
`, s.diary, root), 0o755))
	return s
}

func (s *scene) has(h *kit.Host) bool {
	out, _ := h.Command("ip", "-o", "addr", "show", "dev", "eth0").Output()
	return strings.Contains(string(out), s.address+"/")
}

func (s *scene) run(t *testing.T, h *kit.Host, binary string) *kit.Supervisor {
	one := h.UnderstudyAt(t, binary, "run", "--config", s.Config(t, h, "", "restart: {rejoin_after: 1h}", "processes:",
		"  - {name: fs, ocf: 'test:Agent'}", fmt.Sprintf("  - {name: ip, address: {ip: %s/32, device: eth0}}", s.address),
		`  - {name: web, command: [sleep, "1000"]}`))
	s.Started = append(s.Started, one)
	return one
}
