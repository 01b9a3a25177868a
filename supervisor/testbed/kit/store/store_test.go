package store

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
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

// A client counts only what the journal holds, and stops when its token is old.
func TestWhatIsAcknowledgedIsInTheJournal(t *testing.T) {
	s, journal := open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	defer l.Close()
	acks, err := os.Create(filepath.Join(t.TempDir(), "acks"))
	if err != nil {
		t.Fatal(err)
	}
	defer acks.Close()
	c := &Client{Addr: l.Addr().String(), Service: "a", Token: 3, Run: "r", Acks: acks, Every: time.Millisecond}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Write(ctx)
	}()
	kit.Until(t, 10*time.Second, "it writes", func() bool { return ReadAcks(acks.Name()) >= 20 })
	if _, err := s.take(Write{Service: "a", Token: 4, Run: "newer", N: 1}); err != nil {
		t.Fatal(err)
	}
	if <-done; ctx.Err() != nil {
		t.Error("it went on writing with an old token")
	}
	n := ReadAcks(acks.Name())
	writes, err := ReadJournal(journal)
	if err != nil || n < 20 {
		t.Fatalf("%d acknowledged, journal: %v", n, err)
	}
	var taken int64
	for _, w := range writes {
		if w.Run == "r" && w.Verdict == Taken {
			taken++
		}
	}
	if taken < n || writes[len(writes)-1].Verdict != Old {
		t.Errorf("%d acknowledged, %d taken, the last write was %+v", n, taken, writes[len(writes)-1])
	}
}
