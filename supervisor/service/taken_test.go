package service

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/replica"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// movable is the tree of a copy that a term moves to its own lease.
type movable struct {
	*recorder
	move func() error
}

func (m *movable) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) { return m, nil }
func (m *movable) Move(context.Context, uint64, []byte) error                         { return m.move() }
func (m *movable) ReportUndone(bool)                                                  {}

// Start takes three seconds for demote.
func (m *movable) Start(ctx context.Context, spec child.Spec) (host.Process, error) {
	if spec.Argv[0] == "demote" {
		time.Sleep(3 * time.Second)
	}
	return m.recorder.Start(ctx, spec)
}

// withCopy is a service whose copy runs as a follower in a tree.
func withCopy(t *testing.T, store replica.Store) (v *Service, tree *movable) {
	tree = &movable{recorder: &recorder{envs: map[string][]string{}}, move: func() error { return nil }}
	conf := config.DefaultService("program")
	conf.Replicated = &config.Replicated{Role: []string{"role"}, Position: []string{"position"}, Interval: time.Second, Timeout: 5 * time.Second}
	v = made(t, Conf{Service: conf}, func(n *LocalNode) {
		n.Commands = unit.NewCommands(func() host.Guard { return tree }, func() time.Duration { return time.Hour })
		n.Copies = func(string, string) replica.Store { return store }
	})
	v.copy.begin()
	time.Sleep(2 * time.Second)
	return v, tree
}

type fullStore struct{}

func (fullStore) Load() ([]byte, error) { return nil, fs.ErrNotExist }
func (fullStore) Save([]byte) error     { return syscall.ENOSPC }

// A copy that was chosen, and is not promoted after all, has told the others what it has: killed, it may come back with older data, and then it
// is not there to be counted. So it is asked to end.
func TestACopyThatWasTakenAndIsNotPromotedIsAskedToEnd(t *testing.T) {
	for name, c := range map[string]struct {
		ends  bool // the stay does, before the copy is taken
		moves bool // and while its tree is moved
		fails error
		want  role.EventKind
	}{
		"its node is stopped before that": {ends: true, want: role.StopAsked},
		"its node is stopped meanwhile":   {moves: true, fails: context.Canceled, want: role.StopAsked},
		"its node is stopped after that":  {moves: true, want: role.StopAsked},
		"its state cannot be kept":        {want: role.NoCopy},
		"the guardians do not answer":     {fails: errors.New("no answer"), want: role.NoCopy},
	} {
		synctest.Test(t, func(t *testing.T) {
			v, tree := withCopy(t, fullStore{})
			defer v.Close()
			program, sess := tree.newest(), &election.Session{}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			tree.move = func() error {
				if c.moves {
					end()
				}
				return c.fails
			}
			h := v.testStay(ctx, Session{Session: sess, Gate: gateOf(sess)}, tree)
			h.candidacy.cand = &election.Candidate{}
			h.term.claim = &election.Claim{Token: 7}
			h.term.promotion.copyNotTaken = true
			if c.ends {
				end()
			}
			if got := h.term.promotion.takeCopy(ctx, &h.term); got.Kind != c.want {
				t.Errorf("%s: %v, want %v", name, got.Kind, c.want)
			}
			if got := h.Stop(ctx); got.Kind != role.Stopped || !program.asked.Load() {
				t.Errorf("%s: %v, it was asked to end: %v", name, got.Kind, program.asked.Load())
			}
			if got := h.Prove(ctx); got.Kind != role.Proved {
				t.Errorf("%s: %v", name, got.Kind)
			}
			time.Sleep(2 * time.Second)
			if again := tree.newest(); again == program {
				t.Errorf("%s: it is no follower again", name)
			}
		})
	}
}

// Clients may wait, or be refused, from the moment at which a primary is demoted: for the history nothing runs since.
func TestThePauseOfADemotionBelongsToTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, tree := withCopy(t, noStore{})
		defer v.Close()
		v.conf.Replicated.Demote = []string{"demote"}
		sess := &election.Session{}
		h := v.testStay(t.Context(), Session{Session: sess, Gate: gateOf(sess)}, tree)
		h.beginTerm(&election.Claim{Token: 7}, election.Effects{})
		run, err := v.copy.Hold(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		promoted := h.term.runConfig(run, nil)
		promoted.Promote = func(context.Context, host.Process) error { return nil }
		h.term.run.programs = v.unit.Start(t.Context(), promoted)
		h.term.promotion.promoteTree = tree
		time.Sleep(time.Minute)
		h.term.run.programs.End(errSwitch)
		h.term.run.why = h.term.run.programs.Wait()
		began := time.Now()
		if got := h.Stop(t.Context()); got.Kind != role.Stopped || h.term.promotion.demoted == nil || time.Since(began) != 3*time.Second {
			t.Fatalf("%v after %v, demoted: %v", got.Kind, time.Since(began), h.term.promotion.demoted)
		}
		if got := h.Prove(t.Context()); got.Kind != role.Proved {
			t.Error(got.Kind)
		}
		if ended := v.history.takeUnwritten().end; !ended.Equal(began) {
			t.Errorf("it ended %v after demote began", ended.Sub(began))
		}
	})
}
