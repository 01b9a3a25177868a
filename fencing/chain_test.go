package fencing

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

var target = Target{Service: "redis", Node: "db-1", Host: "db-1.example", Machine: "m1", Boot: "b1", Token: 42}

// fake behaves as a method: it answers after a while, and stops when told.
type fake struct {
	name string
	err  error
	took time.Duration
	ran  int
}

func (f *fake) Name() string { return f.name }

func (f *fake) Fence(ctx context.Context, _ Target) error {
	f.ran++
	select {
	case <-time.After(f.took):
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func steps(methods ...*fake) []Step {
	var all []Step
	for _, m := range methods {
		all = append(all, Step{Method: m, Timeout: 10 * time.Second})
	}
	return all
}

// knows answers as a machine would, one verdict after the other; the last one stays.
func knows(verdicts ...Liveness) func(context.Context, Target) (Liveness, string, error) {
	return func(context.Context, Target) (Liveness, string, error) {
		v := verdicts[0]
		if len(verdicts) > 1 {
			verdicts = verdicts[1:]
		}
		return v, "own tree", nil
	}
}

var errBroken = errors.New("broken")

func TestChainTriesWhatItHasInOrder(t *testing.T) {
	fine := func() *fake { return &fake{name: "fine", took: time.Second} }
	fails := func() *fake { return &fake{name: "fails", err: errBroken, took: time.Second} }
	hangs := func() *fake { return &fake{name: "hangs", took: time.Hour} }
	for name, test := range map[string]struct {
		chain  Chain
		by     string
		took   time.Duration
		tried  string
		refuse bool
	}{
		"known here": {
			chain: Chain{Local: knows(Dead), Steps: steps(fails()), Grace: time.Minute},
			by:    "own tree", took: 0, tried: "local",
		},
		"first success wins": {
			chain: Chain{Local: knows(Unknown), Steps: steps(fails(), fine(), hangs())},
			by:    "fine", took: 2 * time.Second, tried: "fails fine",
		},
		"a method that hangs is ended": {
			chain: Chain{Steps: steps(hangs(), fine())},
			by:    "fine", took: 11 * time.Second, tried: "hangs fine",
		},
		"no methods: the grace delay, counted from the claim": {
			chain: Chain{Grace: 2 * time.Second},
			by:    ByGrace, took: 1500 * time.Millisecond,
		},
		"no grace at all": {chain: Chain{}, by: ByGrace, took: 0},
		"all fail, refuse": {
			chain: Chain{Steps: steps(fails(), hangs()), Grace: time.Second},
			took:  11 * time.Second, tried: "fails hangs", refuse: true,
		},
		"all fail, grace: what is left of it": {
			chain: Chain{Steps: steps(fails()), OnFailure: Grace, Grace: 20 * time.Second},
			by:    ByGrace, took: 19500 * time.Millisecond, tried: "fails",
		},
		"all fail, grace: nothing left of it": {
			chain: Chain{Steps: steps(hangs()), OnFailure: Grace, Grace: 2 * time.Second},
			by:    ByGrace, took: 10 * time.Second, tried: "hangs",
		},
		"seen alive, then gone": {
			chain: Chain{Local: knows(Alive, Dead), Grace: 2 * time.Second},
			by:    "own tree", took: 1500 * time.Millisecond, tried: "local local",
		},
		"seen alive for good: no delay helps": {
			chain: Chain{Local: knows(Alive), Grace: 2 * time.Second, OnFailure: Grace},
			took:  1500 * time.Millisecond, tried: "local local", refuse: true,
		},
		"seen alive, and fenced": {
			chain: Chain{Local: knows(Alive), Steps: steps(fine())},
			by:    "fine", took: time.Second, tried: "local fine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				out, err := test.chain.Fence(t.Context(), target, began.Add(-500*time.Millisecond), make(chan struct{}))
				if errors.Is(err, ErrRefused) != test.refuse || (err != nil) != test.refuse {
					t.Errorf("error %v", err)
				}
				var tried []string
				for _, a := range out.Attempts {
					tried = append(tried, a.Method)
				}
				if out.By != test.by || out.Took != test.took || strings.Join(tried, " ") != test.tried {
					t.Errorf("by %q in %v after %q, want %q in %v after %q", out.By, out.Took, tried, test.by, test.took, test.tried)
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("returned after %v, want %v", took, test.took)
				}
			})
		})
	}
}

