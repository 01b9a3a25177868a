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
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor"
	"understudy/supervisor/config"
)

// follower watches a config's files, and hands on what becomes of them.
type follower struct {
	flags   *runFlags
	cmd     *cobra.Command
	log     hclog.Logger
	changes chan<- supervisor.Change
	hangup  chan struct{}
	read    func() // is called when the config has been read because that was asked for

	first, last *config.Config // as this process was started, and as it was handed on last
	fault       string         // that was handed on last
	warned      []string       // of the config that was handed on last
}

// Several changes that come together are one.
const (
	quiet   = 100 * time.Millisecond // after the last event
	patient = time.Second            // after the first
)

func (f *runFlags) follow(cmd *cobra.Command, c *config.Config, log hclog.Logger, changes chan<- supervisor.Change) *follower {
	return &follower{flags: f, cmd: cmd, log: log, changes: changes, hangup: make(chan struct{}, 1), first: c, last: c}
}

// asked has the config read anew, whatever the files look like.
func (f *follower) asked() { poke(f.hangup) }

// run watches until ctx ends.
func (f *follower) run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.log.Error("cannot watch the config: a change is taken up on SIGHUP only", "error", err)
		watcher = nil
	}
	var events <-chan fsnotify.Event
	var errs <-chan error
	if watcher != nil {
		defer watcher.Close()
		events, errs = watcher.Events, watcher.Errors
	}
	watched := map[string]bool{}
	f.watch(watcher, watched, config.Read(f.flags.cluster.Config).Files)
	f.reload(ctx, watcher, watched, false) // it may have changed between the start and the watching
	var due <-chan time.Time
	var began time.Time
	for {
		select {
		case ev := <-events:
			if ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
				delete(watched, ev.Name) // a directory that comes again is another one
			}
			if due == nil {
				began = time.Now()
			}
			due = time.After(min(quiet, max(patient-time.Since(began), 0)))
		case err := <-errs:
			f.log.Warn("a change of the config may have been missed, reading it", "error", err)
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

// linked lists the directories of all links on the way to a file: each of them may be swapped.
func linked(file string) (dirs []string) {
	for range 40 {
		dir, parts := "/", strings.Split(strings.Trim(filepath.Clean(file), "/"), "/")
		next := ""
		for i, part := range parts {
			path := filepath.Join(dir, part)
			if target, err := os.Readlink(path); err == nil {
				dirs = append(dirs, dir)
				if !filepath.IsAbs(target) {
					target = filepath.Join(dir, target)
				}
				next = filepath.Join(append([]string{target}, parts[i+1:]...)...)
				break
			}
			dir = path
		}
		if next == "" {
			return append(dirs, filepath.Dir(dir))
		}
		file = next
	}
	return dirs
}

// watch watches directories: a file that is replaced is another one. It tells whether any is new.
func (f *follower) watch(w *fsnotify.Watcher, watched map[string]bool, files config.Files) (more bool) {
	if w == nil {
		return false
	}
	wanted := map[string]bool{}
	for _, dir := range files.Directories() {
		wanted[dir] = true
	}
	for _, file := range files.Config {
		for _, dir := range linked(file) {
			wanted[dir] = true
		}
	}
	for dir := range wanted {
		if watched[dir] {
			continue
		}
		if err := w.Add(dir); err != nil {
			f.log.Warn("cannot watch a directory of the config: a change there is taken up on SIGHUP only", "directory", dir, "error", err)
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
	r := config.Read(f.flags.cluster.Config)
	for range 3 { // what changed before it was watched is read now
		if !f.watch(w, watched, r.Files) {
			break
		}
		r = config.Read(f.flags.cluster.Config)
	}
	warnings, grave := r.Dangers(lookPatience)
	r = r.Refused(grave)
	c, err := r.Config, r.Err()
	if err == nil {
		err = errors.Join(f.flags.cluster.apply(c), f.flags.override(f.cmd, c), enoughFiles(c))
	}
	var change supervisor.Change
	switch {
	case err != nil:
		change.Fault = oneLine(err)
	default:
		change.Fault = needsRestart(f.first, c)
		change.Services = f.flags.services(c)
	}
	if err == nil {
		change.Warnings = tellDangers(f.log, f.warned, warnings)
	}
	same := change.Fault == f.fault && (err != nil || reflect.DeepEqual(f.last, c) && slices.Equal(f.warned, change.Warnings))
	if same && !asked {
		return
	}
	switch {
	case err != nil:
		f.log.Error("the changed config is not taken up, the former one stays in force", "error", change.Fault)
	case change.Fault != "":
		f.log.Warn("a part of the changed config is not taken up", "why", change.Fault)
	case same:
		f.log.Info("the config has not changed", "file", f.flags.cluster.Config)
	}
	if err == nil {
		f.last, f.warned = c, change.Warnings
		f.log.SetLevel(hclog.LevelFromString(string(c.Log.Level)))
	}
	f.fault = change.Fault
	select {
	case f.changes <- change:
	case <-ctx.Done():
	}
}

// needsRestart tells what of a change a running supervisor cannot take up.
func needsRestart(first, now *config.Config) string {
	var keys []string
	if first.Node != now.Node {
		keys = append(keys, "node:")
	}
	if !reflect.DeepEqual(first.ZooKeeper, now.ZooKeeper) {
		keys = append(keys, "zookeeper:")
	}
	if !reflect.DeepEqual(first.HTTP, now.HTTP) {
		keys = append(keys, "http:")
	}
	if !reflect.DeepEqual(first.Fencing, now.Fencing) {
		keys = append(keys, "fencing:")
	}
	if first.Watchdog != now.Watchdog {
		keys = append(keys, "watchdog:")
	}
	if first.Log.Format != now.Log.Format {
		keys = append(keys, "log.format:")
	}
	held := config.ContainAuto // how this process holds all that it runs
	for _, name := range first.ServiceNames() {
		if c := first.Services[name].Contain; c != config.ContainAuto && (held == config.ContainAuto || held == config.ContainStrict) {
			held = c
		}
	}
	for _, name := range now.ServiceNames() {
		wanted := now.Services[name].Contain
		was, there := first.Services[name]
		suits := wanted == config.ContainAuto || wanted == held || wanted == config.ContainStrict && held != config.ContainAuto
		if there && was.Contain != wanted || !there && !suits {
			keys = append(keys, "services."+name+".contain:")
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return election.NeedsRestart(strings.Join(keys, " and "))
}

// oneLine is the first fault, and how many there are besides.
func oneLine(err error) string {
	var faults config.Faults
	if errors.As(err, &faults) && len(faults) > 0 {
		if more := len(faults) - 1; more > 0 {
			return fmt.Sprintf("%v (and %d more)", faults[0].String(), more)
		}
		return faults[0].String()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
