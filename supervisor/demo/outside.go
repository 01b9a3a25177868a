package demo

import (
	"bufio"
	"errors"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// outside is the witness for a program that does not sign: the supervisors' logs tell when its main process was started,
// the kernel when it ended.
type outside struct {
	over chan struct{}
	wait sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	seen []*life
	live map[*life]bool
}

func newOutside() *outside { return &outside{over: make(chan struct{}), live: map[*life]bool{}} }

func (o *outside) method() string {
	return "from outside, by the start and the end of its main process (to about 10 ms)"
}

func (o *outside) close() {
	close(o.over)
	o.wait.Wait()
}

func (o *outside) lives() []life {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]life, 0, len(o.seen))
	for _, l := range o.seen {
		if o.live[l] {
			l.last = now()
		}
		all = append(all, *l)
	}
	return all
}

// follow reads a node's log as it grows.
func (o *outside) follow(node, path string) {
	o.wait.Go(func() {
		var f *os.File
		var lines *bufio.Reader
		part := ""
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-o.over:
				if f != nil {
					_ = f.Close()
				}
				return
			case <-look.C:
			}
			if f == nil {
				var err error
				if f, err = os.Open(path); err != nil {
					continue
				}
				lines = bufio.NewReader(f)
			}
			for {
				line, err := lines.ReadString('\n')
				part += line
				if err != nil {
					break
				}
				o.read(node, part)
				part = ""
			}
		}
	})
}

var started = regexp.MustCompile(`^(\S+) \[INFO\] +understudy: program started: .*\bpid=(\d+) token=(\d+)`)

func (o *outside) read(node, line string) {
	m := started.FindStringSubmatch(line)
	if m == nil {
		return
	}
	told, err := time.Parse("2006-01-02T15:04:05.000Z0700", m[1])
	if err != nil {
		return
	}
	first := now() - max(time.Since(told), 0)
	l := &life{node: node, first: first, last: first}
	pid, _ := strconv.Atoi(m[2])
	l.token, _ = strconv.ParseInt(m[3], 10, 64)
	fd, err := unix.PidfdOpen(pid, 0)
	o.mu.Lock()
	o.seen = append(o.seen, l)
	o.live[l] = err == nil
	o.mu.Unlock()
	if err == nil {
		o.wait.Go(func() { o.attend(l, fd) })
	}
}

// attend notes the end of a process.
func (o *outside) attend(l *life, fd int) {
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if n > 0 {
			o.mu.Lock()
			l.last = now()
			o.live[l] = false
			o.mu.Unlock()
			return
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		select {
		case <-o.over:
			return
		default:
		}
	}
}
