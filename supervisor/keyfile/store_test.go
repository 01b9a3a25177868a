package keyfile

import (
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/testbed/must"
	"understudy/supervisor/wait"
)

func TestAStoreKeepsWhatWasGivenLast(t *testing.T) {
	s := &Store{Dir: t.TempDir() + "/made", Name: "x"}
	if _, err := s.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was saved: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		must.OK(t, s.Save([]byte(text)))
		if got, err := s.Load(); string(got) != text || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	must.Report(t, s.Save(nil))
	if _, err := s.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was removed: %v", err)
	}
}

// P6: nobody waits for a file system that hangs. What it is given meanwhile is there once it answers.
func TestAStoreThatHangsIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		s := &Store{Dir: dir, Name: "x", hangs: func() { <-answers }}
		began := time.Now()
		if _, err := s.Load(); !errors.Is(err, wait.ErrNoAnswer) {
			t.Errorf("load: %v", err)
		}
		for _, text := range []string{"one", "two", "three"} {
			if err := s.Save([]byte(text)); !errors.Is(err, wait.ErrNoAnswer) {
				t.Errorf("save: %v", err)
			}
		}
		if took := time.Since(began); took > 10*time.Second { // the first waits for all
			t.Errorf("it took %v", took)
		}
		close(answers)
		synctest.Wait()
		if got, err := s.Load(); string(got) != "three" || err != nil {
			t.Errorf("at last there is %q, %v", got, err)
		}
	})
}
