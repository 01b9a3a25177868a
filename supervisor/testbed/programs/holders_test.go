package programs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/kit"
)

// holders watches the files of a directory that a program opens at its start and keeps open as long as it lives. The kernel
// tells of each opening and closing, in their order, and closes a file before the end of a process can be seen: were two
// programs alive at once, one would open a file that the other has not closed.
type holders struct {
	dir    string
	mu     sync.Mutex // guards what follows
	open   map[string]int
	opened map[string]int
	double []string
}

// watchHolders watches those files of a directory whose names end so.
func watchHolders(t *testing.T, dir, suffix string) *holders {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_OPEN|unix.IN_CLOSE)
	must(t, err)
	h := &holders{dir: dir, open: map[string]int{}, opened: map[string]int{}}
	events := os.NewFile(uintptr(fd), "inotify")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, 64<<10); ; {
			n, err := events.Read(buf)
			if err != nil {
				return // it is closed
			}
			for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
				length := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
				name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:length], "\x00"))
				h.note(binary.NativeEndian.Uint32(rest[4:]), name, strings.HasSuffix(name, suffix))
				rest = rest[length:]
			}
		}
	}()
	t.Cleanup(func() { events.Close(); <-done })
	return h
}

func (h *holders) note(mask uint32, name string, counts bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		h.double = append(h.double, "events were lost")
	case mask&unix.IN_OPEN != 0:
		h.opened[name]++
		h.open[name]++
		if counts && h.open[name] > 1 {
			h.double = append(h.double, fmt.Sprintf("%s was opened, for the %dth time, while another had it open", name, h.opened[name]))
		}
	case mask&unix.IN_CLOSE != 0:
		h.open[name]--
	}
}

// told returns what is wrong, once all that has happened so far has been told.
func (h *holders) told(t *testing.T) []string {
	t.Helper()
	mark := fmt.Sprint("mark-", count.Add(1))
	must(t, os.WriteFile(filepath.Join(h.dir, mark), nil, 0o600))
	must(t, os.Remove(filepath.Join(h.dir, mark)))
	kit.Until(t, soon, "the kernel has told of the mark", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.opened[mark] > 0
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.double
}

// check demands that no two programs ever ran at once, and that, if there were two now, it would be noticed.
func (h *holders) check(t *testing.T, file string) {
	t.Helper()
	for _, fault := range h.told(t) {
		t.Errorf("two at once: %s", fault)
	}
	f, err := os.Open(filepath.Join(h.dir, file))
	must(t, err)
	defer f.Close()
	if len(h.told(t)) == 0 {
		t.Errorf("%s is not held open by the running program, so that nothing was checked", file)
	}
}
