package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// Ensemble is a set of real servers, numbered from 0. Its methods may be called at the same time.
type Ensemble struct {
	cfg     Config
	servers []*server
	ownDir  string // to be removed at the end

	starts  chan startOrder
	wipes   atomic.Int64
	running sync.WaitGroup
	close   sync.Once
	closed  error
}

type startOrder struct {
	server *server
	done   chan error
}

// Start is New for a test: it needs the servers installed, and ends them with the test.
func Start(tb testing.TB, cfg Config) *Ensemble {
	tb.Helper()
	Need(tb)
	if cfg.Dir == "" {
		cfg.Dir = tb.TempDir()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := New(ctx, cfg)
	must.OK(tb, err)
	tb.Cleanup(func() {
		must.Report(tb, e.Close())
	})
	return e
}

// New starts an ensemble and waits until it serves. Close must be called at the end.
func New(ctx context.Context, cfg Config) (*Ensemble, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if !need.Has("zookeeper") {
		return nil, errors.New("no ZooKeeper here: apt-get install zookeeper libslf4j-java")
	}
	e := &Ensemble{cfg: cfg, starts: make(chan startOrder)}
	if cfg.Dir == "" {
		if e.ownDir, err = os.MkdirTemp("", "understudy-zk-"); err != nil {
			return nil, err
		}
		e.cfg.Dir = e.ownDir
	}
	e.running.Go(e.starter)
	if err := e.launch(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Ensemble) launch(ctx context.Context) error {
	for i := range e.cfg.Servers {
		s := &server{index: i, host: e.cfg.Addrs[i], dir: filepath.Join(e.cfg.Dir, strconv.Itoa(i))}
		e.servers = append(e.servers, s)
		if err := s.lease(); err != nil {
			return err
		}
	}
	for _, s := range e.servers {
		if err := e.cfg.write(s, e.servers); err != nil {
			return err
		}
	}
	for i := range e.servers {
		if err := e.StartServer(i); err != nil {
			return err
		}
	}
	return e.WaitReady(ctx)
}

// starter starts every process from one thread that lives as long as the ensemble: when the thread that forked a
// child ends, the kernel takes that for the parent's death.
func (e *Ensemble) starter() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for order := range e.starts {
		cmd := e.cfg.command(order.server)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if e.cfg.Wrap != nil {
			e.cfg.Wrap(order.server.index, cmd)
		}
		order.done <- order.server.start(cmd, &e.running)
	}
}

// Close kills what still runs, waits for it, and gives ports and directory back.
func (e *Ensemble) Close() error {
	e.close.Do(func() {
		for _, s := range e.servers {
			e.closed = errors.Join(e.closed, s.end(syscall.SIGKILL))
			s.release()
		}
		close(e.starts)
		e.running.Wait()
		if e.ownDir != "" {
			e.closed = errors.Join(e.closed, os.RemoveAll(e.ownDir))
		}
	})
	return e.closed
}

// ClientAddrs is the host:port of each server.
func (e *Ensemble) ClientAddrs() []string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr()
	}
	return addrs
}

// DataDirs is where the servers keep their data.
func (e *Ensemble) DataDirs() (all []string) {
	for _, s := range e.servers {
		all = append(all, s.dataDir())
	}
	return all
}

// LogFile is where server i writes its log.
func (e *Ensemble) LogFile(i int) string { return e.servers[i].logFile() }

// StartServer starts server i, which must be down. It does not wait until it serves; see WaitReady.
func (e *Ensemble) StartServer(i int) error {
	order := startOrder{e.servers[i], make(chan error, 1)}
	e.starts <- order
	if err := <-order.done; err != nil {
		return fmt.Errorf("start server %d: %w", i, err)
	}
	return nil
}

// Kill ends server i with SIGKILL and waits until it is gone.
func (e *Ensemble) Kill(i int) error { return e.servers[i].end(syscall.SIGKILL) }

// Stop ends server i with SIGTERM and waits until it is gone.
func (e *Ensemble) Stop(i int) error { return e.servers[i].end(syscall.SIGTERM) }

// Restart stops server i and starts it again. It does not wait until it serves; see WaitReady.
func (e *Ensemble) Restart(i int) error {
	if err := e.Stop(i); err != nil {
		return err
	}
	return e.StartServer(i)
}

// Freeze stops the clock of server i with SIGSTOP and waits until all its threads stand still, Thaw lets it go on.
func (e *Ensemble) Freeze(i int) error {
	if _, err := e.servers[i].signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for given := time.Now().Add(5 * time.Second); Moving(e.PID(i)); runtime.Gosched() {
		if time.Now().After(given) {
			return fmt.Errorf("freeze server %d: a thread of it still runs", i)
		}
	}
	return nil
}

// Thaw undoes Freeze.
func (e *Ensemble) Thaw(i int) error {
	_, err := e.servers[i].signal(syscall.SIGCONT)
	return err
}

// Wipe removes all data of server i, which must be down.
func (e *Ensemble) Wipe(i int) error {
	s := e.servers[i]
	if s.up() {
		return fmt.Errorf("wipe server %d: it is up", i)
	}
	e.wipes.Add(1)
	return os.RemoveAll(filepath.Join(s.dataDir(), "version-2"))
}

// Wipes is how often a server has lost its data.
func (e *Ensemble) Wipes() int { return int(e.wipes.Load()) }

// Copy copies the data of a server that is down; Restore puts the copy in the place of what it has by then, as a backup is restored.
func (e *Ensemble) Copy(i int) error {
	from := filepath.Join(e.servers[i].dataDir(), "version-2")
	return os.CopyFS(from+".copy", os.DirFS(from))
}

// Restore is for a server that is down.
func (e *Ensemble) Restore(i int) error {
	to := filepath.Join(e.servers[i].dataDir(), "version-2")
	if err := e.Wipe(i); err != nil {
		return err
	}
	return os.Rename(to+".copy", to)
}

// PID is the process of server i, 0 when it is down.
func (e *Ensemble) PID(i int) int {
	s := e.servers[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}
