package zktest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// server is one process, or the place of one that is down.
type server struct {
	index                    int
	host, dir                string
	client, quorum, election portLease

	mu    sync.Mutex // guards the fields below
	cmd   *exec.Cmd  // nil when down
	ended chan struct{}
	asked int64 // four-letter words answered by this process
}

var errDown = errors.New("server is down")

func (s *server) addr() string       { return net.JoinHostPort(s.host, strconv.Itoa(s.client.port)) }
func (s *server) dataDir() string    { return filepath.Join(s.dir, "data") }
func (s *server) configFile() string { return filepath.Join(s.dir, "zoo.cfg") }
func (s *server) logFile() string    { return filepath.Join(s.dir, "log") }

func (s *server) lease() error {
	for _, l := range []*portLease{&s.client, &s.quorum, &s.election} {
		lease, err := leasePort(s.host)
		if err != nil {
			return err
		}
		*l = lease
	}
	return nil
}

func (s *server) release() {
	for _, l := range []portLease{s.client, s.quorum, s.election} {
		if l.lock != nil {
			l.release()
		}
	}
}

// start runs cmd. It must be called on a thread that outlives the process, for that is what Pdeathsig watches.
func (s *server) start(cmd *exec.Cmd, wait *sync.WaitGroup) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return errors.New("server is up already")
	}
	out, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.cmd, s.ended, s.asked = cmd, ended, 0
	wait.Go(func() {
		_ = cmd.Wait()
		s.mu.Lock()
		s.cmd = nil
		s.mu.Unlock()
		close(ended)
	})
	return nil
}

func (s *server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil
}

func (s *server) signal(sig syscall.Signal) (ended <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil, errDown
	}
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, err
	}
	return s.ended, nil
}

// end sends a deadly signal and waits for the process to be gone. A server that is down is no error.
func (s *server) end(sig syscall.Signal) error {
	ended, err := s.signal(sig)
	if errors.Is(err, errDown) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%v to server %d: %w", sig, s.index, err)
	}
	<-ended
	return nil
}

func (s *server) logTail() string {
	b, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	if len(b) > 2000 {
		b = b[len(b)-2000:]
	}
	return string(bytes.TrimSpace(b))
}
