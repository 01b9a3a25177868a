package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"understudy/supervisor/address"
)

// HasAddress reports whether LacksDevice looks at any device.
func (s Service) HasAddress() bool {
	return slices.ContainsFunc(s.Processes, func(p Process) bool { return p.Sets != nil })
}

// LacksDevice is why an address of the service could not be set on this machine now; nil: nothing is known to be missing. Of one that does
// not stand first the device may be there, or be up, only once what is before it runs.
func (s Service) LacksDevice() error {
	first := true
	for _, p := range s.Processes {
		first = first && (p.Sets != nil || p.Keeps)
		if p.Sets == nil {
			continue
		}
		a := address.Address{Prefix: p.Sets.IP.Prefix(), Device: p.Sets.Device}
		lacks := a.Unplugged
		if first {
			lacks = a.Lacks
		}
		if err := lacks(); err != nil {
			return fmt.Errorf("%s: %w", p.Sets.IP.Addr(), err)
		}
	}
	return nil
}

// Lacks is why a service could not be started and promoted on this machine now; nil: nothing is known to be missing. Of several programs
// only the first is looked at: what the others and the service's commands need may be there only once that runs, as a file system that it
// mounts.
func (s Service) Lacks() error {
	if len(s.Processes) == 0 || len(s.Processes[0].Command) == 0 {
		return nil
	}
	g := s.Processes[0].Program
	if err := missing(g.Command, g); err != nil {
		return err
	}
	if !known(g.User, user.Lookup) {
		return fmt.Errorf("there is no user %s", g.User)
	}
	if !known(g.Group, user.LookupGroup) {
		return fmt.Errorf("there is no group %s", g.Group)
	}
	if g.WorkingDir != "" {
		if info, err := os.Stat(g.WorkingDir); err != nil {
			return fmt.Errorf("working_dir %s: %w", g.WorkingDir, reason(err))
		} else if !info.IsDir() {
			return fmt.Errorf("working_dir %s is not a directory", g.WorkingDir)
		}
	}
	if err := g.Log.Folder(); err != nil {
		return err
	}
	if g.EnvFile != "" {
		if _, err := os.Stat(g.EnvFile); err != nil {
			return fmt.Errorf("env_file %s: %w", g.EnvFile, reason(err))
		}
	}
	if len(s.Processes) > 1 {
		return nil
	}
	for _, c := range s.promoting() {
		if err := missing(c.command, g); err != nil {
			return fmt.Errorf("%s: %w", c.key, err)
		}
	}
	return nil
}

// missing is why a command cannot be run; nil: it can, as far as is known, or there is none.
func missing(words Command, g Program) error {
	if len(words) == 0 {
		return nil
	}
	if err := runnable(words[0], g); err != nil && !errors.Is(err, exec.ErrDot) {
		return fmt.Errorf("%s%w%s", words[0], err, mistaken(words[0]))
	}
	return nil
}

// promoting are the commands without which the service would not become active here, though its program starts.
func (s Service) promoting() []keyedCommand {
	all := []keyedCommand{{"ready", s.Processes[0].Ready.Exec}, {"health", s.Health.Exec}, {"hooks.on_active", s.Hooks.OnActive.Command}}
	if s.Replicated != nil {
		all = append(all, keyedCommand{"role", s.Replicated.Role}, keyedCommand{"promote", s.Promotes().Exec})
	}
	return all
}

// logFolder is the only folder in which others are made for log files: elsewhere a missing one may be a slip, or a file system that is not
// mounted.
const logFolder = "/var/log/understudy"

// Folder fails if the folder of a log file is missing and is not made.
func (log LogFile) Folder() error {
	dir := filepath.Dir(log.File)
	if log.File == "" || dir == logFolder || strings.HasPrefix(dir, logFolder+"/") {
		return nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("log.file: there is no folder %s: create it, or use %s", dir, logFolder)
	}
	return nil
}

// known reports whether an account is there, or cannot be looked up now, which is no proof that it is missing.
func known[T any](name string, lookup func(string) (T, error)) bool {
	if name == "" {
		return true
	}
	if _, err := strconv.ParseUint(name, 10, 32); err == nil {
		return true // a number needs no entry
	}
	_, err := lookup(name)
	_, noUser := errors.AsType[user.UnknownUserError](err)
	_, noGroup := errors.AsType[user.UnknownGroupError](err)
	return !noUser && !noGroup
}
