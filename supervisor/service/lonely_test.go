package service

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
)

// A node on which the service could not be started leaves it to the others for a minute. Where no other one can take it, that would help
// nobody: what was missing may be there again.
func TestANodeLeavesTheServiceOnlyToThoseWhoCanTakeIt(t *testing.T) {
	standby, unfit := election.Member{Role: election.RoleStandby, Health: election.HealthOK}, election.Member{Role: election.RoleStandby, Health: election.HealthUnfit}
	for name, c := range map[string]struct {
		others    []election.Member
		unstarted bool
		times     int
		want      time.Duration
	}{
		"another stands by":        {[]election.Member{unfit, standby}, true, 1, time.Minute},
		"it runs elsewhere":        {[]election.Member{{Role: election.RoleActive, Health: election.HealthStarting}}, true, 1, time.Minute},
		"another says nothing":     {[]election.Member{{}}, true, 1, time.Minute},
		"none else":                {nil, true, 1, 2 * time.Second},
		"none else, again":         {nil, true, 3, 8 * time.Second},
		"none else, for long":      {nil, true, 90, 30 * time.Second},
		"none else can":            {[]election.Member{unfit, {Role: election.RoleFailed, Health: election.HealthFailed}}, true, 1, 2 * time.Second},
		"it started and failed":    {nil, false, 1, time.Minute},
		"all others are drained":   {[]election.Member{{Role: election.RoleStandby, Health: election.HealthUnfit, Why: "drained"}}, true, 1, 2 * time.Second},
		"another has not started":  {[]election.Member{{Role: election.RoleStandby, Health: election.HealthFailing}}, true, 1, time.Minute},
		"another is in no session": {[]election.Member{{Role: election.RoleOffline}}, true, 1, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			zk, guard := newEnsemble(t), prepares{made: make(chan time.Time, 1)}
			defer zk.server.Close()
			conf := Conf{Service: config.Service{Election: "race", Restart: config.Restart{Delay: time.Second, MaxDelay: 30 * time.Second, RejoinAfter: time.Minute}}}
			v := made(t, conf, func(n *LocalNode) { n.Guard = func() host.Guard { return guard } })
			for i, m := range c.others {
				m.Node = string(rune('b' + i))
				text, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				zk.session(func(ctx context.Context, s *election.Session) error {
					cand, _, err := s.NewCandidate(ctx, v.name, election.Race)
					if err == nil {
						zk.make(cand.Paths().Members()+"/"+m.Node, string(text))
					}
					return err
				})
			}
			v.state.BackOffDue, v.mem.unstarted, v.mem.preference.relapses.times = true, c.unstarted, c.times
			began := time.Now()
			zk.served(v, func() {
				if waited := guard.next(t).Sub(began); waited < c.want || waited > c.want+time.Second {
					t.Errorf("%s: it stands again after %v, not %v", name, waited, c.want)
				}
			})
		})
	}
}
