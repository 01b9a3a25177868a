package replica

import (
	"errors"
	"io/fs"
	"testing"

	"understudy/supervisor/keyfile"
)

// What a copy has followed is found again by the next supervisor, and is nobody else's.
func TestWhatACopyHasFollowedIsKept(t *testing.T) {
	s := &keyfile.Store{Dir: t.TempDir(), Name: FileName("c", "n", "s"), Durable: true}
	none, err := load(s, "n", "s")
	if err != nil || none.Followed != 0 || none.Toward != 0 {
		t.Fatalf("%+v, %v", none, err)
	}
	kept := state{Node: "n", Service: "s", Era: 3, Followed: 7, Toward: 8, Position: 1 << 40}
	d := data{store: func() Store { return s }, news: func() {}}
	if err := d.keep(func(now *state) { *now = kept }); err != nil {
		t.Fatal(err)
	}
	if again, err := load(s, "n", "s"); err != nil || again != kept {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := load(s, "n", "other"); err == nil {
		t.Error("another service's state is taken")
	}
	if err := s.Save([]byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := load(s, "n", "s"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a broken state counts as none: %v", err)
	}
	if FileName("c", "n", "s") == FileName("c", "n", "t") || FileName("c", "n", "s") == FileName("d", "n", "s") || FileName("c", "m", "s") == FileName("c", "n", "s") {
		t.Error("two copies share a file")
	}
}
