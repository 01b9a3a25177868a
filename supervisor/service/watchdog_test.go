package service

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
)

// watched is a guard, and a tree, with a watchdog that does as it is told.
type watched struct {
	haunted
	host.Tree
	mu  sync.Mutex // guards what follows
	err error
	got child.Watchdog
}

func (k *watched) ask(w child.Watchdog) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = w
	return k.err
}

func (k *watched) mended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = nil
}

func (k *watched) Arm(_ context.Context, w child.Watchdog) error { return k.ask(w) }

func (k *watched) CheckWatchdog(_ context.Context, w child.Watchdog) error { return k.ask(w) }

func guarded(t *testing.T, w *config.Watchdog, k *watched) *Service {
	v := made(t, Conf{}, func(n *LocalNode) { n.Watchdog, n.Guard = w, func() host.Guard { return k } })
	v.inbox.intents.known = true
	return v
}

func TestNothingIsStartedWithoutTheWatchdogThatIsRequired(t *testing.T) {
	required, automatic := &config.Watchdog{Device: "/dev/w", Mode: config.WatchdogRequired}, &config.Watchdog{Device: "/dev/w", Mode: config.WatchdogAutomatic}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		watchdog *config.Watchdog
		err      error
		lease    time.Duration
		want     role.EventKind
		armed    bool
	}{
		"armed":                {required, nil, 4 * time.Second, role.Armed, true},
		"required, broken":     {required, broken, 4 * time.Second, role.Unarmed, true},
		"required, too short":  {required, nil, time.Second, role.Unarmed, false},
		"automatic, broken":    {automatic, broken, 4 * time.Second, role.Armed, true},
		"automatic, too short": {automatic, nil, time.Second, role.Armed, false},
		"lease ended":          {automatic, child.ErrLeaseEnded, 4 * time.Second, role.LeaseOver, true},
		"off":                  {nil, broken, 4 * time.Second, role.Armed, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := &watched{err: c.err}
			v := guarded(t, c.watchdog, k)
			if e := v.testStay(t.Context(), Session{}, k).term.arm(t.Context(), c.lease); e.Kind != c.want {
				t.Errorf("%v, want %v", e.Kind, c.want)
			}
			whole := child.Watchdog{Path: "/dev/w", Timeout: time.Second, After: 160 * time.Millisecond}
			if armed := k.got == whole; armed != c.armed {
				t.Errorf("armed with %+v", k.got)
			}
			if c.want != role.Unarmed {
				v.inbox.watchdog.found.write(fitness{known: true})
			}
			want := role.NoObstacle
			if c.want == role.Unarmed {
				want = role.WatchdogUnarmed
			}
			if _, obstacle, why := v.inbox.obstacle(v.conf); obstacle != want {
				t.Errorf("barred by %q", why)
			}
		})
	}
}

func TestNodeStandsOnceItsWatchdogCanBeArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &watched{err: errors.New("another program holds it")}
		v := guarded(t, &config.Watchdog{Device: "/dev/w", Mode: config.WatchdogRequired}, k)
		ctx, cancel := context.WithCancel(t.Context())
		if _, obstacle, _ := v.inbox.obstacle(v.conf); obstacle != role.WatchdogUnknown || !obstacle.Unknown() {
			t.Errorf("before the first look: %v", obstacle)
		}
		go v.inbox.watchdog.checkUntilArmable(ctx, func() time.Duration { return 6 * time.Second })
		synctest.Wait()
		if _, obstacle, why := v.inbox.obstacle(v.conf); obstacle != role.WatchdogUnarmed || !strings.Contains(why, "another program holds it") {
			t.Errorf("held by another: %v, %s", obstacle, why)
		}
		<-v.inbox.news
		k.mended()
		time.Sleep(2 * tryAgain)
		synctest.Wait()
		if _, obstacle, why := v.inbox.obstacle(v.conf); obstacle != role.NoObstacle {
			t.Errorf("free again: %v, %s", obstacle, why)
		}
		select {
		case <-v.inbox.news:
		default:
			t.Error("the service was not told")
		}
		cancel()
	})
}
