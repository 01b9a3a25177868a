package child

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/testbed/hung"
	"understudy/supervisor/testbed/must"
)

// P6: a node that cannot start the program for that must not hold the service, and can be stopped.
func TestAStartThatHangsWithAFileSystemEnds(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		dir := t.TempDir()
		hung.Mount(t, dir)
		for name, spec := range map[string]Spec{
			"program":   {Argv: []string{filepath.Join(dir, "prog")}},
			"directory": {Argv: []string{"sleep", "1000"}, Dir: filepath.Join(dir, "d")},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			ended := make(chan error, 1)
			go func() {
				_, err := tree.Start(ctx, spec)
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(patience):
				t.Errorf("%s: it hangs", name)
			}
			cancel()
		}
		must.Report(t, tree.End(t.Context()))
	})
}
