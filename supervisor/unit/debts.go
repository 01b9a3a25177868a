package unit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

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
}

// ledger is the file of debts of one service of one node.
type ledger struct {
	Node    string `json:"node"`
	Service string `json:"service"`
	Debts   []Debt `json:"debts"`
}

// debts are the commands that undo what oneshots did, the newest last.
type debts struct {
	node, service, file string
	log                 hclog.Logger
	busy                chan struct{} // capacity 1: full while a goroutine undoes

	mu     sync.Mutex // guards the fields below
	all    []Debt
	loaded bool // whether a former supervisor's were read
}

// debtsDir is emptied when the machine boots: an address is gone then, too. We run the commands that we read there. So a folder that another
// user made is refused: where /run is open to all, as in some containers, they can make it before us, and swap it at any time.
var debtsDir = "/run/understudy"

// debtsFile is a name that no other node or service has. It is a hash: names may hold any separator, and may be long.
func debtsFile(c Config) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", c.Node, c.Service)
	return filepath.Join(debtsDir, strconv.FormatUint(h.Sum64(), 36)+"."+c.Cluster+".undo")
}

// Indebted names the services with debts on a node, whether they are in its config or not.
func Indebted(node, cluster string) (services []string) {
	folder, err := keyfile.Folder(debtsDir, false)
	if err != nil {
		return nil
	}
	defer folder.Close()
	files, _ := fs.Glob(folder.FS(), "*."+cluster+".undo") // a bad pattern is the only error
	for _, file := range files {
		var left ledger
		data, err := keyfile.ReadIn(folder, file)
		if err == nil && json.Unmarshal(data, &left) == nil && left.Node == node && left.Service != "" {
			services = append(services, left.Service)
		}
	}
	return services
}

// add notes a debt.
func (d *debts) add(one Debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, one)
	d.write()
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
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = d.all[:len(d.all)-1]
	d.write()
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
	defer d.mu.Unlock()
	if d.loaded {
		return
	}
	d.loaded = true
	data, err := d.read()
	if _, there := os.Lstat(d.file); err != nil && (errors.Is(err, fs.ErrNotExist) || there != nil) {
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
		d.log.Warn("cannot read which oneshots of a former supervisor must still be undone", "service", d.service, "file", d.file, "error", err)
		return
	}
	d.all = left.Debts
}

func (d *debts) read() ([]byte, error) {
	folder, err := keyfile.Folder(debtsDir, false)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return keyfile.ReadIn(folder, filepath.Base(d.file))
}

// write writes the file. The caller holds mu.
func (d *debts) write() {
	err := d.save()
	if err != nil {
		d.log.Warn("cannot save the list of oneshots to undo; if this supervisor is killed, they are not undone", "service", d.service, "error", err)
	}
}

func (d *debts) save() error {
	if err := os.MkdirAll(debtsDir, 0o755); err != nil {
		return err
	}
	folder, err := keyfile.Folder(debtsDir, false)
	if err != nil {
		return err
	}
	defer folder.Close()
	name := filepath.Base(d.file)
	if len(d.all) == 0 {
		if err := folder.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(ledger{d.node, d.service, d.all})
	if err != nil {
		return err
	}
	if err := folder.WriteFile(name+"~", data, 0o600); err != nil {
		return err
	}
	return folder.Rename(name+"~", name)
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
