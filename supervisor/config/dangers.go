package config

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"

	"understudy/supervisor/safefile"
	"understudy/supervisor/wait"
)

// Dangers are what others may do by a config: its warnings that tell of that, and, refused, what would let another user become root, as
// this process is: a config, a hook, a way of fencing, or the environment of a program of root, that somebody else can change. Without
// root that is told among the warnings. The files that are looked at may be on a file system that does not answer: no longer than patience.
func (r LoadResult) Dangers(patience time.Duration) (warnings, refused Faults, files map[string]bool) {
	if r.Config == nil {
		return nil, nil, nil
	}
	type looked struct {
		warnings, refused Faults
		files             map[string]bool
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := wait.Call(ctx, func() (looked, error) { // for as long as the file system hangs
		s := machineCheck{dangers: true, looked: map[string]bool{}}
		warnings, refused := r.look(s)
		return looked{warnings, refused, s.looked}, nil
	}, nil)
	warnings, refused = l.warnings, l.refused
	if err != nil {
		warnings = Faults{{
			File: r.Files.Config[0], Danger: true,
			Message: "a file system does not answer: it is unknown who can change or read the files that are named here",
		}}
	}
	if os.Geteuid() != 0 {
		warnings, refused = append(warnings, refused...), nil
	}
	return slices.DeleteFunc(slices.Concat(r.Warnings, warnings), func(f Fault) bool { return !f.Danger }), refused, l.files
}

// Refused is the result with dangers that are refused among its faults.
func (r LoadResult) Refused(refused Faults) LoadResult {
	if len(refused) > 0 {
		r.Faults, r.Config = refused, nil
	}
	return r
}

// files looks at who can change the files of the configuration.
func (s *machineCheck) files() {
	files := s.loader.files
	for i, name := range slices.Concat(files.Config, files.Dirs) {
		at := path{"include"}
		if i == 0 {
			at = path{}
		}
		s.own(at, name, safefile.Setting, true)
	}
}

// own looks at who can change a file, or read a secret; refuse: who can is root then.
func (s *machineCheck) own(p path, name string, use safefile.Purpose, refuse bool) {
	if name == "" {
		return
	}
	if s.looked != nil {
		s.looked[name] = true
	}
	if err := safefile.Own(name, use); err != nil {
		s.tell(p, err.Error(), refuse)
	}
}

func (s *machineCheck) tell(p path, message string, refuse bool) {
	same := func(f found) bool { return f.message == message }
	if slices.ContainsFunc(s.refused, same) || !refuse && slices.ContainsFunc(s.found, same) {
		return // of a directory in which much is, once is enough
	}
	to := &s.found
	if refuse {
		to = &s.refused
	}
	*to = append(*to, found{keys: []path{p}, message: message, danger: true})
}

// secretName is what a value is called that is a secret.
var secretName = regexp.MustCompile(`(?i)(passw(or)?d|secret|token|api[-_]?key|authorization)$`)

// inline looks at who can read the config in which a secret is written.
func (s *machineCheck) inline(p path, values map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] == "" || !secretName.MatchString(name) {
			continue
		}
		_, file, _ := s.loader.locate(found{keys: []path{p.key(name)}})
		if err := safefile.Own(file, safefile.Secret); err != nil {
			s.tell(p.key(name), "looks like a secret, in a file for all to read: "+err.Error(), false)
		}
	}
}

// asRoot tells whether a program runs as root where its supervisor does.
func asRoot(g Program) bool { return slices.Contains([]string{"", "root", "0"}, g.User) }
