package programs

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

// registers are kept by a replicated program, one number for each key. Several clients write and read them at once, wherever they are
// answered, and what they were answered has to be linearizable: as if each answered operation was done at one moment between question and
// answer, on one copy that never fails. A write without an answer may be done at any later moment, or never.
type registers struct {
	// swap writes a number, or what is there if it is 0, and returns what was there before. So each write shows that the one before it is
	// kept, and a read counts as a write does: once another copy has all that it saw.
	swap func(s watch.Store, key int, write int64) (int64, error)
	stop func()

	mu      sync.Mutex // guards what follows
	asked   int
	began   time.Time
	history map[int][]porcupine.Operation // of each key
}

const (
	registerClients = 3
	askedOfEach     = 1000          // writes go to the newest register, which is asked so often
	unanswered      = math.MaxInt64 // when a write was over that may be done at any later moment
)

// register is what one of them has to look like from outside.
var register = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, write, got any) (bool, any) {
		right := got == nil || got == state
		if write != int64(0) {
			state = write
		}
		return right, state
	},
	DescribeOperation: func(write, got any) string { return fmt.Sprintf("write %v, was %v", write, got) },
}

func newRegisters(swap func(s watch.Store, key int, write int64) (int64, error)) *registers {
	return &registers{swap: swap, stop: func() {}, began: time.Now(), history: map[int][]porcupine.Operation{}}
}

// use has clients of all copies write and read until stop is called, or the test ends.
func (r *registers) use(t *testing.T, dial func(addr string) (watch.Store, error), addrs ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for c := range registerClients {
		clients.Go(func() {
			again := time.NewTicker(20 * time.Millisecond)
			defer again.Stop()
			for i := c; ctx.Err() == nil; i++ {
				s, err := dial(addrs[i%len(addrs)])
				for err == nil && ctx.Err() == nil {
					<-again.C
					err = r.ask(c, s, rand.IntN)
				}
				if s != nil {
					s.Close()
				}
				<-again.C
			}
		})
	}
	r.stop = func() { cancel(); clients.Wait() }
	t.Cleanup(r.stop)
}

// ask does one operation: of each four two write, one reads the newest register, and one any of them.
func (r *registers) ask(client int, s watch.Store, dice func(int) int) error {
	r.mu.Lock()
	r.asked++
	key, write := r.asked/askedOfEach, int64(r.asked)
	r.mu.Unlock()
	switch dice(4) {
	case 0:
		write = 0
	case 1:
		key, write = dice(key+1), 0
	}
	return r.one(client, s, key, write)
}

func (r *registers) one(client int, s watch.Store, key int, write int64) error {
	call := time.Since(r.began).Nanoseconds()
	got, err := r.swap(s, key, write)
	o := porcupine.Operation{ClientId: client, Input: write, Output: got, Call: call, Return: time.Since(r.began).Nanoseconds()}
	if err != nil {
		o.Output, o.Return = nil, unanswered
	}
	r.mu.Lock()
	r.history[key] = append(r.history[key], o)
	r.mu.Unlock()
	return err
}

// last reads every register once more, after all clients have stopped.
func (r *registers) last(t *testing.T, dial func(addr string) (watch.Store, error), addr string) {
	t.Helper()
	r.stop()
	for _, key := range slices.Sorted(maps.Keys(r.history)) {
		var err error
		if !kit.Reached(2*soon, func() bool {
			var s watch.Store
			if s, err = dial(addr); err != nil {
				return false
			}
			defer s.Close()
			err = r.one(registerClients, s, key, 0)
			return err == nil
		}) {
			t.Fatalf("register %d cannot be read: %v", key, err)
		}
	}
}

// check demands that what was answered is linearizable.
func (r *registers) check(t *testing.T) {
	t.Helper()
	r.stop()
	operations := 0
	for key, all := range r.history {
		counted := counting(all)
		operations += len(counted)
		if said := porcupine.CheckOperationsTimeout(register, counted, 2*time.Minute); said != porcupine.Ok {
			_, why := porcupine.CheckOperationsVerbose(register, counted, 2*time.Minute)
			picture, err := os.CreateTemp("", "register-*.html")
			must.OK(t, err)
			must.OK(t, porcupine.Visualize(register, why, picture))
			must.OK(t, picture.Close())
			t.Errorf("register %d is not linearizable (%s): %d operations, see %s", key, said, len(counted), picture.Name())
		}
	}
	t.Logf("%d operations on %d registers were checked", operations, len(r.history))
}

