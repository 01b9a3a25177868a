package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"understudy/supervisor/e2e/kit"
)

// runs tells which file a process runs.
func runs(pid int) string {
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return exe
}

// An upgrade goes on as the file that is where the supervisor was started from, whether the old one was renamed, or a link leads to
// another one by now.
func TestAnUpgradeTakesWhatIsInPlaceOfTheBinary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		byLink bool
		swap   func(t *testing.T, b binary) (is string)
	}{
		"the old one is renamed": {false, func(t *testing.T, b binary) string {
			must(t, os.Rename(b.path, b.path+".old"))
			b.replace(t, kit.UnderstudyBinary(t))
			return b.path
		}},
		"the old one is linked elsewhere": {false, func(t *testing.T, b binary) string {
			must(t, os.Link(b.path, b.path+".old"))
			b.replace(t, kit.UnderstudyBinary(t))
			return b.path
		}},
		"a link leads to another version": {true, func(t *testing.T, b binary) string {
			next := binary{filepath.Join(t.TempDir(), "understudy-2")}
			next.replace(t, kit.UnderstudyBinary(t))
			must(t, os.Symlink(next.path, b.path+"~"))
			must(t, os.Rename(b.path+"~", b.path))
			return next.path
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, how := range []string{"reexec", "SIGUSR2"} {
				t.Run(how, func(t *testing.T) {
					p, b := newPlay(t, stage(t)), install(t)
					if c.byLink {
						must(t, os.Rename(b.path, b.path+"-1"))
						must(t, os.Symlink(b.path+"-1", b.path))
					}
					p.Options.Binary = b.path
					a, run := p.Active(t, p.Lab.Host(t, "a"))
					want := c.swap(t, b)
					if how == "reexec" {
						b.upgraded(t, a)
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
