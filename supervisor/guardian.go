package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/address"
	"understudy/supervisor/child"
	"understudy/supervisor/child/guardian"
	"understudy/supervisor/child/runas"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/host"
	"understudy/supervisor/unit"
)

// Guardian is the main function of a guardian process. It outlives its supervisor until it has killed the supervisor's programs, and has
// given its locks back.
func Guardian() int {
	return guardian.Main(guardian.Duties{Close: closeSession, Undo: undoer})
}

func closeSession(ctx context.Context, c guard.Closing) error {
	end := election.EndedBy(time.Now().Add(c.DiedAt - wire.Now()))
	if c.Exactly {
		end.Min = end.Max
	}
	return election.CloseEncoded(ctx,
		election.Closing{Ticket: c.Ticket, Dead: c.Releases, Undone: c.Undone, Left: c.Left, End: end, All: c.All}, nil)
}

// undoer is that of this machine's guardians, as guardian.Duties takes it. An address is removed over a socket that is opened now. What a
// command undoes is undone by another process, as a supervisor that is started here would do it: under guardians of its own.
func undoer(note []byte) (guardian.Effects, error) {
	o, err := readOrphan(note)
	if err != nil {
		return nil, err
	}
	if o.Addresses {
		r, err := address.NewRemover()
		if err != nil {
			return nil, err
		}
		o.remover = r
	}
	return o, nil
}

// orphaned is what a term did, and how to undo it without the supervisor that did it.
type orphaned struct {
	unit.Note
	host.UndoNote
	data    []byte
	remover *address.Remover // nil: there is no address
}

func readOrphan(data []byte) (*orphaned, error) {
	o := &orphaned{data: data}
	err := json.Unmarshal(data, &o.UndoNote)
	if err == nil {
		err = json.Unmarshal(o.UndoNote.Note, &o.Note)
	}
	if err != nil {
		return nil, fmt.Errorf("read how to undo what is done: %w", err)
	}
	return o, nil
}

// Close implements guardian.Effects.
func (o *orphaned) Close() {
	if o.remover != nil {
		o.remover.Close()
	}
}

// Undo implements guardian.Effects.
func (o *orphaned) Undo(ctx context.Context) error {
	m := unit.Means{}
	if o.remover != nil {
		m.Remove = func(a unit.AddressUndo) error {
			ip, err := netip.ParsePrefix(a.IP)
			if err != nil {
				return err
			}
			return o.remover.Remove(address.Address{Prefix: ip, Device: a.Device})
		}
	}
	err := o.Note.Undo(ctx, o.Store(), m)
	if errors.Is(err, unit.ErrCommand) {
		return o.byCommand(ctx)
	}
	return err
}

// UndoCommand is the hidden command that undoes what a guardian cannot; it calls UndoOrphan.
const UndoCommand = "undo"

// byCommand starts the process, and waits for its end.
func (o *orphaned) byCommand(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "/proc/self/exe", UndoCommand)
	cmd.Args[0], cmd.Dir, cmd.Env = "understudy", "/", runas.Environ()
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(o.data), &said, time.Second
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); lines[len(lines)-1] != "" {
		return errors.New(lines[len(lines)-1])
	}
	return err
}

// startWithin is how long a process that undoes may take beside the commands.
const startWithin = 30 * time.Second

// limit is how long the process may live: its guardians end a command in time, and all of them when it ends.
func (o *orphaned) limit() time.Duration { return startWithin + 2*o.Undoing(o.Store()) }

// UndoOrphan undoes what a term did, by its commands, in the place of a supervisor: each in a container, under guardians of its own.
func UndoOrphan(ctx context.Context, note []byte, log hclog.Logger) error {
	o, err := readOrphan(note)
	if err != nil {
		return err
	}
	g, err := host.This(nil, o.Root, false, nil).Guard(ctx, o.Contain, o.Node, log)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- g.Run(running) }()
	err = o.Note.Undo(ctx, o.Store(), unit.Means{Run: o.under(g, log)})
	stop()
	return errors.Join(err, <-ended)
}

// under runs the commands of pending undos under a guard.
func (o *orphaned) under(g host.Guard, log hclog.Logger) func(context.Context, unit.PendingUndo, string, []string) error {
	commands := unit.NewCommands(func() host.Guard { return g }, wire.Now)
	u := unit.New(unit.Config{Service: o.Service, Node: o.Node, Cluster: o.Cluster, Logger: log, Commands: commands})
	return func(ctx context.Context, d unit.PendingUndo, what string, command []string) error {
		bounded, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		if left := g.Leftover(bounded, o.Service, nil); left != nil { // P2: an undo that hangs goes on, when all looks undone
			return fmt.Errorf("an earlier attempt has not ended: %v", left)
		}
		return u.Command(ctx, what, child.Spec{Argv: command, Env: u.Facts(d.Token)}, d.Timeout)
	}
}
