package zktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken below the range from which the kernel picks ports for outgoing connections, and are locked by a
// file each: other test processes run at the same time, and a server that is down must find its port free later.
const (
	firstPort = 20000
	lastPort  = 31999
)

type portLease struct {
	port int
	lock *os.File
}

func (l portLease) release() { _ = l.lock.Close() }

func leasePort(host string) (portLease, error) {
	dir := filepath.Join(os.TempDir(), "understudy-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return portLease{}, fmt.Errorf("port locks: %w", err)
	}
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return portLease{}, fmt.Errorf("port lock: %w", err)
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || inUse(host, port) {
			_ = lock.Close()
			continue
		}
		return portLease{port, lock}, nil
	}
	return portLease{}, errors.New("no free port")
}

// inUse is false for an address that is not ours to listen on: the server then runs in another network namespace.
func inUse(host string, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	_ = l.Close()
	return false
}
