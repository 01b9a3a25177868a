package unit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/wait"
)

// A oneshot may change the machine - an address, a mount - in a way that outlasts its process. We write down the command that undoes it
// before the oneshot starts, so that the next supervisor can run it if this one is killed.

// PendingUndo is an undo command that still has to run.
type PendingUndo struct {
	Name    string        `json:"name"`
	Command []string      `json:"command"`
	Timeout time.Duration `json:"timeout"`
	Token   int64         `json:"token"`
	Undone  []string      `json:"undone,omitempty"`  // says whether nothing is left to undo
	Address *AddressUndo  `json:"address,omitempty"` // that the command removes
	Lasts   bool          `json:"survives_boot,omitempty"`
}

// undoFile is the file of pending undos of one service of one node.
type undoFile struct {
	Node    string `json:"node"`
	Service string `json:"service"`
	Root    string `json:"root"` // of the cluster in ZooKeeper
	// Lasting is the newest term, by its token, whose effects may survive a boot, and Boot the one in which this was written. Then the file
	// is kept where it survives one as well, and stays when nothing is owed: only so it is known that nothing is.
	Lasting      int64         `json:"lasting,omitempty"`
	Boot         string        `json:"boot,omitempty"`
	PendingUndos []PendingUndo `json:"pending_undos"`
}

// pendingEffects are the pending undos that are left in a boot.
func (l undoFile) pendingEffects(boot string) []PendingUndo {
	if l.Boot == "" || l.Boot == boot {
		return l.PendingUndos
	}
	return slices.DeleteFunc(slices.Clone(l.PendingUndos), func(d PendingUndo) bool { return !d.Lasts })
}

// pendingUndos are the commands that undo what oneshots did, the newest last.
type pendingUndos struct {
	node, service, root string
	boot                string // this machine's
	log                 hclog.Logger
	store               Notes
	busy                chan struct{} // capacity 1: full while a goroutine undoes

	mu      sync.Mutex // guards the fields below
	all     []PendingUndo
	lasting int64  // as in the file
	loaded  bool   // whether a previous supervisor's were read
	unread  error  // why a previous supervisor's cannot be read
	unsaved bool   // the file lists what is undone
	fault   string // of the newest attempt to undo one; "": there was none, or it succeeded
}

// ServicesWithUndos names the services with pending undos on a node, whether they are in its config or not.
func ServicesWithUndos(node, cluster string) (services []string) {
	all, _ := noted("*." + cluster + ".undo") // the service that is in the config reports what cannot be read
	for _, left := range all {
		if left.Node == node && left.Service != "" && len(left.PendingUndos) > 0 {
			services = append(services, left.Service)
		}
	}
	return services
}

// TermRef is a term on this machine, as others know it.
type TermRef struct {
	Root, Node, Service string // root "": in whatever cluster
	Token               int64
	Boot                string
	Survive             []string // the effects that another boot does not undo
}

// unknownEffects stands for those of a note that cannot be read.
const unknownEffects = "unknown"

// PendingEffectsOn names the effects that are not undone on this machine, in this boot now, whichever supervisor had them. P2: a note that
// cannot be read is of something. And of what survives a boot only a note shows that nothing is left: none is no proof, as on a new disk.
func PendingEffectsOn(t TermRef, boot string) []string {
	all, broken := noted(undosName(t.Node, t.Service) + ".*.undo")
	if broken {
		return append(t.pendingEffects(boot, all), unknownEffects)
	}
	return t.pendingEffects(boot, all)
}

// PendingEffects is PendingEffectsOn by a note's text.
func (t TermRef) PendingEffects(boot string, text []byte) []string {
	var left undoFile
	_ = json.Unmarshal(text, &left) // nil: nothing
	return t.pendingEffects(boot, []undoFile{left})
}

