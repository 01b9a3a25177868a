package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/testbed/must"
)

// script answers each check as told, and after its end with the last answer.
type script struct {
	answers []answer
	began   time.Time

	mu    sync.Mutex      // guards what follows: a check that hangs outlives who asked
	at    []time.Duration // when each check began
	under int
	most  int
}

type answer struct {
	after          time.Duration
	err            error
	ignoresContext bool // to its context
}

func scripted(answers ...answer) *script { return &script{answers: answers, began: time.Now()} }

func (s *script) Check(ctx context.Context) error {
	s.mu.Lock()
	a := s.answers[min(len(s.at), len(s.answers)-1)]
	s.at = append(s.at, time.Since(s.began))
	s.under++
	s.most = max(s.most, s.under)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.under--
		s.mu.Unlock()
	}()
	timer := time.NewTimer(a.after)
	defer timer.Stop()
	if a.ignoresContext {
		<-timer.C
		return a.err
	}
	select {
	case <-timer.C:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *script) story() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.at)
}

func (s *script) atOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

var errIll = errors.New("ill")

// watched watches for so long, and tells the story of the reports.
func watched(t *testing.T, cfg Config, s *script, length time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var story []string
	healthy := true
	err := Watch(ctx, cfg, s, func(r Report) {
		word := fmt.Sprintf("%v:", time.Since(s.began))
		switch {
		case errors.Is(r.Err, ErrHung):
			word += "hung"
		case r.Err != nil:
			word += "bad"
		default:
			word += "good"
		}
		if !r.Healthy {
			word += "!"
		}
		if r.Healthy != healthy {
			healthy = r.Healthy
			word += "*"
		}
		story = append(story, fmt.Sprintf("%s%d", word, r.Failures))
	})
	must.Report(t, err)
	return strings.Join(story, " ")
}

func TestWatchCountsFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := answer{err: errIll}, answer{}
		s := scripted(good, bad, bad, good, bad, bad, bad, bad, good, good)
		got := watched(t, Config{Interval: time.Second, Timeout: time.Second, Failures: 3, StartDelay: 5 * time.Second}, s, 14500*time.Millisecond)
		want := "5s:good0 6s:bad1 7s:bad2 8s:good0 9s:bad1 10s:bad2 11s:bad!*3 12s:bad!4 13s:good*0 14s:good0"
		if got != want {
			t.Errorf("\n%s, not\n%s", got, want)
		}
	})
}

// The interval is from start to start; a check that takes longer is followed at once, and never overtaken.
func TestIntervalIsFromStartToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(answer{after: 700 * time.Millisecond}, answer{after: 1500 * time.Millisecond}, answer{after: 100 * time.Millisecond})
		watched(t, Config{Interval: time.Second, Timeout: 5 * time.Second, Failures: 1}, s, 4*time.Second)
		if got, want := s.story(), "[0s 1s 2.5s 3.5s]"; got != want || s.atOnce() != 1 {
			t.Errorf("%s, not %s; %d at once", got, want, s.atOnce())
		}
	})
}

func TestCheckThatTakesTooLongIsEndedAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(answer{after: time.Hour}, answer{})
		got := watched(t, Config{Interval: 3 * time.Second, Timeout: time.Second, Failures: 1}, s, 4*time.Second)
		if want := "1s:bad!*1 3s:good*0"; got != want {
			t.Errorf("%s, not %s", got, want)
		}
	})
}

// A check that does not even end when it is told to holds nothing up, and no second one begins beside it.
func TestCheckThatHangsIsReportedAndNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(answer{after: 6200 * time.Millisecond, ignoresContext: true}, answer{})
		got := watched(t, Config{Interval: 2 * time.Second, Timeout: time.Second, Failures: 2}, s, 11*time.Second)
		if want := "1.5s:hung1 3s:hung!*2 5s:hung!3 6.2s:good*0 8s:good0 10s:good0"; got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if s.atOnce() != 1 {
			t.Errorf("%d at once", s.atOnce())
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	for name, a := range map[string]answer{"well": {}, "slow": {after: time.Hour}, "hung": {after: 20 * time.Second, ignoresContext: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(a)
				watched(t, Config{Interval: time.Hour, Timeout: time.Hour, Failures: 1}, s, 10*time.Second)
				if took := time.Since(s.began); took > 10*time.Second+linger {
					t.Errorf("only after %v", took)
				}
				time.Sleep(time.Minute) // for the one that hangs
			})
		})
	}
	if err := Watch(t.Context(), Config{}, scripted(answer{}), nil); err == nil {
		t.Error("without an interval")
	}
}

func TestReadinessIsLookedForQuicklyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := answer{err: errIll}
		s := scripted(bad, bad, bad, bad, bad, bad, bad, bad, answer{})
		must.Report(t, WaitReady(t.Context(), time.Minute, s))
		if got, want := s.story(), "[0s 20ms 60ms 140ms 300ms 620ms 1.12s 1.62s 2.12s]"; got != want {
			t.Errorf("%s, not %s", got, want)
		}
	})
}

func TestUnreadinessSaysTheLastReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, a := range map[string]answer{"ill": {err: errIll}, "hung": {after: time.Minute, ignoresContext: true}} {
			s := scripted(a)
			err := WaitReady(t.Context(), 7*time.Second, s)
			if err == nil || !strings.HasPrefix(err.Error(), "not ready within 7s: ") || time.Since(s.began) > 8*time.Second || s.atOnce() != 1 {
				t.Errorf("%s: %v after %v", name, err, time.Since(s.began))
			}
			if name == "ill" && !errors.Is(err, errIll) || name == "hung" && !errors.Is(err, ErrHung) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cause := errors.New("the program has ended")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if err := WaitReady(ctx, 0, scripted(answer{err: errIll})); !errors.Is(err, cause) || !errors.Is(err, errIll) {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute) // for the one that hangs
	})
}

// late is a context that has not noticed yet that its time is up: on a machine that stood still, timers fire one after the other.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

func TestWhatIsSeenAfterTheTimeIsUpIsNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := scripted(answer{err: errIll}, answer{err: context.DeadlineExceeded})
		if err := WaitReady(late{ctx, time.Now().Add(10 * time.Millisecond)}, 0, s); !errors.Is(err, errIll) {
			t.Error(err)
		}
	})
}
