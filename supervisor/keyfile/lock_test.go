package keyfile

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"understudy/supervisor/testbed/must"
)

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	must.OK(t, err)
	for _, one := range all {
		names = append(names, one.Name())
	}
	return names
}

// A lock leaves no file behind, and still nobody has it twice.
func TestALockLeavesNothingBehind(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Name: "x"}
	var held, most atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			other := &Store{Dir: s.Dir, Name: "x"}
			for range 50 {
				unlock, err := other.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if n := held.Add(1); n > 1 {
					most.Store(n)
				}
				held.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	if most.Load() > 1 {
		t.Errorf("%d had the lock at once", most.Load())
	}
	if left := names(t, s.Dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	unlock, err := s.Lock(t.Context())
	must.OK(t, errors.Join(err, s.Save([]byte("owed"))))
	unlock()
	if left := names(t, s.Dir); !slices.Equal(left, []string{"x", "x.lock"}) {
		t.Errorf("with something owed: %q", left)
	}
}

func TestTheFirstOfThoseWhoShareAFileTellsTheOthers(t *testing.T) {
	dir := t.TempDir()
	share := func(words string) (string, func()) {
		t.Helper()
		first, release, err := (&Store{Dir: dir, Name: "x"}).Share(t.Context(), words)
		must.OK(t, err)
		return string(first), release
	}
	one, leaveOne := share("one")
	two, leaveTwo := share("two")
	leaveOne()
	three, leaveThree := share("three")
	leaveTwo()
	leaveThree()
	if one != "" || two != "one" || three != "one" {
		t.Errorf("%q, %q, %q", one, two, three)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if again, leave := share("a"); again != "" {
		t.Errorf("after all have left: %q", again)
	} else {
		leave()
	}
}

// However many come at once, one of them is the first.
func TestOneOfThoseWhoShareAFileIsTheFirst(t *testing.T) {
	dir := t.TempDir()
	for range 20 {
		var firsts atomic.Int32
		var all sync.WaitGroup
		var leave []func()
		var mu sync.Mutex
		for i := range 8 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first, release, err := (&Store{Dir: dir, Name: "x"}).Share(ctx, string(rune('a'+i)))
				if err != nil {
					t.Error(err)
					return
				}
				if first == nil {
					firsts.Add(1)
				}
				mu.Lock()
				leave = append(leave, release)
				mu.Unlock()
			})
		}
		all.Wait()
		for _, one := range leave {
			one()
		}
		if firsts.Load() != 1 {
			t.Fatalf("%d were the first", firsts.Load())
		}
	}
}
