package service

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/config"
	"understudy/supervisor/unit"
)

// jotter is a disk, which looks at the breadcrumb before it writes.
type jotter struct {
	data    []byte
	lasting bool
	look    func()
	fault   error // of a write
}

func (*jotter) Path() string                         { return "disk" }
func (*jotter) Try(bool) error                       { return nil }
func (*jotter) Lock(context.Context) (func(), error) { return func() {}, nil }

func (j *jotter) Load() ([]byte, error) {
	if j.data == nil {
		return nil, fs.ErrNotExist
	}
	return j.data, nil
}

func (j *jotter) Save(data []byte, lasting bool) error {
	if j.look(); j.fault != nil {
		return j.fault
	}
	j.data, j.lasting = data, lasting
	return nil
}

// P2: a machine that is asked after a boot finds a note of each term whose breadcrumb lists what survives one.
func TestWhatSurvivesABootIsNotedBeforeTheBreadcrumbListsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		zk.session(func(ctx context.Context, s *election.Session) error {
			c, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			o, err := c.Wait(ctx)
			if err != nil {
				return err
			}
			named := func() election.BreadCrumb {
				b, _, err := c.Crumb.Named(ctx)
				if err != nil {
					t.Error(err)
				}
				return b
			}
			disk := &jotter{look: func() {
				if b := named(); len(b.Survive) > 0 || !slices.Equal(b.NeedProof, []string{"role"}) {
					t.Errorf("before anything is noted: %+v", b.Effects)
				}
			}}
			conf := Conf{Service: config.Service{Processes: []config.Process{{Name: "role", Oneshot: true, Undo: config.Command{"x"}, SurvivesBoot: true}}}}
			v := made(t, conf, func(n *LocalNode) { n.Notes = func(string) unit.Notes { return disk } })
			stay := v.testStay(ctx, Session{Session: s}, &endingTree{})
			stay.candidacy.cand = c
			crumb := stay.candidacy.crumb()
			claim, err := c.Take(ctx, o, crumb)
			if err != nil {
				return err
			}
			v.mem.lastTerm.claimed(claim.Token)
			stay.beginTerm(claim, crumb.Effects)
			disk.fault = errors.New("the disk fails")
			if !stay.term.list(ctx) || len(named().Survive) > 0 || !errors.Is(stay.term.runConfig(nil, nil).Fault, disk.fault) {
				t.Errorf("without a note: %+v, %v", named().Effects, stay.term.runConfig(nil, nil).Fault)
			}
			disk.fault = nil
			if !stay.term.list(ctx) || !slices.Equal(named().Survive, []string{"role"}) {
				t.Errorf("listed: %+v", named().Effects)
			}
			var note struct{ Lasting int64 }
			if err := json.Unmarshal(disk.data, &note); err != nil || note.Lasting != claim.Token || !disk.lasting {
				t.Errorf("noted: %s, lasting %v, %v", disk.data, disk.lasting, err)
			}
			v.conf.Processes[0].SurvivesBoot = false
			disk.look = func() {}
			if !stay.term.list(ctx) || disk.data != nil || disk.lasting || len(named().Survive) > 0 {
				t.Errorf("a changed config: %s, %+v", disk.data, named().Effects)
			}
			return claim.Release(ctx)
		})
	})
}

// booted is a machine that has not undone what survives a boot.
type booted struct {
	empty
	of   fencing.Target
	owed []string
}

func (b *booted) PendingEffects(of fencing.Target, _ string) []string {
	b.of = of
	return b.owed
}

// P2: a node that is back after a boot removes its breadcrumb only once it has undone what survived that.
func TestABreadcrumbStaysUntilWhatSurvivedIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		crumb := election.BreadCrumb{Tree: json.RawMessage(`{}`), Effects: election.Effects{Survive: election.EffectsLeft{"role"}}}
		var token int64
		zk.session(func(ctx context.Context, s *election.Session) error {
			c, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			o, err := c.Wait(ctx)
			if err != nil {
				return err
			}
			claim, err := c.Take(ctx, o, crumb)
			if err == nil {
				token = claim.Token
			}
			return err
		})
		zk.session(func(ctx context.Context, s *election.Session) error {
			c, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			m := &booted{owed: []string{"role"}}
			v := made(t, Conf{}, func(n *LocalNode) { n.Machine, n.Root, n.Self.Boot = m, "/one", "b2" })
			if v.breadcrumb.cleared(ctx, s, c) {
				t.Error("removed, and it is not undone")
			}
			if of := m.of; of.Root != "/one" || of.Service != "db" || of.Token != token || of.Boot != "b1" || !slices.Equal(of.Survive, []string{"role"}) {
				t.Errorf("asked for %+v", of)
			}
			m.owed = nil
			_, there, err := c.Crumb.Named(ctx)
			if cleared := v.breadcrumb.cleared(ctx, s, c); !there || !cleared || err != nil {
				t.Errorf("there %v, then removed %v: %v", there, cleared, err)
			}
			_, there, err = c.Crumb.Named(ctx)
			if there {
				t.Error("it stays for ever")
			}
			return err
		})
	})
}
