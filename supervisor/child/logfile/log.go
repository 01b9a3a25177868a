package logfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/safefile"
	"understudy/supervisor/wait"
)

// What a caller may branch on.
var (
	ErrInUse   = errors.New("another program writes to this log")
	ErrNotFile = errors.New("a log has to be a regular file")
	// ErrLocked: whoever writes to a pipe can keep its lock in the kernel, as with memory that is a file of a FUSE server.
	ErrLocked = errors.New("another process keeps the pipe locked")
)

// Config is where the output goes. The parent directory is made if it is missing.
type Config struct {
	Path    string
	To      *os.File      // in place of a file at Path, which is only its name: open already, and not ours to rotate or close
	MaxSize int64         // 0: it is never rotated
	Keep    int           // rotated files: Path.1 is the newest
	Who     safefile.Who  // whose program it is
	Drain   time.Duration // for the end of the output, and for writing it down, once Run's context has ended; default 2s
	Logger  hclog.Logger
	Failing func(err error) // is told why nothing can be written, and nil once something can; nil: nobody asks
}

const (
	pipeSize   = 1 << 20
	chunkSize  = 32 << 10 // each program's, also if that is silent
	retryFirst = 100 * time.Millisecond
	retryLast  = time.Second
	partDrain  = 300 * time.Millisecond // in place of Drain for a log that is parted from: what is left is not lost
	briefly    = 50 * time.Millisecond  // for what takes none, unless another process keeps the pipe locked
	hung       = time.Second            // after it, what should have ended hangs in the kernel; half of it if an upgrade waits
)

// Log is one file, and the pipe into it.
type Log struct {
	drain     time.Duration
	log       hclog.Logger
	told      func(error)
	r, w      *os.File
	queue     *queue
	file      *file
	over      chan struct{} // closed when there is no time left to write
	mu        sync.Mutex    // guards unwritten
	unwritten []byte        // what was not written
	closed    sync.Once
	parting   sync.Once
	parted    chan struct{} // closed when what is not written at Run's end goes elsewhere
	locked    atomic.Bool   // Run has ended with ErrLocked
}

// Open makes the pipe. It fails for what an operator has to change: ErrNotFile, a relative path. A file that cannot be opened now, for want
// of space, rights or a directory, or that is ErrInUse, is tried again while Run runs.
func Open(cfg Config) (*Log, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("log %s: pipe: %w", cfg.Path, err)
	}
	for size := pipeSize; size >= 128<<10; size /= 2 { // what an unprivileged user may have is limited
		if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, size); err == nil {
			break
		}
	}
	_ = unix.SetNonblock(fds[0], true) // of this end only: the program expects its own to wait
	r, w := os.NewFile(uintptr(fds[0]), "log reader"), os.NewFile(uintptr(fds[1]), "log writer")
	l, err := Reopen(cfg, r, w, nil)
	if err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	return l, nil
}

// Reopen is Open with the pipe of a log that has parted from it, and what that log left unwritten.
func Reopen(cfg Config, r, w *os.File, rest []byte) (*Log, error) {
	l, err := prepare(cfg)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", cfg.Path, err)
	}
	l.r, l.w = r, w
	if len(rest) > 0 {
		l.queue.restore(rest)
	}
	return l, nil
}

// Who is the user of the program that writes to it.
func (l *Log) Who() safefile.Who { return l.file.writer() }

// Unwritten is the output that a log was parted from before it was written, as when the disk is full. It is known once Run has ended.
func (l *Log) Unwritten() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unwritten
}

// Locked reports whether Run has left the pipe behind, as ErrLocked.
func (l *Log) Locked() bool { return l.locked.Load() }

// Part has Run end at once, and returns the pipe: what the program writes meanwhile stays in it. What was read and not written by
// then is in Unwritten.
func (l *Log) Part() (r, w *os.File, err error) {
	defer func() {
		l.parting.Do(func() { close(l.parted) })
		err = errors.Join(err, l.r.SetReadDeadline(time.Unix(1, 0)))
	}()
	if r, err = duplicate(l.r); err != nil {
		return nil, nil, err
	}
	if w, err = duplicate(l.w); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, w, nil
}

func duplicate(f *os.File) (*os.File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	kept, name := -1, f.Name()
	controlled := conn.Control(func(fd uintptr) { kept, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3) })
	if err = errors.Join(controlled, err); err != nil {
		return nil, fmt.Errorf("copy the pipe: %w", err)
	}
	return os.NewFile(uintptr(kept), name), nil
}