func (t TermRef) pendingEffects(boot string, all []undoFile) (names []string) {
	settled := t.Boot == boot || len(t.Survive) == 0
	for _, left := range all {
		if left.Node != t.Node || left.Service != t.Service || t.Root != "" && left.Root != t.Root {
			continue
		}
		settled = settled || left.Lasting == t.Token
		for _, d := range left.pendingEffects(boot) {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 && !settled {
		return t.Survive
	}
	return names
}

// add notes a pending undo. P2: what a supervisor cannot find after this one is killed must not be done.
func (d *pendingUndos) add(one PendingUndo) error {
	was := d.lasts()
	if one.Lasts { // last may have failed
		d.keep(one.Token)
	}
	err := d.save(d.change(func(all []PendingUndo) []PendingUndo { return append(all, one) }))
	if err != nil {
		d.keep(was)
		before := d.change(func(all []PendingUndo) []PendingUndo { return all[:len(all)-1] })
		_ = d.save(before) // else the note lists what was not done: it is undone in vain
		return fmt.Errorf("cannot note how to undo it, for a supervisor that is started after this one is killed: %w", err)
	}
	return nil
}

// keep has the note kept as that of a term whose effects may survive a boot.
func (d *pendingUndos) keep(lasting int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lasting = lasting
}

func (d *pendingUndos) change(f func(all []PendingUndo) []PendingUndo) []PendingUndo {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = f(d.all)
	return slices.Clone(d.all)
}

// newest is the pending undo to undo first.
func (d *pendingUndos) newest() (PendingUndo, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return PendingUndo{}, false
	}
	return d.all[len(d.all)-1], true
}

// dropNewest drops the newest.
func (d *pendingUndos) dropNewest() {
	d.noteFault("")
	if err := d.save(d.change(func(all []PendingUndo) []PendingUndo { return all[:len(all)-1] })); err != nil {
		d.log.Warn("cannot save that a oneshot is undone: it is undone once more by the next supervisor",
			"service", d.service, "error", err)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unsaved = true
	}
}

// drop drops the newest, if that is of a program which has done nothing.
func (d *pendingUndos) drop(name string) {
	if newest, owes := d.newest(); owes && newest.Name == name {
		d.dropNewest()
	}
}

// saveDropped saves what dropNewest could not. P6: others ask the file, and take what it lists for not undone.
func (d *pendingUndos) saveDropped() error {
	d.mu.Lock()
	unsaved := d.unsaved
	d.mu.Unlock()
	if !unsaved {
		return nil
	}
	err := d.save(d.list())
	if err != nil {
		err = fmt.Errorf("it is undone, and that cannot be noted: %w", err)
		d.noteFault(err.Error())
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unsaved, d.fault = false, ""
	return nil
}

// noteFault notes why the newest is still there.
func (d *pendingUndos) noteFault(fault string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

// list returns all pending undos.
func (d *pendingUndos) list() []PendingUndo {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// restore takes over a previous image's pending undos. Where there are none, the note is read: it may list what could not be noted as
// undone.
func (d *pendingUndos) restore(all []PendingUndo, lasting int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all, d.lasting, d.loaded = all, lasting, len(all) > 0 // P2: an image that carries none may not have read the note
}

// last has what the next term leaves noted where it survives a boot; token 0: nothing of it does. Nothing is owed.
func (d *pendingUndos) last(token int64) error {
	was := d.lasts()
	if was == token {
		return nil
	}
	d.keep(token)
	err := d.save(nil)
	if err != nil { // the next call tries again
		d.keep(was)
	}
	return err
}

func (d *pendingUndos) lasts() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lasting
}

// load reads, once, the pending undos of a supervisor of this node that was killed.
func (d *pendingUndos) load() {
	d.mu.Lock()
	loaded := d.loaded
	d.loaded = true
	d.mu.Unlock()
	if loaded {
		return
	}
	data, err := d.store.Load()
	if errors.Is(err, fs.ErrNotExist) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unread = nil
		return
	}
	var left undoFile
	if err == nil {
		err = json.Unmarshal(data, &left)
	}
	if err == nil && (left.Node != d.node || left.Service != d.service) {
		err = fmt.Errorf("it is of %s on %s", left.Service, left.Node)
	}
	if err != nil {
		if d.seen(err) {
			d.log.Warn("cannot read which oneshots of a previous supervisor must still be undone",
				"service", d.service, "file", d.store.Path(), "error", err)
			d.unreadable(err)
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unread = nil
	d.all, d.lasting = left.pendingEffects(d.boot), left.Lasting
}

// seen reports whether a file that cannot be read may be there: who may not look into its folder, or finds none, owes nothing.
func (d *pendingUndos) seen(err error) bool {
	if errors.Is(err, wait.ErrNoAnswer) {
		return true
	}
	_, unseen := wait.Reached(context.Background(), &reach, func() (fs.FileInfo, error) { return os.Lstat(d.store.Path()) }, nil)
	return !errors.Is(unseen, fs.ErrNotExist) && !errors.Is(unseen, fs.ErrPermission) && !errors.Is(unseen, unix.ENOTDIR)
}

// unreadable notes that it is not known what to undo, if the folder is ours: in another's anybody may have put anything.
func (d *pendingUndos) unreadable(why error) {
	if foreign(why) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loaded, d.unread = false, fmt.Errorf("not undone: cannot read %s: %w", d.store.Path(), why)
}

// known reads the file again if it could not be read.
func (d *pendingUndos) known() error {
	d.mu.Lock()
	unread := d.unread
	d.mu.Unlock()
	if unread != nil {
		d.load()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unread != nil {
		d.fault = d.unread.Error()
	} else if unread != nil {
		d.fault = ""
	}
	return d.unread
}

// save writes the file.
func (d *pendingUndos) save(all []PendingUndo) error {
	lasting := d.lasts()
	if len(all) == 0 && lasting == 0 {
		return d.store.Save(nil, false)
	}
	return undoFile{d.node, d.service, d.root, lasting, d.boot, all}.save(d.store)
}

// lock keeps two goroutines from undoing at the same time: a term that lost its lease may still do so.
func (d *pendingUndos) lock(ctx context.Context) (unlock func(), ok bool) {
	select {
	case d.busy <- struct{}{}:
		return func() { <-d.busy }, true
	case <-ctx.Done():
		return nil, false
	}
}
