package replica

import (
	"cmp"
	"context"
	"fmt"

	"understudy/supervisor/copies"
	"understudy/supervisor/wait"
)

// DataState is what a copy says when nobody is promoted.
type DataState struct {
	Era      int64
	Followed int64
	Toward   int64
	Source   Source
	Position *uint64
	Why      string // there is no position
	Empty    bool   // it has no data at all, whatever it had
	Same     bool   // and yet no data is lost
	Had      uint64 // the greatest position that it has told of this data; 0: none
	Led      bool   // it was promoted with this data, and has followed none since
	Saw      copies.Lead
}

// Tell asks the follower how far its data goes, while nobody is promoted.
func (c *Copy) Tell(ctx context.Context) DataState {
	talk, told := c.asks()
	defer told()
	kept, unread := c.data.known()
	c.mu.Lock()
	a, run, stopped := c.asking(Active{}), c.run, c.shown.Why
	c.mu.Unlock()
	t := DataState{
		Era: kept.Era, Followed: kept.Followed, Toward: kept.Toward, Source: kept.Source, Had: kept.Position,
		Led: kept.Diverges && kept.Toward == 0, Saw: kept.Saw,
	}
	switch {
	case unread != nil:
		t.Why = "it is not known what it has followed: " + unread.Error()
		return t
	case talk == nil:
		t.Why = "it is about to be promoted, or was"
		return t
	case run == nil:
		t.Why = cmp.Or(stopped, errNotRuns.Error())
		return t
	case !wait.Closed(run.Ready()):
		t.Why = "its program is not ready"
		return t
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	defer context.AfterFunc(talk, enough)()
	role, why := a.role(ctx)
	if role != Follower {
		t.Why = why
		if role == Primary {
			t.Why = errPrimary.Error()
			wait.Poke(c.look)
		}
		return t
	}
	said := a.position(ctx)
	p, same, why := said.position, said.same, said.why
	t.Empty = p != nil && *p == 0
	switch {
	case same:
		why = ""
	case p != nil && kept.Followed > 0 && kept.Toward == 0 && *p < kept.Position:
		p, why = nil, fmt.Sprintf("it has lost data: its position is %d, and was %d", *p, kept.Position)
	case p != nil && kept.Toward == 0: // a copy that is chosen for that may be killed before it tells more
		c.data.reached(*p)
	}
	t.Position, t.Same, t.Why = p, same, why
	return t
}