// prepare is all but the pipe.
func prepare(cfg Config) (*Log, error) {
	if cfg.To == nil && !filepath.IsAbs(cfg.Path) {
		return nil, errors.New("its path is not absolute")
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Drain <= 0 {
		cfg.Drain = 2 * time.Second
	}
	if cfg.Failing == nil {
		cfg.Failing = func(error) {}
	}
	l := &Log{
		drain: cfg.Drain, log: cfg.Logger, told: cfg.Failing, queue: newQueue(queueSize),
		over: make(chan struct{}), parted: make(chan struct{}),
	}
	l.file = newFile(cfg)
	err := l.file.open()
	if errors.Is(err, ErrNotFile) {
		return nil, err
	}
	l.failing(err)
	return l, nil
}

// Writer is for the stdout and stderr of any number of programs.
func (l *Log) Writer() *os.File { return l.w }

// Grant gives the pipe to a user, so that a program of that user can open /dev/stdout and /dev/stderr.
func (l *Log) Grant(uid, gid uint32) error { return l.w.Chown(int(uid), int(gid)) }

// CloseWriter says that no more programs are started: Run ends when the last one is dead.
func (l *Log) CloseWriter() error { return wait.Aside(briefly, l.w.Close) }

// Close is for a log whose Run is never called.
func (l *Log) Close() error {
	var err error
	l.closed.Do(func() {
		_ = l.CloseWriter() // often it is closed already
		err = wait.Aside(hung, l.r.Close)
		l.file.close()
	})
	return err
}

// Fault says why nothing can be written at the moment; nil: nothing speaks against it.
func (l *Log) Fault() error {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.fault
}

// Lost counts the lines that were dropped.
func (l *Log) Lost() uint64 {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.total
}

// Reconfigure changes how the file is rotated from now on, and for whose program it is opened.
func (l *Log) Reconfigure(who safefile.Who, maxSize int64, keep int) {
	l.file.reconfigure(who, maxSize, keep)
}

// Run takes the output into the file until the last holder of the writer is gone, or ctx has ended and Drain is over; a
// process that writes then gets EPIPE. It returns when all read output is written, or Drain is over for that. It closes everything, and
// leaves behind what hangs in the kernel.
func (l *Log) Run(ctx context.Context) error {
	var all sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = l.r.SetReadDeadline(time.Now().Add(l.drain)) })
	defer stop()
	read, wrote := make(chan error, 1), make(chan struct{})
	all.Go(func() {
		err := l.read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil // the program outlives its log
		}
		read <- err
	})
	all.Go(func() { defer close(wrote); l.write() })
	err := errors.Join(l.awaitRead(ctx, read), l.awaitWritten(wrote))
	ended := func() (struct{}, error) {
		all.Wait()
		return struct{}{}, l.Close() // of a descriptor that is in use, it waits, too
	}
	switch {
	case errors.Is(err, ErrLocked):
		l.locked.Store(true)
		wait.Stuck.Add(1)
		go func() {
			defer wait.Stuck.Add(-1)
			_, _ = ended()
		}()
	case errors.Is(err, wait.ErrNoAnswer):
		go func() { _, _ = ended() }()
	default:
		bounded, enough := context.WithTimeout(context.WithoutCancel(ctx), l.grace())
		defer enough()
		_, _ = wait.Call(bounded, ended, nil)
	}
	return err
}

// grace is for what should have ended.
func (l *Log) grace() time.Duration {
	if wait.Closed(l.parted) {
		return hung / 2
	}
	return hung
}

// awaitRead waits until the output is read.
func (l *Log) awaitRead(ctx context.Context, read <-chan error) error {
	var drain time.Duration
	select {
	case err := <-read:
		return err
	case <-ctx.Done():
		drain = l.drain
	case <-l.parted:
	}
	last := time.NewTimer(drain + l.grace())
	defer last.Stop()
	select {
	case err := <-read:
		return err
	case <-last.C:
		return fmt.Errorf("log %s: its end is lost: %w", l.file.path, ErrLocked)
	}
}

// awaitWritten waits until what was read is written.
func (l *Log) awaitWritten(wrote <-chan struct{}) error {
	l.queue.close()
	drain, parted := l.drain, wait.Closed(l.parted)
	if parted {
		drain = min(drain, partDrain)
	}
	last := time.NewTimer(drain)
	defer last.Stop()
	select {
	case <-wrote:
		return nil
	case <-last.C:
		close(l.over)
	}
	last.Reset(l.grace())
	select {
	case <-wrote:
		if parted {
			return nil
		}
		return fmt.Errorf("log %s: its end is lost: %w", l.file.path, l.Fault())
	case <-last.C: // it hangs in the kernel, as with a server that does not answer
		return fmt.Errorf("log %s: its end is lost: %w", l.file.path, wait.ErrNoAnswer)
	}
}

// read empties the pipe, whatever happens to the file.
func (l *Log) read() error {
	chunk := make([]byte, chunkSize)
	for {
		n, err := l.r.Read(chunk)
		if n > 0 {
			l.queue.put(chunk[:n])
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the output: %w", err)
		}
	}
}

// write brings everything into the file, in its order, however long that takes.
func (l *Log) write() {
	var batch []byte
	for {
		next, more := l.queue.next(batch)
		if !more {
			return
		}
		batch = next
		pause := retryFirst
		for left := batch; len(left) > 0; {
			if wait.Closed(l.over) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.unwritten = slices.Concat(left, l.queue.remaining())
				return
			}
			n, err := l.file.write(left)
			left = left[n:]
			l.failing(err)
			if err == nil {
				pause = retryFirst
				continue
			}
			again := time.NewTimer(pause)
			select {
			case <-again.C:
			case <-l.over:
				again.Stop()
			}
			pause = min(2*pause, retryLast)
		}
	}
}

// failing says so in the supervisor's own log when it begins and when it ends.
func (l *Log) failing(err error) {
	if err != nil {
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			err = errno // the path is known
		}
	}
	was := l.Fault()
	l.queue.failing(err)
	if (was == nil) != (err == nil) {
		l.told(err)
	}
	switch {
	case was == nil && err != nil:
		l.log.Warn("cannot write a log; the program keeps running", "file", l.file.path, "error", err)
	case was != nil && err == nil:
		l.log.Info("a log can be written again", "file", l.file.path, "lost_lines", l.Lost())
	}
}
