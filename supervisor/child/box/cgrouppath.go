package box

import (
	"path/filepath"
	"slices"
	"strings"
)

// InRun looks in a /proc/<pid>/cgroup for the last two names of a run's path, which no other cgroup ever has.
func InRun(cgroups string, runs []string) bool {
	return slices.ContainsFunc(runs, func(path string) bool {
		cgroup, name := filepath.Split(path)
		return below(cgroups, "/"+filepath.Base(cgroup)+"/"+name+"/")
	})
}

// below reports whether a /proc/<pid>/cgroup goes through these names.
func below(cgroups, names string) bool {
	return strings.Contains(CgroupOf(cgroups)+"/", names)
}

// CgroupOf is the cgroup v2 path in a /proc/<pid>/cgroup.
func CgroupOf(cgroups string) string {
	for line := range strings.Lines(cgroups) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return at
		}
	}
	return ""
}