// counting leaves out what was not answered and whose number nobody saw. It was never done, or at the end, and each would double what
// there is to try.
func counting(all []porcupine.Operation) []porcupine.Operation {
	seen := map[any]bool{}
	for _, o := range all {
		seen[o.Output] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(o porcupine.Operation) bool {
		return o.Output == nil && (o.Input == int64(0) || !seen[o.Input])
	})
}

func linearizable(all []porcupine.Operation) bool {
	return porcupine.CheckOperations(register, counting(all))
}

func TestWrongAnswersAreNotLinearizable(t *testing.T) {
	type history = []porcupine.Operation
	swap := func(write, was, from, to int64) porcupine.Operation {
		return porcupine.Operation{Input: write, Output: was, Call: from, Return: to}
	}
	read := func(n, from, to int64) porcupine.Operation { return swap(0, n, from, to) }
	open := func(write, from int64) porcupine.Operation {
		return porcupine.Operation{Input: write, Call: from, Return: unanswered}
	}
	first := swap(1, 0, 1, 2)
	for what, c := range map[string]struct {
		history
		right bool
	}{
		"one after the other":                         {history{first, read(1, 3, 4), swap(2, 1, 5, 6), read(2, 7, 7)}, true},
		"two writes at once, in the other order":      {history{swap(1, 2, 1, 4), swap(2, 0, 2, 3), read(1, 5, 6)}, true},
		"a read beside a write, before it":            {history{first, swap(2, 1, 3, 6), read(1, 4, 5), read(2, 7, 8)}, true},
		"a write without an answer, that is never":    {history{first, open(2, 3), read(1, 4, 5), swap(3, 1, 6, 7)}, true},
		"a write without an answer, that is later":    {history{first, open(2, 3), read(1, 4, 5), swap(3, 2, 6, 7), open(0, 8)}, true},
		"an acknowledged write is lost":               {history{first, swap(2, 1, 3, 4), read(1, 5, 6)}, false},
		"an acknowledged write is lost, and the next": {history{first, swap(2, 1, 3, 4), swap(3, 1, 5, 6), read(3, 7, 8)}, false},
		"the first write is lost":                     {history{first, read(0, 3, 4)}, false},
		"a stale read after a newer one":              {history{first, swap(2, 1, 3, 10), read(2, 4, 5), read(1, 6, 7)}, false},
		"a write without an answer is seen, and gone": {history{first, open(2, 3), read(2, 4, 5), read(1, 6, 7)}, false},
		"a write is done before it was asked":         {history{read(1, 0, 0), first}, false},
		"a value that nobody wrote":                   {history{first, read(7, 3, 4)}, false},
	} {
		if got := linearizable(c.history); got != c.right {
			t.Errorf("%s: linearizable is %v", what, got)
		}
	}
}

// A copy that lacks what was acknowledged is noticed by the clients as they are, and one that has all of it is not.
func TestClientsOfRegistersNoticeAnOlderCopy(t *testing.T) {
	for _, older := range []bool{false, true} {
		copies := []map[int]int64{{}}
		refused := false
		r := newRegisters(func(_ watch.Store, key int, write int64) (int64, error) {
			now := maps.Clone(copies[len(copies)-1])
			was := now[key]
			if write != 0 {
				now[key] = write
			}
			copies = append(copies, now)
			refused = !refused
			if refused { // done, and not answered
				return 0, os.ErrDeadlineExceeded
			}
			return was, nil
		})
		dice := rand.New(rand.NewPCG(1, 2)).IntN
		for i := range 3000 {
			if i == 1500 && older {
				copies = copies[:len(copies)-600] // so that two registers go back
			}
			_ = r.ask(i%registerClients, nil, dice)
		}
		right := true
		for _, all := range r.history {
			right = right && linearizable(all)
		}
		if right == older {
			t.Errorf("an older copy takes over: %v; linearizable: %v, of %d registers", older, right, len(r.history))
		}
	}
}
