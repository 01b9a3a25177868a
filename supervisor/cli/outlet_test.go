package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A reader that stands still holds up nobody. What was dropped is counted.
func TestWhoLogsDoesNotWaitForWhoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		o := newOutlet(out)
		o.dropped = func(n int) { fmt.Fprintf(o, "%d dropped\n", n) }
		line := strings.Repeat("x", 1023) + "\n"
		const many = 3000
		began := time.Now()
		for range many {
			if n, err := o.Write([]byte(line)); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
		}
		o.flush()
		if took := time.Since(began); took != lastWords {
			t.Errorf("it took %v, and the end waits for %v", took, lastWords)
		}
		kept := roomForLines / len(line)
		want := strings.Repeat(line, kept) + fmt.Sprintf("%d dropped\n", many-kept)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
			t.Errorf("%v, and %d bytes other than expected: %q", err, len(got), got[max(0, len(got)-60):])
		}
		began = time.Now()
		fmt.Fprint(o, "last\n")
		go func() { _, _ = in.Read(make([]byte, 10)) }()
		o.flush()
		if took := time.Since(began); took > 0 {
			t.Errorf("the end waits for %v although all is read", took)
		}
		_ = in.Close()
	})
}
