package unit

import (
	"os"
	"slices"

	"understudy/supervisor/child"
	"understudy/supervisor/child/journal"
)

// mark gives a program its own stream to the journal, with the service's name, if it would write through ours: otherwise its lines could
// look like the supervisor's. The caller calls release once the program has its output.
func mark(service string, spec *child.Spec) (release func(), err error) {
	release = func() {}
	var ours []**os.File
	for _, f := range []**os.File{&spec.Stdout, &spec.Stderr} {
		if *f != nil && journal.Is(*f) {
			ours = append(ours, f)
		}
	}
	if len(ours) == 0 {
		return release, nil
	}
	stream, err := journal.Open(service)
	if err != nil {
		return release, err
	}
	was := journal.Variable(*ours[0])
	for _, f := range ours {
		*f = stream
	}
	if i := slices.Index(spec.Env, was); i >= 0 { // unless its config sets another value
		spec.Env = slices.Clone(spec.Env)
		spec.Env[i] = journal.Variable(stream)
	}
	return func() { _ = stream.Close() }, nil
}
