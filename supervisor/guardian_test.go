package supervisor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/box"
	"understudy/supervisor/unit"
)

// haunted is a guard of a machine on which something of a service is left.
type haunted struct {
	treeless
	left map[string]*box.Leftover
}

func (h haunted) Leftover(_ context.Context, service string, _ json.RawMessage) *box.Leftover {
	return h.left[service]
}

// P2: whoever undoes in a supervisor's place begins nothing beside an undo of an earlier attempt, which its process has not outlived.
func TestNobodyUndoesInASupervisorsPlaceBesideAnEarlierAttempt(t *testing.T) {
	for of, begins := range map[string]bool{"db": false, "other": true} {
		began := false
		g := haunted{treeless{asked: func(context.Context) { began = true }}, map[string]*box.Leftover{of: {Pid: 7, Program: "umount"}}}
		o := &orphaned{Note: unit.Note{Node: "a", Service: "db"}}
		d := unit.PendingUndo{Name: "fs", Command: []string{"umount"}, Timeout: time.Second, Token: 7}
		err := o.under(g, hclog.NewNullLogger())(t.Context(), d, "undo", d.Command)
		if told := err != nil && strings.Contains(err.Error(), "pid 7 (umount)"); began != begins || told == begins {
			t.Errorf("left of %s: began %v: %v", of, began, err)
		}
	}
}
