package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/chaos/page"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// folders makes what is kept: the report, the history, and the logs.
func (k *keeper) folders(o options) (err error) {
	if k.dir = o.dir; k.dir == "" {
		if k.dir, err = os.MkdirTemp("", "understudy-chaos-"); err != nil {
			return err
		}
	}
	if k.dir, err = filepath.Abs(k.dir); err != nil {
		return err
	}
	k.logs = filepath.Join(k.dir, "logs")
	if err := errors.Join(os.RemoveAll(k.logs), os.MkdirAll(k.logs, 0o755)); err != nil {
		return err
	}
	if o.sabotage == "" {
		return nil
	}
	exe, err := sabotaged(o.sabotage, k.dir)
	if err != nil {
		return err
	}
	return os.Setenv("UNDERSTUDY_BINARY", exe)
}

// end stops everything in the orderly way, and judges the whole. Nothing may be left.
func (w *world) end() (*history.History, []history.Violation) {
	w.tasks.end()
	w.heal()
	w.mu.Lock()
	stopped := tick.Now()
	for _, n := range w.fleet.nodes {
		n.down = true
		n.sup.Signal(syscall.SIGTERM)
	}
	w.mu.Unlock()
	for _, n := range w.fleet.nodes {
		if !kit.Reached(20*time.Second, func() bool { return !n.sup.Running() }) {
			w.mu.Lock()
			w.record.wrongly("stuck", "the supervisor on "+n.name+" does not stop")
			w.mu.Unlock()
		}
	}
	kit.Reached(time.Second, func() bool { // the ends have been noted
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(w.record.past.Lives, func(l history.Life) bool { return l.To == 0 })
	})
	if !kit.Reached(bounds.Orphan, func() bool { return len(w.book.running()) == 0 }) {
		left := w.book.running()
		w.mu.Lock()
		w.record.wrongly("orphan", fmt.Sprintf("after the end, something still runs: %v", left))
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h, err := w.record.judged(true)
	if err != nil {
		w.Error(err)
	}
	h.Ended = stopped
	h.Roles = w.record.roles()
	wrong := slices.Concat(h.Check(), w.record.wrong, w.record.mistrust())
	slices.SortFunc(wrong, func(a, b history.Violation) int { return int(a.At - b.At) })
	return h, wrong
}

// kept is what history.json holds.
type kept struct {
	*history.History
	Wrong []history.Violation
}

const (
	historyFile = "history.json"
	reportFile  = "report.html"
)

// keepLogs copies the servers' logs.
func (en *ensemble) keepLogs(dir string) error {
	for i, z := range en.servers {
		text, err := os.ReadFile(en.stage.ZK.LogFile(i))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, z.host.Name+".log"), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep writes report and history, beside the logs.
func (k *keeper) keep(h *history.History, wrong []history.Violation) error {
	text, err := json.Marshal(kept{h, wrong})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(k.dir, historyFile), text, 0o644); err != nil {
		return err
	}
	return writeReport(filepath.Join(k.dir, reportFile), h, wrong)
}

func writeReport(path string, h *history.History, wrong []history.Violation) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := page.Write(f, h, wrong); err != nil {
		return err
	}
	return f.Close()
}

// judgeKept judges a history again, without running anything.
func judgeKept(path string) int {
	text, err := os.ReadFile(path)
	k := kept{History: &history.History{}}
	if err == nil {
		read := json.NewDecoder(bytes.NewReader(text))
		read.DisallowUnknownFields() // what another version kept is not judged by half
		err = read.Decode(&k)
	}
	if err == nil {
		k.Wrong = k.Check()
		err = writeReport(filepath.Join(filepath.Dir(path), reportFile), k.History, k.Wrong)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if !verdict(k.History, k.Wrong, "") {
		return 1
	}
	return 0
}
