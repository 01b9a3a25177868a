package box

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// maker names the process that makes trees' cgroups, so that a later one can find those whose supervisor is gone: pids are valid only
// within their namespace, and are used again.
func maker() (string, error) {
	host, err := Identity()
	if err != nil {
		return "", err
	}
	own, err := StatOf(os.Getpid())
	if err != nil {
		return "", err
	}
	return MakerName(host.PidNS, own.Pid, own.Start), nil
}

// MakerName names a supervisor by its pid, its start, and its PID namespace.
func MakerName(pidns uint64, pid int, start uint64) string {
	return fmt.Sprintf("p%d-%d-%d", pidns, pid, start)
}

var madeBy = regexp.MustCompile(`\.p(\d+)-(\d+)-(\d+)\.[0-9a-f]{12}$`)

// Sweep ends the processes of supervisors that were killed together with both their guardians, and removes the cgroups of their trees: P4.
// It ignores those of other PID namespaces. It returns those whose death was not proved when ctx ended.
func Sweep(ctx context.Context, base string, log hclog.Logger) (left []Orphan, err error) {
	all, err := orphans(base)
	if err != nil {
		return nil, fmt.Errorf("look for processes that earlier supervisors left: %w", err)
	}
	return EndAll(ctx, all, log), nil
}

// EndAll orders every death before it waits for any: a process that cannot be killed does not delay the others.
func EndAll(ctx context.Context, all []Orphan, log hclog.Logger) (left []Orphan) {
	cgroups := make([]*TreeCgroup, len(all))
	for i, o := range all {
		l, err := OpenTreeCgroup(o.Path, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its guardians have removed it just now
		}
		if err != nil { // P2: a cgroup that we cannot look at is not known to be dead
			log.Warn("cannot look at processes that an earlier supervisor left", "cgroup", filepath.Base(o.Path), "error", err)
			left = append(left, o)
			continue
		}
		l.Finds = true
		if dead, _ := l.Dead(); !dead {
			log.Warn("killing the processes that an earlier supervisor left", "cgroup", filepath.Base(o.Path))
		}
		_ = l.KillNow() // KillUntilDead repeats it, and looks
		cgroups[i] = l
	}
	for i, l := range cgroups {
		if l == nil {
			continue
		}
		if err := KillUntilDead(ctx, l, true); err != nil {
			left = append(left, all[i])
		}
		l.Close()
	}
	return left
}

// Orphan is a tree's cgroup whose supervisor is gone.
type Orphan struct {
	Path string
	name string // the part before the maker
	tag  string // of its service
}

// orphans lists the cgroups in base whose supervisors are gone.
func orphans(base string) (all []Orphan, err error) {
	host, err := Identity()
	if err != nil {
		return nil, err
	}
	own, err := maker()
	if err != nil {
		return nil, err
	}
	folder, err := os.Open(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, err := folder.Readdirnames(-1) // each service asks, and each has an entry
	if err != nil {
		return nil, err
	}
	supervised := map[string]bool{}
	for _, entry := range entries {
		if strings.Contains(entry, "."+own+".") {
			continue
		}
		m := madeBy.FindStringSubmatch(entry)
		if m == nil || m[1] != strconv.FormatUint(host.PidNS, 10) {
			continue
		}
		by := m[2] + "-" + m[3]
		lives, known := supervised[by]
		if !known {
			pid, _ := strconv.Atoi(m[2])
			start, _ := strconv.ParseUint(m[3], 10, 64)
			alive, err := (TreeID{Pid: pid, StartTime: start}).supervised()
			lives = alive || err != nil
			supervised[by] = lives
		}
		if lives {
			continue
		}
		o := Orphan{Path: filepath.Join(base, entry), name: strings.TrimSuffix(entry, m[0])}
		if t := tagged.FindStringSubmatch(o.name); t != nil {
			o.name, o.tag = strings.TrimSuffix(o.name, t[0]), t[1]
		}
		all = append(all, o)
	}
	return all, nil
}

var tagged = regexp.MustCompile(`\.s([0-9a-f]{16})$`)

// TagOf is a part of a tree's cgroup's name that only one service of one cluster has on this machine.
func TagOf(root, service string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", root, service)
	return fmt.Sprintf("%016x", h.Sum64())
}

// concerns reports whether it belongs to that service. In doubt, it does.
func (o Orphan) concerns(root, service string) bool {
	return o.tag == "" || o.tag == TagOf(root, service)
}
