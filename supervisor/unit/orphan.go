package unit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"understudy/supervisor/config"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/wait"
)

// Note tells a guardian how to undo what a term did, if its supervisor cannot: by the file of pending undos of a service, which lists a
// pending undo before it can exist.
type Note struct {
	Node      string `json:"node"`
	Service   string `json:"service"`
	Cluster   string `json:"cluster"`
	Token     int64  `json:"token"`               // of the term: a later one has its own guardians
	Addresses bool   `json:"addresses,omitempty"` // some pending undos are addresses
}

// AddressUndo is a pending undo that needs no command.
type AddressUndo struct {
	IP     string `json:"ip"`               // with the length of its network
	Device string `json:"device,omitempty"` // "": any
}

// setBy is the address that a oneshot sets; nil: it sets none.
func setBy(prog config.Process) *AddressUndo {
	if prog.Sets == nil {
		return nil
	}
	return &AddressUndo{string(prog.Sets.IP), prog.Sets.Device}
}

// noteUndos tells the guardians that a term may have some, once in a run.
func (r *Run) noteUndos(ctx context.Context) error {
	if r.undosNoted {
		return nil
	}
	n := Note{Node: r.u.cfg.Node, Service: r.u.cfg.Service, Cluster: r.u.cfg.Cluster, Token: r.cfg.Token}
	n.Addresses = slices.ContainsFunc(r.cfg.Conf.Processes, func(p config.Process) bool { return p.Sets != nil })
	note, err := json.Marshal(n)
	if err == nil {
		err = r.cfg.Tree.NoteUndos(ctx, note)
	}
	r.undosNoted = err == nil
	return err
}

// Means are how a process that is no supervisor undoes pending undos.
type Means struct {
	Remove func(a AddressUndo) error // nil: by its command
	// Run runs a command of a pending undo as Unit.Command does, whose word what is; nil: it runs none.
	Run func(ctx context.Context, d PendingUndo, what string, command []string) error
}

// ErrCommand says that the next one is undone by a command, for which there are no means.
var ErrCommand = errors.New("a command has to undo it")

// lockPatience is how long another process that undoes is waited for, beside its timeouts.
const lockPatience = 2 * time.Second

// Store is where the term's pending undos are.
func (n Note) Store() Notes {
	return undosFile(Config{Node: n.Node, Service: n.Service, Cluster: n.Cluster})
}

// Undo undoes what is left of the term, the newest first, and stops at the first that fails. nil: nothing is left. Only one process does so
// at a time; what it has undone, the others find in the file. So a late one does nothing.
func (n Note) Undo(ctx context.Context, store Notes, m Means) error {
	bounded, cancel := context.WithTimeout(ctx, lockPatience)
	unlock, err := store.Lock(bounded)
	cancel()
	if err != nil {
		return err
	}
	defer unlock()
	for {
		left, err := n.load(store)
		if err != nil {
			return err
		}
		last := len(left.PendingUndos) - 1
		if last < 0 || left.PendingUndos[last].Token != n.Token {
			return nil
		}
		d := left.PendingUndos[last]
		if err := m.undo(ctx, d); err != nil {
			for left, hangs := errors.AsType[*unprovedCommand](err); hangs && ctx.Err() == nil; { // P2: nobody else tries beside it
				hangs = endTree(ctx, left.tree) != nil
			}
			return fmt.Errorf("not undone: %s: %w", called(d.Name), err)
		}
		left.PendingUndos = left.PendingUndos[:last]
		// Also if none is left: a supervisor that is frozen learns from it that all is undone.
		if err := left.save(store); err != nil {
			return fmt.Errorf("note that %s is undone: %w", called(d.Name), err)
		}
	}
}

func (n Note) load(store Notes) (left undoFile, err error) {
	data, err := store.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist): // the supervisor removes it once all is undone
		return left, nil
	case err == nil:
		err = json.Unmarshal(data, &left)
	}
	if err == nil && (left.Node != n.Node || left.Service != n.Service) {
		err = fmt.Errorf("it is of %s on %s", left.Service, left.Node)
	}
	if err != nil {
		return left, fmt.Errorf("read %s: %w", store.Path(), err)
	}
	return left, nil
}

// Forget removes the file of pending undos of a service, if none is left.
func (n Note) Forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	store := n.Store()
	release, err := store.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	left, err := n.load(store)
	if err != nil {
		return err
	}
	if len(left.PendingUndos) > 0 {
		return errors.New("something is not undone")
	}
	return store.Save(nil, false)
}

// Undoing is how long undoing all pending undos may take.
func (n Note) Undoing(store Notes) (d time.Duration) {
	left, _ := n.load(store) // what cannot be read is not undone
	for _, one := range left.PendingUndos {
		d += one.Timeout
	}
	return d
}

// undo undoes one pending undo.
func (m Means) undo(ctx context.Context, d PendingUndo) error {
	if d.Address != nil && m.Remove != nil {
		return m.Remove(*d.Address)
	}
	if m.Run == nil {
		return ErrCommand
	}
	return d.run(func(what string, command []string) error { return m.Run(ctx, d, what, command) })
}

// exclude keeps other processes from undoing the same pending undos until unlock, and takes in what they have undone. A file that cannot be
// locked because its folder is not ours is no guardian's either.
func (d *pendingUndos) exclude(ctx context.Context) (unlock func(), err error) {
	newest, owes := d.newest()
	if !owes {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience+2*newest.Timeout)
	defer cancel()
	unlock, err = d.store.Lock(ctx)
	switch {
	case err == nil:
		d.dropUndone()
		return unlock, nil
	case errors.Is(err, keyfile.ErrLocked), d.ours(ctx):
		err = fmt.Errorf("not undone: %s: %w", called(newest.Name), err)
		d.noteFault(err.Error())
		return nil, err
	}
	return func() {}, nil
}

// ours reports whether the folder of the file is ours, or may be: guardians use the file then.
func (d *pendingUndos) ours(ctx context.Context) bool {
	no, err := wait.Call(ctx, func() (error, error) {
		folder, err := keyfile.Folder(filepath.Dir(d.store.Path()), false)
		if err == nil {
			_ = folder.Close()
		}
		return err, nil
	}, nil)
	return err != nil || no == nil || !foreign(no)
}

// dropUndone drops what a guardian has undone meanwhile.
func (d *pendingUndos) dropUndone() {
	var left undoFile
	data, err := d.store.Load()
	if err != nil || json.Unmarshal(data, &left) != nil || left.Node != d.node || left.Service != d.service {
		return
	}
	before := d.list()
	now := d.change(func(all []PendingUndo) []PendingUndo {
		return slices.DeleteFunc(all, func(one PendingUndo) bool {
			same := func(other PendingUndo) bool { return other.Name == one.Name && other.Token == one.Token }
			return !slices.ContainsFunc(left.PendingUndos, same)
		})
	})
	if len(now) == len(before) {
		return
	}
	d.log.Info("a guardian has undone what oneshots did", "service", d.service, "left", len(now))
	d.noteFault("")
	if len(now) == 0 {
		_ = d.save(nil) // else the next supervisor reads that nothing is left
	}
}
