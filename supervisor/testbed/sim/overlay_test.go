package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// change replaces a piece of a file that occurs there exactly once.
type change struct{ file, old, new string }

// patch is changes of files below a folder.
type patch struct {
	root    string
	changes []change
}

// apply adds the changed files to text.
func (p patch) apply(text map[string]string) error {
	for _, c := range p.changes {
		path := filepath.Join(p.root, c.file)
		if _, ok := text[path]; !ok {
			whole, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[path] = string(whole)
		}
		if n := strings.Count(text[path], c.old); n != 1 {
			return fmt.Errorf("%s: what is to be replaced is there %d times; the change has to be fitted to the code:\n%s", c.file, n, c.old)
		}
		text[path] = strings.Replace(text[path], c.old, c.new, 1)
	}
	return nil
}

// overlaid makes the test binary of this package with patches laid over what it is made of.
func overlaid(ctx context.Context, dir string, patches ...patch) (exe string, err error) {
	text := map[string]string{}
	for _, p := range patches {
		if err := p.apply(text); err != nil {
			return "", err
		}
	}
	replace := map[string]string{}
	for path, whole := range text {
		laid := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "_"))
		if err := os.WriteFile(laid, []byte(whole), 0o600); err != nil {
			return "", err
		}
		replace[path] = laid
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	exe = filepath.Join(dir, "overlaid.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", file, "-o", exe, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build: %w", err), errors.New(string(out)))
	}
	return exe, nil
}

const roll = `func (b *synctestBubble) roll() uint64 {
	b.dice += 0x9e3779b97f4a7c15
	z := b.dice
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

`

// loadedDice makes the runtime draw from numbers that are the same in each run, where it draws inside a bubble: which ready
// case a select takes, where the walk of a map begins, which of two timers of one instant fires first, math/rand.
var loadedDice = []change{
	{"synctest.go", "type synctestBubble struct {\n", roll + "type synctestBubble struct {\n	dice    uint64\n"},
	{"select.go", "		j := cheaprandn(uint32(norder + 1))\n",
		"		var j uint32\n		if b := getg().bubble; b != nil {\n			j = uint32(b.roll() % uint64(norder+1))\n		} else {\n" +
			"			j = cheaprandn(uint32(norder + 1))\n		}\n"},
	{"time.go", "			t.rand = cheaprand()\n",
		"			if b := getg().bubble; b != nil {\n				t.rand = uint32(b.roll())\n			} else {\n				t.rand = cheaprand()\n			}\n"},
	{"rand.go", "func rand() uint64 {\n", "func rand() uint64 {\n	if b := getg().bubble; b != nil {\n		return b.roll()\n	}\n"},
	// Who is woken runs next in half of the cases only, as with -race: on more than one processor no order is sure.
	{"proc.go", "	if randomizeScheduler && next && randn(2) == 0 {\n		next = false\n	}\n",
		"	if b := gp.bubble; b != nil && next && b.roll()%2 == 0 {\n		next = false\n	}\n"},
	// On a busy machine whoever runs for long, or is in a call of the kernel, would be made to yield to others.
	{"proc.go", "func retake(now int64) uint32 {\n", "func retake(now int64) uint32 {\n	if gomaxprocs == 1 {\n		return 0\n	}\n"},
	// Who has waited for a mutex for a millisecond of real time, as on a busy machine, is let ahead of others.
	{"../internal/sync/mutex.go", "	starvationThresholdNs = 1e6\n", "	starvationThresholdNs = 1e18\n"},
	// The others only save time.
	{"synctest.go", "	lock(&bubble.mu)\n	bubble.total += totalDelta\n", "	if gomaxprocs > 1 {\n		lock(&bubble.mu)\n	}\n	bubble.total += totalDelta\n"},
	{"synctest.go", "	wake := bubble.maybeWakeLocked()\n	unlock(&bubble.mu)\n	if wake != nil {\n		goready(wake, 0)\n	}\n}\n\n// incActive", "	wake := bubble.maybeWakeLocked()\n	if gomaxprocs > 1 {\n		unlock(&bubble.mu)\n	}\n	if wake != nil {\n		goready(wake, 0)\n	}\n}\n\n// incActive"},
	{"stack.go", "var startingStackSize uint32 = fixedStack\n", "var startingStackSize uint32 = 8192\n"},
	{"stack.go", "	if debug.adaptivestackstart == 0 {\n		return\n	}\n", "	if debug.adaptivestackstart >= 0 {\n		return\n	}\n"},
	{"proc.go", "func wakep() {\n", "func wakep() {\n	if gomaxprocs == 1 {\n		return // there is no other P to wake\n	}\n"},
	{"rand.go", "	globalRand.state.Init(*seed)\n", "	clear(seed[:]) // the keys of hashes\n	globalRand.state.Init(*seed)\n"},
}

// repeatable is a test binary whose runs of one seed are the same nearly to the last event. Where it cannot be built, as
// with a Go that it was not fitted to, this binary has to do.
func repeatable(t *testing.T, exact bool) string {
	t.Helper()
	if !exact {
		return os.Args[0]
	}
	dice, err := loadDice(t.Context())
	if err == nil {
		var exe string
		if exe, err = overlaid(t.Context(), t.TempDir(), dice); err == nil {
			return exe
		}
	}
	t.Logf("runs will not repeat exactly: %v", err)
	return os.Args[0]
}

func loadDice(ctx context.Context) (patch, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	return patch{root: filepath.Join(strings.TrimSpace(string(root)), "src/runtime"), changes: loadedDice}, err
}
