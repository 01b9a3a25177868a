package logfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errFull = errors.New("no space left on device")

// taken empties the queue as a file does that can be written.
func taken(q *queue) string {
	var all strings.Builder
	var batch []byte
	q.close()
	for {
		next, more := q.next(batch)
		if !more {
			return all.String()
		}
		all.Write(next)
		batch = next
	}
}

func TestLostLinesAreWholeAndTold(t *testing.T) {
	q := newQueue(100)
	q.failing(errFull)
	for i := range 20 {
		q.put(fmt.Appendf(nil, "line %02d ...\n", i)) // 12 bytes: 8 fit
	}
	q.failing(nil)
	if got, want := taken(q), "understudy: 12 lines lost: no space left on device\n"; !strings.HasSuffix(got, "line 07 ...\n"+want) || strings.Count(got, "\n") != 9 {
		t.Errorf("%q", got)
	}
	if q.total != 12 {
		t.Errorf("%d lost", q.total)
	}
}

func TestLossIsToldWhereItIs(t *testing.T) {
	q := newQueue(200)
	q.failing(errFull)
	q.put([]byte(strings.Repeat("a", 150) + "\n"))
	q.put([]byte(strings.Repeat("b", 90) + "\n"))
	q.failing(nil)
	first, _ := q.next(nil)
	if string(first) != strings.Repeat("a", 150)+"\n" {
		t.Errorf("%q", first)
	}
	q.put([]byte("c\n"))
	if got, want := taken(q), "understudy: 1 line lost: no space left on device\nc\n"; got != want {
		t.Errorf("%q", got)
	}
}

// A line whose beginning is written already, and whose end is lost, gets an end; the rest of it does not turn up later.
func TestLineThatIsCutEndsAndIsCounted(t *testing.T) {
	q := newQueue(100)
	q.failing(errFull)
	q.put([]byte("begin"))
	q.put([]byte(strings.Repeat("m", 200)))
	q.put([]byte("rest\nwhole\n"))
	q.failing(nil)
	if got, want := taken(q), "begin\nunderstudy: 1 line lost: no space left on device\nwhole\n"; got != want {
		t.Errorf("%q", got)
	}
}

// Whatever the sizes: what comes out are lines that went in, in their order, and the told losses are exactly the rest.
func TestNothingGetsLostUntold(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := newQueue(256)
		q.failing(errFull)
		var out strings.Builder
		var stream []byte
		var lengths []int
		lines := 60
		for i := range lines {
			lengths = append(lengths, r.IntN(40))
			stream = fmt.Appendf(stream, "%d:%s\n", i, strings.Repeat("x", lengths[i]))
		}
		var batch []byte
		for len(stream) > 0 {
			n := min(len(stream), 1+r.IntN(90))
			q.put(stream[:n])
			stream = stream[n:]
			if r.IntN(4) == 0 && len(q.data) > 0 {
				batch, _ = q.next(batch)
				out.Write(batch)
			}
		}
		q.failing(nil)
		out.WriteString(taken(q))
		last, told, whole := -1, 0, 0
		for line := range strings.Lines(out.String()) {
			var n int
			if c, _ := fmt.Sscanf(line, "understudy: %d line", &n); c == 1 {
				told += n
				continue
			}
			number, rest, ok := strings.Cut(line, ":")
			if c, _ := fmt.Sscanf(number, "%d", &n); c != 1 || !ok || n <= last || len(rest) != lengths[n]+1 {
				t.Fatalf("seed %d: %q after %d in\n%s", seed, line, last, out.String())
			}
			last = n
			whole++
		}
		if whole+told != lines || uint64(told) != q.total {
			t.Fatalf("seed %d: %d there, %d told, of %d\n%s", seed, whole, told, lines, out.String())
		}
	}
}

// A file that is only slow is waited for, a little; one that stands still holds the program up once and not again.
func TestSlowFileIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(100)
		chunk := []byte(strings.Repeat("x", 59) + "\n")
		began := time.Now()
		q.put(chunk)
		go func() {
			time.Sleep(50 * time.Millisecond)
			_, _ = q.next(nil)
		}()
		q.put(chunk)
		if took := time.Since(began); took != 50*time.Millisecond || q.total != 0 {
			t.Errorf("%v, %d lost", took, q.total)
		}
		began = time.Now()
		for range 10 {
			q.put(chunk)
		}
		if took := time.Since(began); took != patience || q.total != 10 {
			t.Errorf("%v, %d lost", took, q.total)
		}
		q.failing(errFull)
		began = time.Now()
		q.put(chunk)
		q.failing(nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("%v for a file that cannot be written", took)
		}
		_, _ = q.next(nil)
		q.failing(errFull)
		began = time.Now()
		q.put(chunk)
		q.put(chunk)
		q.failing(nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("%v for a file that cannot be written", took)
		}
		_, _ = q.next(nil)
		began = time.Now()
		q.put(chunk[:10])
		q.put([]byte("\n"))
		q.put(chunk)
		q.put(chunk)
		if took := time.Since(began); took != patience {
			t.Errorf("after it went on: %v", took)
		}
	})
}
