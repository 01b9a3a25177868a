package child

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/hashicorp/go-hclog"
)

// maker names the process that makes leaves, so that a later one can tell whose supervisor is no more: pids mean something
// within their namespace only, and are used again.
func maker() (string, error) {
	host, err := Identity()
	if err != nil {
		return "", err
	}
	own, err := statOf(os.Getpid())
	if err != nil {
		return "", err
	}
	return makerName(host.PidNS, own.pid, own.start), nil
}

func makerName(pidns uint64, pid int, start uint64) string {
	return fmt.Sprintf("p%d-%d-%d", pidns, pid, start)
}

var madeBy = regexp.MustCompile(`\.p(\d+)-(\d+)-(\d+)\.[0-9a-f]{12}$`)

// sweep ends what supervisors left behind that were killed together with both their guardians, and removes their leaves:
// P4. Those of other PID namespaces are not judged.
func sweep(ctx context.Context, base string, log hclog.Logger) error {
	host, err := Identity()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("look for what earlier supervisors left: %w", err)
	}
	for _, entry := range entries {
		m := madeBy.FindStringSubmatch(entry.Name())
		if m == nil || m[1] != strconv.FormatUint(host.PidNS, 10) {
			continue
		}
		pid, _ := strconv.Atoi(m[2])
		start, _ := strconv.ParseUint(m[3], 10, 64)
		if alive, err := (TreeID{Pid: pid, StartTime: start}).supervised(); alive || err != nil {
			continue
		}
		l, err := openLeaf(filepath.Join(base, entry.Name()), 0)
		if err != nil {
			continue // its guardians have removed it just now
		}
		dead, _ := l.dead()
		if !dead {
			log.Warn("ending what an earlier supervisor left behind", "cgroup", entry.Name())
		}
		err = slay(ctx, l, true)
		l.close()
		if err != nil {
			return fmt.Errorf("end what an earlier supervisor left behind: %w", err)
		}
	}
	return nil
}
