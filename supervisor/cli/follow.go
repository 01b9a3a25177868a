package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// follower watches a config's files, and hands on what becomes of them.
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
	hurried     bool            // who can change them was not looked at for long
	matter      map[string]bool // whose events do: files, links, and directories with all that is in them
	looked      map[string]bool // whose events do, too: warnings may be about them
}

// Several changes that come together are one.
const (
	quiet   = 100 * time.Millisecond // after the last event
	patient = time.Second            // after the first
)

// held is why the config that is in force is not the files', although they can be loaded: the next image must not, as that is no order.
func (f *follower) held() error {
	if why := f.kept.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// asked has the config read anew, whatever the files look like.
func (f *follower) asked() { wait.Poke(f.hangup) }

// run watches until ctx ends.
func (f *follower) run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.log.Error("cannot watch the config file: send SIGHUP to reload it after a change", "error", err)
		watcher = nil
	}
	var events <-chan fsnotify.Event
	var errs <-chan error
	if watcher != nil {
		defer watcher.Close()
		events, errs = watcher.Events, watcher.Errors
	}
	watched := map[string]bool{}
	f.watch(watcher, watched, f.files)
	r := config.Read(f.flags.cluster.Config, f.flags.node)
	// Changed between the start and the watching, or not looked at well.
	if f.watch(watcher, watched, r.Files) || r.Sum != f.sum || f.hurried {
		f.reload(ctx, watcher, watched, false)
	}
	var due <-chan time.Time
	var began time.Time
	for {
		select {
		case ev := <-events:
			// As a log beside the config.
			if !watched[ev.Name] && !f.looked[ev.Name] && !f.matter[ev.Name] && !f.matter[filepath.Dir(ev.Name)] {
				continue
			}
			if ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
				delete(watched, ev.Name) // a directory that comes again is another one
			}
			if due == nil {
				began = time.Now()
			}
			due = time.After(min(quiet, max(patient-time.Since(began), 0)))
		case err := <-errs:
			f.log.Warn("a change of the config may have been missed, reloading it", "error", err)
			due = time.After(quiet)
		case <-due:
			due = nil
			f.reload(ctx, watcher, watched, false)
		case <-f.hangup:
			due = nil
			f.reload(ctx, watcher, watched, true)
			f.read()
		case <-ctx.Done():
			return nil
		}
	}
}

// linked lists all links on the way to a file, each of which may be swapped, and the file itself.
func linked(file string) (paths []string) {
	for range 40 {
		dir, parts := "/", strings.Split(strings.Trim(filepath.Clean(file), "/"), "/")
		next := ""
		for i, part := range parts {
			path := filepath.Join(dir, part)
			if target, err := os.Readlink(path); err == nil {
				paths = append(paths, path)
				if !filepath.IsAbs(target) {
					target = filepath.Join(dir, target)
				}
				next = filepath.Join(append([]string{target}, parts[i+1:]...)...)
				break
			}
			dir = path
		}
		if next == "" {
			return append(paths, dir)
		}
		file = next
	}
	return paths
}

// watch watches directories: a file that is replaced is another one. It tells whether any is new.
func (f *follower) watch(w *fsnotify.Watcher, watched map[string]bool, files config.Files) (more bool) {
	if w == nil {
		return false
	}
	wanted := map[string]bool{}
	f.matter = map[string]bool{}
	for _, dir := range files.Dirs {
		wanted[dir], f.matter[dir] = true, true
	}
	paths := slices.Concat(files.Config, files.Env)
	for _, file := range files.Config {
		paths = append(paths, linked(file)...)
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		wanted[dir], f.matter[path] = true, true
	}
	for dir := range wanted {
		if watched[dir] {
			continue
		}
		if err := w.Add(dir); err != nil {
			f.log.Warn("cannot watch a directory of the config: send SIGHUP to reload after a change there", "directory", dir, "error", err)
			continue
		}
		watched[dir], more = true, true
	}
	for dir := range watched {
		if !wanted[dir] {
			_ = w.Remove(dir) // it may be gone
			delete(watched, dir)
		}
	}
	return more
}

// reload reads the files, and hands on what has changed.
func (f *follower) reload(ctx context.Context, w *fsnotify.Watcher, watched map[string]bool, asked bool) {
	r := config.Read(f.flags.cluster.Config, f.flags.node)
	for range 3 { // what changed before it was watched is read now
		if !f.watch(w, watched, r.Files) {
			break
		}
		r = config.Read(f.flags.cluster.Config, f.flags.node)
	}
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
