package config

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inTheDocs are the examples in README and docs. Those that are indented, or have a key of `replicated`, are parts of a service.
func inTheDocs(t *testing.T) (examples []string) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			src := block[1]
			if strings.HasPrefix(src, "#") || strings.Contains(src, "include:") || strings.HasPrefix(src, "scrape_configs:") { // Prometheus's
				continue
			}
			if strings.HasPrefix(src, "seen_by:") {
				src = "    replicated:\n      address: 192.0.2.1\n      role: [r]\n      position: [p]\n      promote: [p]\n      follow: [f]\n      " + src
			}
			if strings.HasPrefix(src, "    ") {
				src = "services:\n  s:\n    command: x\n" + src
			}
			if !strings.Contains(src, "services:") {
				src += "services: {}\n"
			}
			if !strings.Contains(src, "zookeeper:") {
				src = head + src
			}
			examples = append(examples, src)
		}
	}
	return examples
}

func TestExamplesInTheDocsLoad(t *testing.T) {
	all := inTheDocs(t)
	for _, src := range all {
		r := newLoader("u.yaml", host).load([]byte(src))
		if err := r.Err(); err != nil {
			t.Errorf("%v\n%s", err, src)
		}
		for _, w := range r.Warnings {
			if strings.Contains(w.String(), ".undone: ") {
				t.Errorf("%v\n%s", w, src)
			}
		}
	}
	if len(all) < 15 {
		t.Errorf("only %d examples", len(all))
	}
}

// P2: what our recipes ask whether something is mounted says so by the kernel's list alone, and that it does not know if it cannot read that.
func TestTheRecipesKnowWhenTheyDoNotKnow(t *testing.T) {
	names, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := inTheDocs(t)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	n := 0
	for _, src := range all {
		cfg, err := load(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range cfg.Services {
			for _, process := range s.Processes {
				if len(process.Undone) > 0 {
					n++
					tellsByMountinfo(t, process.Undone, process.Undo[len(process.Undo)-1])
				}
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d recipes", n)
	}
}

// tellsByMountinfo asks a recipe with every awk that is here.
func tellsByMountinfo(t *testing.T, undone Command, directory string) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "mountinfo")
	const none, root, mounted = "no list", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", "97 22 8:16 / %s rw,relatime shared:55 - xfs /dev/vdb rw\n"
	for _, awk := range []string{"awk", "mawk", "gawk"} {
		if _, err := exec.LookPath(awk); err != nil {
			continue
		}
		argv := slices.Clone(undone)
		if argv[0], argv[len(argv)-1] = awk, list; undone[0] != "awk" || undone[len(undone)-1] != "/proc/self/mountinfo" {
			t.Errorf("%q reads no mountinfo", undone)
			return
		}
		ask := func(text string) (code int, complaint string) {
			if text == none {
				_ = os.Remove(list) // it may be gone already
			} else if err := os.WriteFile(list, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stderr = &said
			_ = cmd.Run() // its exit code is the answer
			return cmd.ProcessState.ExitCode(), said.String()
		}
		for text, want := range map[string]int{
			root: 0, root + fmt.Sprintf(mounted, directory): 1, fmt.Sprintf(mounted, directory) + root: 1, root + fmt.Sprintf(mounted, directory+"2"): 0,
		} {
			if code, said := ask(text); code != want || said != "" {
				t.Errorf("%s: %q with %q: exit code %d, %s", awk, undone, text, code, said)
			}
		}
		for _, text := range []string{none, ""} {
			if code, said := ask(text); code < 2 && said == "" {
				t.Errorf("%s: %q with %s: exit code %d", awk, undone, text, code)
			}
		}
	}
}
