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
			tree := &movable{recorder: &recorder{envs: map[string][]string{}}}
			conf := config.DefaultService("program")
			conf.Replicated = &config.Replicated{Role: []string{"role"}, Position: []string{"position"}, Interval: time.Second, Timeout: time.Second}
			v := made(t, Conf{Service: conf}, func(n *LocalNode) {
				n.Commands = unit.NewCommands(func() host.Guard { return tree }, func() time.Duration { return time.Hour })
				n.Copies = func(string, string) replica.Store { return fullStore{} }
			})
			v.copy.begin()
			defer v.Close()
			time.Sleep(2 * time.Second)
			program, sess := tree.program, &election.Session{}
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
			h.term.promotion.spares = true
			if c.ends {
				end()
			}
			if got := h.term.promotion.take(ctx, &h.term); got.Kind != c.want {
				t.Errorf("%s: %v, want %v", name, got.Kind, c.want)
			}
			if got := h.Stop(ctx); got.Kind != role.Stopped || !program.asked.Load() {
				t.Errorf("%s: %v, it was asked to end: %v", name, got.Kind, program.asked.Load())
			}
			if got := h.Prove(ctx); got.Kind != role.Proved {
				t.Errorf("%s: %v", name, got.Kind)
			}
			time.Sleep(2 * time.Second)
			if again := tree.program; again == program {
				t.Errorf("%s: it is no follower again", name)
			}
		})
	}
}
