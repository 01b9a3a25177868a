package sim

import (
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/steps"
	"understudy/supervisor/testbed/zkfaults"
)

// stepsView has package steps look at all that happens: each transaction, and each start, is a step of docs/model, or an operator's or a
// stranger's, or follows from theirs. World.mu guards it.
type stepsView struct {
	*checker
	*steps.Acceptor
}

func newStepsView(c *checker) stepsView {
	v := stepsView{c, steps.New(root)}
	v.Spared = func(p steps.Program) bool {
		proc, in := p.ID.(*proc), v.services[p.Service]
		return v.spared(in, proc) || in.struck[p.Token] || v.sessions.lost[proc.tree.session]
	}
	return v
}

// committed is told each transaction before the checker looks at it.
func (v stepsView) committed(t zkfaults.Commit) {
	at := steps.Txn{Zxid: t.Zxid, At: time.Now(), Session: t.By}
	if t.Ended != 0 {
		at.Session, at.Ended, at.Expired = t.Ended, true, t.Expired
		at.ByHand = v.sessions.meddled[t.Ended] || v.sight.leaseStands(t.Ended)
	}
	for _, path := range t.Checks {
		at.Ops = append(at.Ops, steps.Op{Kind: steps.Check, Path: path})
	}
	for _, ch := range t.Changes {
		kind := steps.Set
		switch ch.Kind {
		case jute.EventNodeCreated:
			kind = steps.Create
		case jute.EventNodeDeleted:
			kind = steps.Delete
		}
		service, what := splitPath(ch.Path)
		of := v.services[service]
		lied := kind == steps.Delete && what == "ActiveBreadCrumb" && of != nil && of.sworn[of.crumb.tree] // by whoever confirmed a death
		at.ByHand = at.ByHand || lied || v.hand.byHand[ch.Path] > 0
		at.Ops = append(at.Ops, steps.Op{Kind: kind, Path: ch.Path, Data: ch.Data})
	}
	v.broke(v.Commit(at))
}

// setBack is told what is there once data was set back, after it was told that all is lost.
func (v stepsView) setBack(changes []zkfaults.ZnodeChange) {
	for _, ch := range changes {
		_ = v.Commit(steps.Txn{
			Zxid: ch.Stat.Czxid, At: time.Now(), Session: ch.Stat.EphemeralOwner, ByHand: true,
			Ops: []steps.Op{{Kind: steps.Create, Path: ch.Path, Data: ch.Data}},
		})
	}
}

func (v stepsView) broke(err error) {
	if err != nil {
		v.broken("steps", "%v", err)
	}
}

func programOf(p *proc) steps.Program {
	return steps.Program{ID: p, Service: p.tree.service, Node: p.tree.node, Token: p.token}
}

func (v stepsView) started(p *proc) {
	in, err := v.services[p.tree.service], v.Start(programOf(p))
	if !v.sessions.lost[p.tree.session] && !in.struck[p.token] && !in.oath[p.token] && !in.unknown {
		v.broke(err)
	}
}

func (v stepsView) gone(p *proc) { v.End(programOf(p)) }