func TestRefusalNamesEachAttempt(t *testing.T) {
	for want, r := range map[string]*refusal{
		"(no method is configured)": {target: target},
		"(exec: broken; ssh: late)": {target: target, tried: []Attempt{{Method: "exec", Err: errBroken}, {Method: "ssh", Err: errors.New("late")}}},
	} {
		if !strings.HasSuffix(r.Error(), want) {
			t.Errorf("%v, not %s", r, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := Chain{Steps: steps(&fake{name: "exec", err: errBroken}, &fake{name: "ssh", took: time.Hour})}
		_, err := c.Fence(t.Context(), target, time.Now(), nil)
		want := "fencing refused: nothing proves that the program on db-1 is dead (exec: broken; ssh: no answer within 10s)"
		if err == nil || err.Error() != want || !errors.Is(err, errBroken) || !errors.Is(err, ErrRefused) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

func TestConfirmationEndsAllWaiting(t *testing.T) {
	for name, c := range map[string]Chain{
		"grace":  {Grace: time.Minute},
		"method": {Steps: []Step{{Method: &fake{name: "hangs", took: time.Hour}, Timeout: time.Minute}}},
		"local": {Local: func(ctx context.Context, _ Target) (Liveness, string, error) {
			<-ctx.Done()
			return Unknown, "", context.Cause(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				confirmed := make(chan struct{})
				time.AfterFunc(3*time.Second, func() { close(confirmed) })
				out, err := c.Fence(t.Context(), target, time.Now(), confirmed)
				if err != nil || out.By != ByConfirmed || out.Took != 3*time.Second {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
}

func TestConfirmedBeforehandRunsNoMethod(t *testing.T) {
	confirmed := make(chan struct{})
	close(confirmed)
	method := &fake{name: "m", err: errBroken}
	out, err := Chain{Steps: steps(method)}.Fence(t.Context(), target, time.Now(), confirmed)
	if err != nil || out.By != ByConfirmed || method.ran != 0 {
		t.Errorf("%+v, %v, %d runs", out, err, method.ran)
	}
}

func TestEndOfContextStopsEverything(t *testing.T) {
	errLost := errors.New("lock lost")
	for name, c := range map[string]Chain{
		"grace":         {Grace: time.Minute},
		"method":        {Steps: steps(&fake{name: "hangs", took: time.Hour}), OnFailure: Grace, Grace: time.Hour},
		"last one fell": {Steps: steps(&fake{name: "fails", err: errBroken, took: 3 * time.Second})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(3*time.Second, func() { cancel(errLost) })
				confirmed := make(chan struct{})
				out, err := c.Fence(ctx, target, time.Now(), confirmed)
				if name != "last one fell" && !errors.Is(err, errLost) || err == nil || out.By != "" {
					t.Errorf("%+v, %v", out, err)
				}
				if out.Took != 3*time.Second {
					t.Errorf("took %v", out.Took)
				}
			})
		})
	}
}

func TestUnprovedDeathIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Chain{Grace: time.Second, Local: func(context.Context, Target) (Liveness, string, error) {
			return Dead, "own tree", errBroken
		}}
		out, err := c.Fence(t.Context(), target, time.Now(), nil)
		if err != nil || out.By != ByGrace || out.Took != time.Second || !errors.Is(out.Attempts[0].Err, errBroken) {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestGraceIsNeitherLostNorStretchedByOddClaims(t *testing.T) {
	for name, claimed := range map[string]func() time.Time{
		"zero":          func() time.Time { return time.Time{} },
		"in the future": func() time.Time { return time.Now().Add(time.Hour) },
		"now":           time.Now,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, err := Chain{Grace: 2 * time.Second}.Fence(t.Context(), target, claimed(), nil)
				if err != nil || out.Took != 2*time.Second {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
}

func TestLogAloneTellsTheStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := Chain{
			Steps: steps(&fake{name: "exec", err: errBroken}), OnFailure: Grace, Grace: time.Second,
			Logger: hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true}),
		}
		if _, err := c.Fence(t.Context(), target, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		want := `[WARN]  fencing attempt failed: service=redis node=db-1 target_token=42 method=exec took=0s error=broken
[INFO]  waiting for the grace delay: service=redis node=db-1 target_token=42 left=1s grace_delay=1s
[INFO]  the previous node's program counts as dead after this delay: service=redis node=db-1 target_token=42 by=grace took=1s
`
		if diff := cmp.Diff(want, log.String()); diff != "" {
			t.Error(diff)
		}
	})
}
