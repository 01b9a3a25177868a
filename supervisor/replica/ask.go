package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/child/probe"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/printable"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// Active is the copy that is promoted; the zero value: none is known.
type Active struct {
	Node, Host, Address string
	Era, Token          int64
}

// Environ tells commands what the copy on this node is to be, and whom it follows.
func (a Active) Environ(promoted bool) []string {
	role := "follower"
	if promoted {
		role = "active"
	}
	host, port := printable.SplitPort(a.Address)
	return []string{
		"UNDERSTUDY_ROLE=" + role, "UNDERSTUDY_ACTIVE_NODE=" + a.Node, "UNDERSTUDY_ACTIVE_HOST=" + a.Host,
		"UNDERSTUDY_ACTIVE_ADDRESS=" + host,
		"UNDERSTUDY_ACTIVE_PORT=" + port,
	}
}

// CopyRole is what a copy says that it is.
type CopyRole string

// The roles.
const (
	Unknown  CopyRole = "unknown"
	Follower CopyRole = "follower"
	Primary  CopyRole = "primary"
)

// Exit codes of the role command, as monitors of OCF resource agents have them.
const (
	exitFollower = 0
	exitPrimary  = 8
)

// asking are the commands that steer a copy in a tree.
type asking struct {
	unit  *unit.Unit
	tree  host.Tree
	conf  config.Service
	env   []string
	token int64
}

func (a asking) run(ctx context.Context, command config.Command) (said string, code int, err error) {
	return a.runFor(ctx, command, a.conf.Replicated.Timeout)
}

func (a asking) runFor(ctx context.Context, command config.Command, limit time.Duration) (said string, code int, err error) {
	out, code, err := a.unit.Ask(ctx, a.tree, a.conf.Processes[0], command, a.env, a.token, limit)
	return string(out), code, err
}

// tells reports whether the copy can be asked what it is.
func (a asking) tells() bool { return len(a.conf.Replicated.Role) > 0 }

// role asks what the copy is. why says why that is not known.
func (a asking) role(ctx context.Context) (r CopyRole, why string) {
	if !a.tells() {
		return Unknown, ""
	}
	said, code, err := a.run(ctx, a.conf.Replicated.Role)
	switch {
	case err != nil:
		return Unknown, "role: " + err.Error()
	case code == exitFollower:
		return Follower, ""
	case code == exitPrimary:
		return Primary, ""
	}
	return Unknown, fmt.Sprintf("role: exit code %d%s", code, probe.LastLine([]byte(said)))
}

// hasAll is what a position command prints behind the number where the copy has every write that was acknowledged.
const hasAll = " sync"

// answer is what a copy says of its data.
type answer struct {
	position *uint64 // nil: it is not known, which is not 0
	same     bool    // and yet nothing of it is lost
	all      bool    // it has every write that was acknowledged
	why      string  // there is no position
}

// nothingLost is what a position command prints where the program cannot
// tell how far its data goes, but has lost none of it since it could.
const nothingLost = "same"

// position asks how far the copy's data goes.
func (a asking) position(ctx context.Context) answer {
	if a.conf.Warm != nil {
		return answer{why: "a warm program has no data"}
	}
	said, code, err := a.run(ctx, a.conf.Replicated.Position)
	switch {
	case err != nil:
		return answer{why: "position: " + err.Error()}
	case code != 0:
		return answer{why: fmt.Sprintf("position: exit code %d%s", code, probe.LastLine([]byte(said)))}
	case said == "":
		return answer{why: "it has no position"}
	case said == nothingLost:
		return answer{same: true, why: "it cannot tell its position"}
	}
	number, all := strings.CutSuffix(said, hasAll)
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return answer{why: "position: no number" + probe.LastLine([]byte(said))}
	}
	return answer{position: &n, all: all}
}

func (a asking) order(ctx context.Context, command config.Command) error {
	return failure(a.run(ctx, command))
}

// give gives an order to the copy, whose first process this is.
func (a asking) give(ctx context.Context, first host.Process, o config.Order) error {
	switch method, url := o.Request(); {
	case o.HTTP != "":
		return probe.Probe{Kind: probe.KindHTTP, Target: url, Method: method, Token: a.token}.Check(ctx)
	case o.Signal != 0:
		return first.Signal(syscall.Signal(o.Signal))
	}
	return a.order(ctx, o.Exec)
}

func failure(said string, code int, err error) error {
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d%s", code, probe.LastLine([]byte(said)))
	}
	return err
}

// askAgain is the pause between questions whose answer is about to change.
const askAgain = 50 * time.Millisecond

func (a asking) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.conf.Replicated.Timeout, fmt.Errorf("it took longer than %v", a.conf.Replicated.Timeout))
}

// until waits until the copy says that it is this.
func (a asking) until(ctx context.Context, wanted CopyRole) error {
	for a.tells() {
		r, why := a.role(ctx)
		if r == wanted && ctx.Err() == nil {
			return nil
		}
		if !wait.For(ctx, askAgain) {
			return fmt.Errorf("the order was taken, but role does not say %s: %s: %w",
				wanted, cmp.Or(why, "it says "+string(r)), context.Cause(ctx))
		}
	}
	return nil
}

// ErrDemoted says that a promoted copy is a follower.
var ErrDemoted = errors.New("its copy was promoted, but reports that it is a follower")
