package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const part = "services: {NAME: {command: x}}\n"

func TestIncludedServicesJoinThoseOfTheFile(t *testing.T) {
	dir := tree(t, map[string]string{
		"u.yaml": head + `include: ["conf.d/*.yaml", "conf.d/b.yaml", "teams/*/understudy.yaml", "none/*.yaml", "*.yaml"]
defaults: {env_file: /run/shared.env, nice: 3}
services: {own: {command: x, env_file: /run/own.env}}
`,
		"conf.d/a.yaml":           strings.ReplaceAll(part, "NAME", "a"),
		"conf.d/b.yaml":           strings.ReplaceAll(part, "NAME", "b"),
		"conf.d/.hidden.yaml":     "refused: if it were read",
		"conf.d/b.yaml.bak":       "refused: if it were read",
		"conf.d/c.yaml/d.yaml":    "refused: if it were read",
		"teams/x/understudy.yaml": strings.ReplaceAll(part, "NAME", "x"),
		"teams/y/understudy.yaml": strings.ReplaceAll(part, "NAME", "y"),
		"teams/z/other":           "",
		"teams/file":              "",
	})
	r := Read(filepath.Join(dir, "u.yaml"), "")
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "own", "x", "y"}, r.Config.ServiceNames()); diff != "" {
		t.Error(diff)
	}
	if nice := r.Config.Services["y"].Processes[0].Nice; nice == nil || *nice != 3 {
		t.Error("the defaults do not reach an included service")
	}
	in := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		return all
	}
	want := in("u.yaml", "conf.d/a.yaml", "conf.d/b.yaml", "teams/x/understudy.yaml", "teams/y/understudy.yaml")
	if diff := cmp.Diff(want, r.Files.Config); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/run/own.env", "/run/shared.env"}, r.Files.Env); diff != "" {
		t.Error(diff)
	}
	watch := in("", "conf.d", "none", "teams", "teams/x", "teams/y", "teams/z")
	if diff := cmp.Diff(watch, slices.Compact(slices.Sorted(slices.Values(r.Files.Dirs)))); diff != "" {
		t.Error(diff)
	}
}

func TestFilesAreKnownEvenWhenTheyAreFaulty(t *testing.T) {
	dir := tree(t, map[string]string{"u.yaml": head + "include: [gone.yaml, bad.yaml]\n", "bad.yaml": "services: {s: {comand: x}}\n"})
	r := Read(filepath.Join(dir, "u.yaml"), "")
	if r.Config != nil || len(r.Faults) < 2 {
		t.Fatalf("%v", r.Faults)
	}
	want := []string{filepath.Join(dir, "u.yaml"), filepath.Join(dir, "gone.yaml"), filepath.Join(dir, "bad.yaml")}
	if diff := cmp.Diff(want, r.Files.Config); diff != "" {
		t.Error(diff)
	}
	missing := Read(filepath.Join(dir, "none.yaml"), "")
	if diff := cmp.Diff([]string{filepath.Join(dir, "none.yaml")}, missing.Files.Config); diff != "" || missing.Err() == nil {
		t.Error(diff, missing.Err())
	}
}

func TestDirectoryOfTheFileIsNoGlob(t *testing.T) {
	dir := tree(t, map[string]string{"[odd]*/u.yaml": head + "include: [\"*.part\"]\n", "[odd]*/a.part": strings.ReplaceAll(part, "NAME", "a")})
	if _, err := loadFile(filepath.Join(dir, "[odd]*", "u.yaml")); err != nil {
		t.Error(err)
	}
}

func TestWhatIsReadOfAFileIsBounded(t *testing.T) {
	dir := tree(t, map[string]string{"huge.yaml": strings.Repeat("#", largestFile+1)})
	if _, err := loadFile(filepath.Join(dir, "huge.yaml")); err == nil || !strings.Contains(err.Error(), "cannot be read: it is larger than 1 MiB") {
		t.Error(err)
	}
}
