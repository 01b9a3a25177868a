package unitfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// interpreters run one program as well as another: that two units have one in common says nothing.
var interpreters = regexp.MustCompile(`^(sh|dash|bash|zsh|env|java|node|perl|ruby|php|python)[0-9.]*$`)

// Rivals are the units of systemd that run a program, by its file: those that are enabled below root, and those that run.
func Rivals(root string) map[string]string {
	units := map[string]string{}
	add := func(file, unit string) {
		if file, err := filepath.EvalSymlinks(file); err == nil && !interpreters.MatchString(filepath.Base(file)) {
			units[file] = unit
		}
	}
	links, _ := filepath.Glob(filepath.Join(root, folders[0], "*.wants", "*.service")) // the pattern is well formed
	for _, link := range links {
		u, err := Load(root, filepath.Base(link))
		if err != nil || u.last("Type") == "oneshot" {
			continue // a link that leads nowhere, or nothing that stays
		}
		for _, line := range u.list("ExecStart") {
			r := parseRun(line)
			if len(r.argv) == 0 {
				continue
			}
			programs := Programs(Foreground(r.argv))
			if i := slices.Index(programs, "exec"); i >= 0 { // what a script runs before its program is no program of the unit
				programs = programs[i+1 : i+2]
			}
			if file, err := exec.LookPath(programs[0]); err == nil {
				add(file, u.Name)
			}
		}
	}
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range groups {
		text, err := os.ReadFile(file)
		unit := running.FindSubmatch(text)
		if err != nil || unit == nil {
			continue
		}
		if exe, err := os.Readlink(filepath.Join(filepath.Dir(file), "exe")); err == nil {
			add(exe, string(unit[1]))
		}
	}
	return units
}

// running is the cgroup of a process that systemd has started for a unit. What a supervisor has started is in a cgroup below its unit's.
var running = regexp.MustCompile(`(?m):/system\.slice/(?:[^/\n]*\.slice/)*([^/\n]+\.service)$`)
