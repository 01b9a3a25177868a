package supervisor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
)

// kennel is a guard, and a tree, with a watchdog that does as it is told.
type kennel struct {
	Guard
	Tree
	mu  sync.Mutex // guards what follows
	err error
	got child.Watchdog
}

func (k *kennel) ask(w child.Watchdog) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = w
	return k.err
}

func (k *kennel) mended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = nil
}

func (k *kennel) Arm(_ context.Context, w child.Watchdog) error { return k.ask(w) }

func (k *kennel) CheckWatchdog(_ context.Context, w child.Watchdog) error { return k.ask(w) }

func guarded(w *Watchdog, k *kennel) *service {
	v := &service{Service: Service{Service: config.Service{Eligible: true}}, watchdog: w, log: hclog.NewNullLogger(), news: newNews(), guard: k}
	v.news.heeded = true
	return v
}

func TestNothingIsStartedWithoutTheWatchdogThatIsRequired(t *testing.T) {
	required, automatic := &Watchdog{Device: "/dev/w", Required: true}, &Watchdog{Device: "/dev/w"}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		watchdog *Watchdog
		err      error
		session  time.Duration
		want     event
		armed    bool
	}{
		"armed":                {required, nil, 6 * time.Second, nothingYet, true},
		"required, broken":     {required, broken, 6 * time.Second, unarmed, true},
		"required, too short":  {required, nil, 2 * time.Second, unarmed, false},
		"automatic, broken":    {automatic, broken, 6 * time.Second, nothingYet, true},
		"automatic, too short": {automatic, nil, 2 * time.Second, nothingYet, false},
		"lease ended":          {automatic, child.ErrLeaseEnded, 6 * time.Second, leaseEnding, true},
		"off":                  {nil, broken, 6 * time.Second, nothingYet, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kennel{err: c.err}
			v := guarded(c.watchdog, k)
			if got := v.arm(t.Context(), c.session, k); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			whole := child.Watchdog{Path: "/dev/w", Timeout: 2 * time.Second, After: 200 * time.Millisecond}
			if armed := k.got == whole; armed != c.armed {
				t.Errorf("armed with %+v", k.got)
			}
			v.news.tamed = v.news.tamed || c.want != unarmed
			if _, h := v.hindrance(); (h.why != "") != (c.want == unarmed) {
				t.Errorf("hindered by %q", h.why)
			}
		})
	}
}

func TestNodeStandsOnceItsWatchdogCanBeArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kennel{err: errors.New("another program holds it")}
		v := guarded(&Watchdog{Device: "/dev/w", Required: true}, k)
		ctx, cancel := context.WithCancel(t.Context())
		if _, h := v.hindrance(); !h.unknown {
			t.Errorf("before the first look: %+v", h)
		}
		go v.tame(ctx, func() time.Duration { return 6 * time.Second })
		synctest.Wait()
		if _, h := v.hindrance(); !strings.Contains(h.why, "another program holds it") {
			t.Errorf("held by another: %+v", h)
		}
		<-v.news.stir
		k.mended()
		time.Sleep(2 * tryAgain)
		synctest.Wait()
		if _, h := v.hindrance(); h.why != "" {
			t.Errorf("free again: %+v", h)
		}
		select {
		case <-v.news.stir:
		default:
			t.Error("the service was not told")
		}
		cancel()
	})
}

// onlooker notes the watchdog that it is told of.
type onlooker struct {
	unobserved
	seen []string
	now  func() bool
}

func (o *onlooker) Watchdog(device, mode string, armed func() bool) {
	o.seen, o.now = append(o.seen, device+" "+mode), armed
}

func (k *kennel) WatchdogArmed() bool { return k.ask(k.got) == nil }

func TestObserversLearnWhetherTheWatchdogIsArmed(t *testing.T) {
	k := &kennel{err: errors.New("asleep")}
	for want, w := range map[string]*Watchdog{"": nil, "/dev/w required": {Device: "/dev/w", Required: true}, "/dev/w automatic": {Device: "/dev/w"}} {
		o := &onlooker{}
		s := &supervisor{cfg: Config{Watchdog: w, Observer: o}, guard: k}
		s.showWatchdog()
		if strings.Join(o.seen, ",") != want {
			t.Errorf("told %q, want %q", o.seen, want)
			continue
		}
		if w == nil {
			continue
		}
		before := o.now()
		k.mended()
		if before || !o.now() {
			t.Error("it is not asked")
		}
		k.err = errors.New("asleep")
	}
}
