package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// runs tells which file a process runs.
func runs(pid int) string {
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return exe
}

// An upgrade goes on as the file that is where the supervisor was started from, whether the old one was renamed, or a link leads to
// another one by now.
func TestAnUpgradeTakesWhatIsInPlaceOfTheBinary(t *testing.T) {
	for name, c := range map[string]struct {
		byLink bool
		swap   func(t *testing.T, b kit.Binary) (is string)
	}{
		"the old one is renamed": {false, func(t *testing.T, b kit.Binary) string {
			must.OK(t, os.Rename(string(b), string(b)+".old"))
			b.Replace(t, kit.UnderstudyBinary(t))
			return string(b)
		}},
		"the old one is linked elsewhere": {false, func(t *testing.T, b kit.Binary) string {
			must.OK(t, os.Link(string(b), string(b)+".old"))
			b.Replace(t, kit.UnderstudyBinary(t))
			return string(b)
		}},
		"a link leads to another version": {true, func(t *testing.T, b kit.Binary) string {
			next := kit.Binary(filepath.Join(t.TempDir(), "understudy-2"))
			next.Replace(t, kit.UnderstudyBinary(t))
			must.OK(t, os.Symlink(string(next), string(b)+"~"))
			must.OK(t, os.Rename(string(b)+"~", string(b)))
			return string(next)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, how := range []string{"reexec", "SIGUSR2"} {
				t.Run(how, func(t *testing.T) {
					p, b := newPlay(t, stage(t)), kit.Install(t)
					if c.byLink {
						must.OK(t, os.Rename(string(b), string(b)+"-1"))
						must.OK(t, os.Symlink(string(b)+"-1", string(b)))
					}
					p.Options.Binary = string(b)
					a, run := p.Active(t, p.Lab.Host(t, "a"))
					want := c.swap(t, b)
					if how == "reexec" {
						if r := rootReexec(t, b); r.Code != 0 { // it finds the supervisor
							t.Fatalf("reexec ended with %d: %s", r.Code, r.Out)
						}
					} else {
						a.Signal(syscall.SIGUSR2)
					}
					kit.Until(t, soon, want+" runs", func() bool { return runs(a.Pid) == want })
					p.Untouched(t, run)
				})
			}
		})
	}
}
