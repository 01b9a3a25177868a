package unit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/notify"
	"understudy/supervisor/keyfile"
)

// A oneshot may change the machine - an address, a mount - in a way that outlasts its process. We write down the command that undoes it
// before the oneshot starts, so that the next supervisor can run it if this one is killed.

// Debt is an undo command that still has to run.
type Debt struct {
	Name    string        `json:"name"`
	Command []string      `json:"command"`
	Timeout time.Duration `json:"timeout"`
	Token   int64         `json:"token"`
	Undone  []string      `json:"undone,omitempty"`  // exits with 0 if nothing is left to undo
	Address *Address      `json:"address,omitempty"` // that the command removes
	tried   bool          // its result is not known
}

// ledger is the file of debts of one service of one node.
type ledger struct {
	Node    string `json:"node"`
	Service string `json:"service"`
	Root    string `json:"root,omitempty"` // of the cluster in ZooKeeper; "": an older version does not say
	Debts   []Debt `json:"debts"`
}

// debts are the commands that undo what oneshots did, the newest last.
type debts struct {
	node, service, root string
	log                 hclog.Logger
	store               Notes
	busy                chan struct{} // capacity 1: full while a goroutine undoes

	mu     sync.Mutex // guards the fields below
	all    []Debt
	loaded bool   // whether a former supervisor's were read
	unread error  // why a former supervisor's cannot be read
	fault  string // of the newest attempt to undo one; "": there was none, or it succeeded
}

// Notes is where one service's debts are kept for the next supervisor. It loses them when the machine boots. Load says fs.ErrNotExist if
// there are none, and Save(nil) removes them. Lock excludes other processes that undo them.
type Notes interface {
	Path() string
	Lock(ctx context.Context) (unlock func(), err error)
	Load() ([]byte, error)
	Save(data []byte) error
}

// debtsFolder is emptied when the machine boots: an address is gone then, too. We run the commands that we read there. So a folder that another
// user made is refused: where /run is open to all, as in some containers, they can make it before us, and swap it at any time.
func debtsFolder() string { return cmp.Or(debtsDir, notify.DefaultDir()) }

var debtsDir string // tests set it

// debtsFile is a name that no other node or service has. It is a hash: names may hold any separator, and may be long.
func debtsFile(c Config) Notes {
	if c.Notes != nil {
		return c.Notes
	}
	return &keyfile.Store{Dir: debtsFolder(), Name: debtsName(c.Node, c.Service) + "." + c.Cluster + ".undo"}
}

func debtsName(node, service string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", node, service)
	return strconv.FormatUint(h.Sum64(), 36)
}

// Indebted names the services with debts on a node, whether they are in its config or not.
func Indebted(node, cluster string) (services []string) {
	all, _ := noted("*." + cluster + ".undo") // the service that is in the config reports what cannot be read
	for _, left := range all {
		if left.Node == node && left.Service != "" {
			services = append(services, left.Service)
		}
	}
	return services
}

// OwedOn names the effects of a service that a node on this machine has not undone, whichever supervisor had them; root "": in whatever
// cluster. P2: a note that cannot be read is of something.
func OwedOn(root, node, service string) (names []string) {
	all, broken := noted(debtsName(node, service) + ".*.undo")
	if broken {
		names = append(names, "unknown")
	}
	for _, left := range all {
		if left.Node == node && left.Service == service && (root == "" || left.Root == "" || left.Root == root) {
			for _, d := range left.Debts {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

// noted are the files of debts of this machine.
func noted(pattern string) (all []ledger, broken bool) {
	folder, err := keyfile.Folder(debtsFolder(), false)
	if err != nil {
		return nil, false
	}
	defer folder.Close()
	files, _ := fs.Glob(folder.FS(), pattern) // a bad pattern is the only error
	for _, file := range files {
		var left ledger
		data, err := keyfile.ReadIn(folder, file)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is undone by now
		case err == nil && json.Unmarshal(data, &left) == nil:
			all = append(all, left)
		default:
			broken = true
		}
	}
	return all, broken
}

// add notes a debt. P2: what a supervisor cannot find after this one is killed must not be done.
func (d *debts) add(one Debt) error {
	err := d.save(d.change(func(all []Debt) []Debt { return append(all, one) }))
	if err != nil {
		d.change(func(all []Debt) []Debt { return all[:len(all)-1] })
		return fmt.Errorf("cannot note how to undo it, for a supervisor that is started after this one is killed: %w", err)
	}
	return nil
}

func (d *debts) change(f func(all []Debt) []Debt) []Debt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = f(d.all)
	return slices.Clone(d.all)
}

// newest is the debt to undo first.
func (d *debts) newest() (Debt, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return Debt{}, false
	}
	return d.all[len(d.all)-1], true
}

// settle drops the newest.
func (d *debts) settle() {
	d.blame("")
	if err := d.save(d.change(func(all []Debt) []Debt { return all[:len(all)-1] })); err != nil {
		d.log.Warn("cannot save that a oneshot is undone: it is undone once more by the next supervisor", "service", d.service, "error", err)
	}
}

// blame notes why the newest is still there.
func (d *debts) blame(fault string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

// try notes that the newest may be undone from now on, and reports whether it may have been before.
func (d *debts) try() (before bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	newest := &d.all[len(d.all)-1]
	before, newest.tried = newest.tried, true
	return before
}

// list returns all debts.
func (d *debts) list() []Debt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// restore takes over a former image's debts.
func (d *debts) restore(all []Debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all, d.loaded = all, true
}

// load reads, once, the debts of a supervisor of this node that was killed.
func (d *debts) load() {
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
	var left ledger
	if err == nil {
		err = json.Unmarshal(data, &left)
	}
	if err == nil && (left.Node != d.node || left.Service != d.service) {
		err = fmt.Errorf("it is of %s on %s", left.Service, left.Node)
	}
	if err != nil {
		if _, there := os.Lstat(d.store.Path()); errors.Is(err, keyfile.ErrNoAnswer) || there == nil { // who cannot see it owes nothing
			d.log.Warn("cannot read which oneshots of a previous supervisor must still be undone", "service", d.service, "file", d.store.Path(), "error", err)
			d.unreadable(err)
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unread = nil
	for i := range left.Debts {
		left.Debts[i].tried = true // by a supervisor that was killed, perhaps
	}
	d.all = left.Debts
}

// unreadable notes that it is not known what to undo, if the folder is ours: in another's anybody may have put anything.
func (d *debts) unreadable(why error) {
	folder, err := keyfile.Folder(debtsFolder(), false)
	if err != nil {
		return
	}
	_ = folder.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loaded, d.unread = false, fmt.Errorf("not undone: cannot read %s: %w", d.store.Path(), why)
}

// known reads the file again if it could not be read.
func (d *debts) known() error {
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
func (d *debts) save(all []Debt) error {
	if len(all) == 0 {
		return d.store.Save(nil)
	}
	data, err := json.Marshal(ledger{d.node, d.service, d.root, all})
	if err != nil {
		return err
	}
	return d.store.Save(data)
}

// lock keeps two goroutines from undoing at the same time: a term that lost its lease may still do so.
func (d *debts) lock(ctx context.Context) (unlock func(), ok bool) {
	select {
	case d.busy <- struct{}{}:
		return func() { <-d.busy }, true
	case <-ctx.Done():
		return nil, false
	}
}
