package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/testbed/must"
)

const statusOfCaps = `grep -e CapInh -e CapPrm -e CapEff -e CapBnd -e CapAmb -e NoNewPrivs /proc/self/status | tr -d " \t"`

// caps is what statusOfCaps prints.
func caps(inheritable, permitted, effective, bounding, ambient uint64, noNewPrivs int) string {
	return fmt.Sprintf("CapInh:%016x\nCapPrm:%016x\nCapEff:%016x\nCapBnd:%016x\nCapAmb:%016x\nNoNewPrivs:%d",
		inheritable, permitted, effective, bounding, ambient, noNewPrivs)
}

func asNobody() *inside.Credential { return &inside.Credential{UID: 65534, GID: 65534, Name: "nobody"} }

func TestProgramHasTheCapabilitiesThatItIsGivenAndNoMore(t *testing.T) {
	const (
		bind, chown = 1 << unix.CAP_NET_BIND_SERVICE, 1 << unix.CAP_CHOWN
		both        = uint64(bind | chown)
	)
	kindsInTurn(t, func(t *testing.T, kind string) {
		need.These(t, "root")
		tree := planted(t, guarded(t, kind))
		before := ofThis(t, "CapEff") + ofThis(t, "CapBnd") + ofThis(t, "CapAmb") + ofThis(t, "NoNewPrivs")
		var all, inh uint64
		if _, err := fmt.Sscanf(strings.ReplaceAll(ofThis(t, "CapBnd")+" "+ofThis(t, "CapInh"), ":", " "), "CapBnd %x CapInh %x", &all, &inh); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			inside.Settings
			want string
		}{
			"as the supervisor":  {inside.Settings{Umask: new(uint32(0o22))}, caps(inh, all, all, all, 0, 0)},
			"no new privileges":  {inside.Settings{NoNewPrivs: true}, caps(inh, all, all, all, 0, 1)},
			"root, bounded":      {inside.Settings{Capabilities: &inside.Capabilities{Bounding: new(both)}}, caps(inh&both, both, both, both, 0, 0)},
			"root, nothing":      {inside.Settings{Capabilities: &inside.Capabilities{Bounding: new(uint64(0))}, NoNewPrivs: true}, caps(0, 0, 0, 0, 0, 1)},
			"a user":             {inside.Settings{Credential: asNobody(), Capabilities: &inside.Capabilities{Bounding: new(both)}}, caps(inh&both, 0, 0, both, 0, 0)},
			"a user, unbounded":  {inside.Settings{Credential: asNobody(), Capabilities: &inside.Capabilities{Ambient: bind}}, caps(bind, bind, bind, all, bind, 0)},
			"a user with rights": {inside.Settings{Credential: asNobody(), Capabilities: &inside.Capabilities{Bounding: new(both), Ambient: bind}, NoNewPrivs: true}, caps(bind, bind, bind, both, bind, 1)},
			"a user, only that":  {inside.Settings{Credential: asNobody(), Capabilities: &inside.Capabilities{Bounding: new(uint64(bind)), Ambient: bind}}, caps(bind, bind, bind, bind, bind, 0)},
		} {
			if got := says(t, tree, Spec{Settings: c.Settings}, statusOfCaps); got != c.want {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
			}
		}
		if after := ofThis(t, "CapEff") + ofThis(t, "CapBnd") + ofThis(t, "CapAmb") + ofThis(t, "NoNewPrivs"); after != before {
			t.Errorf("the supervisor had %s, has %s", before, after)
		}
	})
}

// A program that belongs to root and is setuid is how a user becomes root. A bounded one becomes root without root's rights.
func TestSetuidProgramGivesNothingThatIsForbidden(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		need.These(t, "root")
		dir, err := os.MkdirTemp("/var/tmp", "understudy-setuid-") // where users come, and no mount forbids it
		must.OK(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		reader := filepath.Join(dir, "cat")
		cat, err := exec.LookPath("cat")
		must.OK(t, err)
		raw, err := os.ReadFile(cat)
		must.OK(t, err)
		for _, err := range []error{os.Chmod(dir, 0o755), os.WriteFile(reader, raw, 0o755), os.Chmod(reader, 0o755|os.ModeSetuid)} {
			must.OK(t, err)
		}
		tree := planted(t, guarded(t, kind))
		uidAndCaps := func(s inside.Settings) []string {
			s.Credential = asNobody()
			status := says(t, tree, Spec{Settings: s}, reader+" /proc/self/status")
			var euid, eff string
			for line := range strings.Lines(status) {
				switch f := strings.Fields(line); f[0] {
				case "Uid:":
					euid = f[2]
				case "CapEff:":
					eff = f[1]
				}
			}
			return []string{euid, eff}
		}
		const none = "0000000000000000"
		if got := uidAndCaps(inside.Settings{}); got[0] != "0" || got[1] == none {
			t.Fatalf("a setuid program gives nothing here anyway: %v", got)
		}
		if got := uidAndCaps(inside.Settings{NoNewPrivs: true}); !slices.Equal(got, []string{"65534", none}) {
			t.Errorf("with no_new_privileges: %v", got)
		}
		if got := uidAndCaps(inside.Settings{Capabilities: &inside.Capabilities{Bounding: new(uint64(0))}}); !slices.Equal(got, []string{"0", none}) {
			t.Errorf("with nothing in the bounding set: %v", got)
		}
	})
}

// What a root program can still do without any capability, since files and processes are root's; and what another user cannot.
func TestBoundedRootIsStillRootsUser(t *testing.T) {
	need.These(t, "root")
	out := outside(t)
	tree := planted(t, guarded(t, box.KindCgroup))
	none := &inside.Capabilities{Bounding: new(uint64(0))}
	script := fmt.Sprintf(`tried() { "$@" >/dev/null 2>&1 && echo yes || echo no; }
		tried sh -c 'echo 0 >%s/cgroup.procs'; tried test -w /etc/shadow; tried kill -0 %d; tried cat /proc/%d/environ`, out, os.Getpid(), os.Getpid())
	for name, c := range map[string]struct {
		inside.Settings
		want string
	}{
		"root":             {inside.Settings{}, "yes yes yes yes"},
		"bounded root":     {inside.Settings{Capabilities: none}, "yes yes yes no"},
		"a bounded nobody": {inside.Settings{Credential: asNobody(), Capabilities: none}, "no no no no"},
	} {
		if got := says(t, tree, Spec{Settings: c.Settings}, script); strings.Join(strings.Fields(got), " ") != c.want {
			t.Errorf("%s: %q, not %s", name, got, c.want)
		}
	}
}
