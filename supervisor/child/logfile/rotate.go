package logfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"understudy/supervisor/safefile"
)

// rotated is a file that once was the log.
type rotated struct {
	name   string
	number int
}

// rotatedFiles lists them, oldest first.
func (f *file) rotatedFiles(dir *safefile.Dir) ([]rotated, error) {
	entries, err := dir.List()
	if err != nil {
		return nil, err
	}
	var all []rotated
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), filepath.Base(f.path)+".")
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		if n, err := strconv.Atoi(rest); err == nil && n > 0 && strconv.Itoa(n) == rest {
			all = append(all, rotated{entry.Name(), n})
		}
	}
	slices.SortFunc(all, func(a, b rotated) int { return b.number - a.number })
	return all, nil
}

// name is what the log is called once it was put aside so many times.
func (f *file) name(number int) string { return filepath.Base(f.path) + "." + strconv.Itoa(number) }

// rotate moves everything on by one and begins a new file. It costs a few renames.
func (f *file) rotate() error {
	f.mu.Lock()
	who, keep := f.who, f.keep
	f.mu.Unlock()
	dir, name, err := safefile.DirOf(f.path, who)
	if err != nil {
		return err
	}
	defer dir.Close()
	all, err := f.rotatedFiles(dir)
	if err != nil {
		return err
	}
	for _, old := range all {
		if old.number >= keep {
			err = dir.Remove(old.name)
		} else {
			err = dir.Rename(old.name, f.name(old.number+1))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if keep > 0 {
		err = dir.Rename(name, f.name(1))
	} else {
		err = dir.Remove(name)
	}
	if err != nil {
		return err
	}
	if err := f.openIn(dir, name); err != nil {
		return fmt.Errorf("after it was moved away: %w", err) // what is still open takes the lines
	}
	return nil
}
