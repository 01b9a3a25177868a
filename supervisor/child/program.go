package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"understudy/supervisor/child/inside"
)

// files are the program's input, output and error output. closeIn is to be called after the fork.
func (s Spec) files() (all [3]*os.File, closeIn func(), err error) {
	all, closeIn = [3]*os.File{s.Stdin, s.Stdout, s.Stderr}, func() {}
	if s.Stdin == nil {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return all, closeIn, err
		}
		all[0], closeIn = null, func() { _ = null.Close() }
	}
	if s.Stdout == nil {
		all[1] = os.Stdout
	}
	if s.Stderr == nil {
		all[2] = os.Stderr
	}
	return all, closeIn, nil
}

// directory is the program's working directory, whatever its stub's is: by default the supervisor's, or, for another user, who
// may not be able to enter that, a service's usual one.
func (s Spec) directory() string {
	if s.Dir == "" && s.Credential != nil {
		return "/"
	}
	if here, err := os.Getwd(); s.Dir == "" && err == nil {
		return here
	}
	return s.Dir
}

// environment is the program's environment, with every name once.
func (s Spec) environment() []string {
	var kept []string
	seen := make(map[string]bool, len(s.Env))
	for _, entry := range slices.Backward(s.Env) {
		if name, _, ok := strings.Cut(entry, "="); ok && !seen[name] {
			seen[name] = true
			kept = append(kept, entry)
		}
	}
	slices.Reverse(kept)
	return kept
}

// resolve finds the program as a shell would: along the PATH of the environment it is going to have.
func (s Spec) resolve() (*inside.Program, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, fmt.Errorf("%w: no command", inside.ErrNotFound)
	}
	prog := &inside.Program{Path: s.Argv[0], Argv: s.Argv, Dir: s.directory(), Env: s.environment(), Settings: s.Settings.AsStarted()}
	if err := prog.Check(); err != nil {
		return nil, err
	}
	if prog.Path == inside.OwnBinary {
		prog.Argv = append([]string{"understudy"}, s.Argv[1:]...) // its name in ps
	}
	if strings.Contains(prog.Path, "/") {
		if s.Dir == "" && prog.Dir != "" { // relative to where the supervisor is
			if at, err := filepath.Abs(prog.Path); err == nil {
				prog.Path = at
			}
		}
		at := prog.Path
		if !filepath.IsAbs(at) {
			at = filepath.Join(s.Dir, at)
		}
		return prog, executable(at)
	}
	path := os.Getenv("PATH")
	for _, entry := range prog.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	fault := fmt.Errorf("%w: %s is not in PATH", inside.ErrNotFound, prog.Path)
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, s.Argv[0])
		err := executable(at)
		if err == nil {
			prog.Path = at
			return prog, nil
		}
		if errors.Is(err, inside.ErrNotExecutable) {
			fault = err
		}
	}
	return nil, fault
}

func executable(at string) error {
	info, err := os.Stat(at)
	if err == nil && info.IsDir() {
		return fmt.Errorf("%w: %s is a directory", inside.ErrNotExecutable, at)
	}
	if err == nil && info.Mode()&0o111 == 0 {
		return fmt.Errorf("%w: %s", inside.ErrNotExecutable, at)
	}
	return inside.StartFault(err)
}
