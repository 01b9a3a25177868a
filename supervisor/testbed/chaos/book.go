package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/store"
	"understudy/supervisor/testbed/kit/tick"
)

// book reads the accounts that all processes of all programs keep, again and again. What has been silent for a while is
// put aside, so that looking stays cheap; it is read once more at the end.
type book struct {
	dir     string
	journal string
	stop    chan struct{}
	done    sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	runs map[string]history.Run
}

const (
	lookEvery = 50 * time.Millisecond
	silent    = 8 * time.Second
	fresh     = 400 * time.Millisecond
	aside     = "aside"
)

func newBook(w *world) *book {
	dir, err := os.MkdirTemp("/dev/shm", "understudy-chaos-")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { os.RemoveAll(dir) })
	b := &book{dir: dir, journal: filepath.Join(dir, "journal"), stop: make(chan struct{}), runs: map[string]history.Run{}}
	for _, s := range services {
		if err := os.MkdirAll(filepath.Join(dir, s.name, aside), 0o755); err != nil {
			w.Fatal(err)
		}
	}
	b.done.Go(func() {
		for again := time.NewTicker(lookEvery); ; {
			select {
			case <-again.C:
				b.read()
			case <-b.stop:
				again.Stop()
				return
			}
		}
	})
	w.Cleanup(func() { close(b.stop); b.done.Wait() })
	return b
}

func (b *book) folder(service string) string { return filepath.Join(b.dir, service) }

func (b *book) read() {
	for _, s := range services {
		files, _ := filepath.Glob(filepath.Join(b.folder(s.name), "*.tick")) // the pattern is well formed
		b.note(s.name, files)
		for _, file := range files {
			if _, last, ok := tick.Read(file); ok && tick.Now()-last > int64(silent) {
				_ = os.Rename(file, filepath.Join(b.folder(s.name), aside, filepath.Base(file))) // a beat still finds it
			}
		}
	}
}

// note adds what files tell of runs.
func (b *book) note(service string, files []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range kit.ReadRuns(files) {
		key := service + r.ID
		if known, ok := b.runs[key]; ok {
			r.First, r.Last = min(r.First, known.First), max(r.Last, known.Last)
			r.Pid = cmp.Or(r.Pid, known.Pid)
		}
		b.runs[key] = history.Run{Run: r, Service: service}
	}
}

// running is what shows signs of life, by service.
func (b *book) running() map[string][]history.Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string][]history.Run{}
	now := tick.Now()
	for _, r := range b.runs {
		if now-r.Last < int64(fresh) {
			all[r.Service] = append(all[r.Service], r)
		}
	}
	return all
}

// pid is that of a run's main process, or zero when it is not what it was.
func (b *book) pid(r history.Run) int {
	if r.Pid != 0 && strings.Contains(kit.CommandLine(r.Pid), "dir="+b.folder(r.Service)+" ") {
		return r.Pid
	}
	return 0
}

// fill adds to a history what the book has. At the end, everything is read again.
func (b *book) fill(h *history.History, whole bool) error {
	if whole {
		for _, s := range services {
			files, _ := filepath.Glob(filepath.Join(b.folder(s.name), aside, "*.tick"))
			b.note(s.name, files)
		}
	}
	b.read()
	b.mu.Lock()
	h.Runs = nil
	for _, r := range b.runs {
		h.Runs = append(h.Runs, r)
	}
	b.mu.Unlock()
	slices.SortFunc(h.Runs, func(a, b history.Run) int { return cmp.Compare(a.First, b.First) })
	if h.Denials = nil; !whole {
		return b.denials(h)
	}
	for i, r := range h.Runs {
		id := tick.ID{Node: r.Node, Token: r.Token, Run: r.ID, Kind: "main", Pid: r.Pid}
		name := strings.TrimSuffix(id.Name(), ".tick") + ".acks"
		h.Runs[i].Acked = store.ReadAcks(filepath.Join(b.folder(r.Service), name))
	}
	writes, err := store.ReadJournal(b.journal)
	if err != nil {
		return err
	}
	h.Writes = writes
	return b.denials(h)
}

func (b *book) denials(h *history.History) error {
	for _, s := range services {
		text, err := os.ReadFile(filepath.Join(b.folder(s.name), "mutex.denied"))
		if err != nil {
			continue // nobody was denied anything
		}
		for line := range strings.Lines(string(text)) {
			d := history.Denial{Service: s.name}
			if _, err := fmt.Sscan(line, &d.At, &d.Node, &d.Token, &d.Run); err != nil {
				return fmt.Errorf("denials of %s: %w", s.name, err)
			}
			h.Denials = append(h.Denials, d)
		}
	}
	return nil
}
