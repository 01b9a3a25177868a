package keyfile

import (
	"errors"
	"sync"
	"time"
)

const (
	freshFor = time.Second            // what was read serves so long
	patience = 500 * time.Millisecond // with a reading that hangs
)

var errNoAnswer = errors.New("the file system does not answer")

// Cached makes of a read one that is done anew at most once a second, and by one caller at a time: those who come may be
// many, and strangers, and a read may hang with its file system. While it hangs, and when it fails, the previous value
// serves; failed, if it is not nil, is told of the latter, once a reason.
func Cached[T any](read func() (T, error), failed func(error)) func() (T, error) {
	return (&kept[T]{read: read, failed: failed}).get
}

// CachedFrom is Cached with a previous value from the start.
func CachedFrom[T any](previous T, read func() (T, error)) func() (T, error) {
	return (&kept[T]{read: read, value: previous, known: true}).get
}

type kept[T any] struct {
	read   func() (T, error)
	failed func(error)

	mu    sync.Mutex // guards the fields below
	value T
	known bool // value is one that was read
	err   error
	at    time.Time     // of the newest read
	busy  chan struct{} // closed when the read that is under way is over; nil: none is
}

func (k *kept[T]) get() (T, error) {
	k.mu.Lock()
	if k.busy == nil && (k.at.IsZero() || time.Since(k.at) >= freshFor) {
		k.busy = make(chan struct{})
		go k.renew() // nobody waits for what may never end
	}
	busy := k.busy
	k.mu.Unlock()
	if busy != nil {
		enough := time.NewTimer(patience)
		defer enough.Stop()
		select {
		case <-busy:
		case <-enough.C:
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.known:
		return k.value, nil
	case k.err != nil:
		return k.value, k.err
	}
	return k.value, errNoAnswer
}

func (k *kept[T]) renew() {
	v, err := k.read()
	k.mu.Lock()
	if err == nil {
		k.value, k.known = v, true
	}
	told := err == nil || !k.known || k.err != nil && k.err.Error() == err.Error()
	k.err, k.at = err, time.Now()
	close(k.busy)
	k.busy = nil
	k.mu.Unlock()
	if !told && k.failed != nil {
		k.failed(err)
	}
}
