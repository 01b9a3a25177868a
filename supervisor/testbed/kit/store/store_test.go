package store

import (
	"os"
	"path/filepath"
	"testing"
)

func open(t *testing.T) (s *Store, journal string) {
	t.Helper()
	journal = filepath.Join(t.TempDir(), "journal")
	f, err := os.Create(journal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return New(f), journal
}

func TestOldTokenIsRefusedOnceANewerOneWasSeen(t *testing.T) {
	s, journal := open(t)
	for i, c := range []struct {
		write Write
		want  Verdict
	}{
		{Write{Service: "a", Token: 5, Run: "x", N: 1}, Taken},
		{Write{Service: "a", Token: 5, Run: "x", N: 2}, Taken},
		{Write{Service: "a", Token: 5, Run: "x", N: 2}, Again},
		{Write{Service: "a", Token: 5, Run: "x", N: 1}, Again},
		{Write{Service: "a", Token: 9, Run: "y", N: 1}, Taken},
		{Write{Service: "a", Token: 5, Run: "x", N: 3}, Old},
		{Write{Service: "b", Token: 5, Run: "z", N: 1}, Taken},
		{Write{Service: "a", Token: 9, Run: "y", N: 3}, Broken},
	} {
		got, err := s.take(c.write)
		if err != nil || got != c.want {
			t.Errorf("write %d: %s, %v; want %s", i, got, err, c.want)
		}
	}
	writes, err := ReadJournal(journal)
	if err != nil || len(writes) != 8 || writes[5].Verdict != Old || writes[5].N != 3 {
		t.Errorf("the journal says %+v, %v", writes, err)
	}
}
