package config

import (
	"os"
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

// P2: our recipes leave it to the table of mounts whether something is mounted (package mount), and not to a command, which may fail to look.
func TestTheRecipesMountWithoutCommands(t *testing.T) {
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
	mounts := 0
	for _, src := range all {
		cfg, err := load(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range cfg.Services {
			for _, process := range s.Processes {
				if process.Mount != nil {
					mounts++
				}
				for _, word := range slices.Concat(process.Command, process.Undo, process.Undone) {
					if slices.Contains([]string{"mount", "umount", "mountpoint", "mountinfo"}, filepath.Base(word)) {
						t.Errorf("%s: %q", process.Name, word)
					}
				}
			}
		}
	}
	if mounts < 3 {
		t.Errorf("only %d recipes mount", mounts)
	}
}
