package onethread

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// All that use bubbles import this package, but for child: tests of it stop threads, so they need several, and its one bubble never has two
// timers.
func TestEachPackageWithBubblesRunsOneThread(t *testing.T) {
	imports := map[string][]string{} // by folder: of its tests
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			imports[filepath.Dir(path)] = append(imports[filepath.Dir(path)], strings.Trim(i.Path.Value, `"`))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	bubbles := 0
	for dir, all := range imports {
		if !slices.Contains(all, "testing/synctest") || dir == "../../supervisor/child" || dir == "../../packaging/onethread" {
			continue
		}
		if bubbles++; !slices.Contains(all, "understudy/packaging/onethread") {
			t.Errorf("%s uses bubbles, and its tests do not import understudy/packaging/onethread", strings.TrimPrefix(dir, "../../"))
		}
	}
	if bubbles < 10 {
		t.Errorf("%d packages with bubbles were found", bubbles)
	}
}

// It ends the test process if two threads run.
func TestTimersOfABubbleFireAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 40_000 {
					select {
					case <-time.After(0):
					case <-t.Context().Done():
					}
				}
			})
		}
		all.Wait()
	})
}
