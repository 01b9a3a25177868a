package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// follower looks at a config's files, and hands on what becomes of them.
type follower struct {
	flags   *runFlags
	cmd     *cobra.Command
	log     hclog.Logger
	changes chan<- supervisor.Change
	keys    *agent.Keys // of this node's agent; nil: it has none
	hangup  chan struct{}
	read    func() // is called when the config has been read because that was asked for

	first, last *config.Config // as this process was started, and as it was handed on last
	fault       string         // that was handed on last
	sum         string         // of the files, in force
	warned      []string       // of the config that was handed on last
	files       config.Files   // that were handed on last
	kept        atomic.Pointer[string]
	newest      config.Files    // that were read last
	looked      map[string]bool // warnings may be about them
	reach       wait.Reach
}

// lookEvery is how often the files are looked at. What has changed is read once it is the same at two looks.
const lookEvery = time.Second

// held is why the config that is in force is not the files', although they can be loaded: the next image must not, as that is no order.
func (f *follower) held() error {
	if why := f.kept.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// asked has the config read anew, whatever the files look like.
func (f *follower) asked() { wait.Poke(f.hangup) }

// run looks until ctx ends. The files are read soon after the start: they may have changed since, or were not looked at for long.
func (f *follower) run(ctx context.Context) error {
	f.newest = f.files
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	before, taken := f.state(ctx), ""
	for {
		select {
		case <-tick.C:
			now := f.state(ctx)
			if now != "" && now != taken && now == before {
				taken = now
				f.reload(ctx, false)
			}
			before = now
		case <-f.hangup:
			f.reload(ctx, true)
			f.read()
		case <-ctx.Done():
			return nil
		}
	}
}

// state changes whenever one of the files does, or its owner or its rights, and when a file comes into a folder of which all are read. It
// is "" while a file system does not answer.
func (f *follower) state(ctx context.Context) string {
	paths := slices.Concat(f.newest.Config, f.newest.Dirs, slices.Sorted(maps.Keys(f.looked)))
	sum, _ := wait.Reached(ctx, &f.reach, func() (string, error) {
		all := fnv.New128a()
		for _, path := range paths {
			var is unix.Stat_t
			err := unix.Stat(path, &is)
			fmt.Fprintln(all, path, err, is.Dev, is.Ino, is.Size, is.Mtim, is.Ctim)
		}
		return string(all.Sum(nil)), nil
	}, nil)
	return sum
}

// reload reads the files, and hands on what has changed.
func (f *follower) reload(ctx context.Context, asked bool) {
	r := config.Read(f.flags.cluster.Config, f.flags.node)
	f.newest = r.Files
	l, err := f.flags.settle(f.cmd, r)
	if l.looked != nil {
		f.looked = l.looked
	}
	c := l.Config
	if err == nil && len(c.Services) == 0 && len(f.last.Services) > 0 { // as a file that was cut off while it was written
		err = fmt.Errorf("%s has no services any more: nothing is stopped; to stop all of them, stop understudy", f.flags.cluster.Config)
	}
	if err == nil && !asked {
		err = r.Files.Emptied(f.files)
	}
	var change supervisor.Change
	f.kept.Store(nil)
	if err != nil {
		change.Fault = oneLine(err)
		f.kept.Store(&change.Fault)
	} else {
		if keys := f.first.NeedsRestart(c); len(keys) > 0 {
			change.Restart, change.Fault = true, election.NeedsRestart(strings.Join(keys, " and "))
		}
		change.Sum = l.sum
		change.Services = services(c, false, f.keys)
		change.Warnings = tellDangers(f.log, f.warned, l.warnings)
	}
	same := change.Fault == f.fault &&
		(err != nil || reflect.DeepEqual(f.last, c) && slices.Equal(f.warned, change.Warnings) && f.sum == l.sum)
	if same && !asked {
		return
	}
	switch {
	case err != nil:
		f.log.Error("the changed config is not loaded, the previous one stays in force", "error", change.Fault)
	case change.Fault != "":
		f.log.Warn("a part of the changed config is not loaded", "why", change.Fault)
	case same:
		f.log.Info("the config has not changed", "file", f.flags.cluster.Config)
	}
	if err == nil {
		f.last, f.warned, f.sum, f.files = c, change.Warnings, l.sum, l.files
		f.log.SetLevel(hclog.LevelFromString(string(c.Log.Level)))
	}
	f.fault = change.Fault
	select {
	case f.changes <- change:
	case <-ctx.Done():
	}
}

// oneLine is the first fault, and how many there are besides.
func oneLine(err error) string {
	if faults, ok := errors.AsType[config.Faults](err); ok && len(faults) > 0 {
		if more := len(faults) - 1; more > 0 {
			return fmt.Sprintf("%v (and %d more)", faults[0].String(), more)
		}
		return faults[0].String()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
