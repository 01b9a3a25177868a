// Package tick is the account that a wrapped program keeps of its own life: when it began and when it was last seen
// running, both on CLOCK_MONOTONIC, which all processes of one machine share. The account is a mapped file, so that
// SIGKILL loses nothing of it.
package tick

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const size = 24 // three int64: first, last, and the longest time between two of them

// Now is CLOCK_MONOTONIC in nanoseconds.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return ts.Nano()
}

// ID names a process and what it belongs to. All processes of one run of the wrapped program share Node, Token and Run.
type ID struct {
	Node  string
	Token int64
	Run   string
	Kind  string // main, child, daemon, chain
	Pid   int    // as the process sees itself
}

// Name is the file's name. Commas divide its parts.
func (id ID) Name() string {
	return fmt.Sprintf("%s,%d,%s,%s,%d.tick", id.Node, id.Token, id.Run, id.Kind, id.Pid)
}

// ParseName is the reverse of Name.
func ParseName(name string) (ID, error) {
	parts := strings.Split(strings.TrimSuffix(filepath.Base(name), ".tick"), ",")
	if len(parts) != 5 {
		return ID{}, fmt.Errorf("%s is no name of an account", name)
	}
	token, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("token in %s: %w", name, err)
	}
	pid, err := strconv.Atoi(parts[4])
	if err != nil {
		return ID{}, fmt.Errorf("pid in %s: %w", name, err)
	}
	return ID{Node: parts[0], Token: token, Run: parts[2], Kind: parts[3], Pid: pid}, nil
}

// Account is the mapped file.
type Account struct{ first, last, silence *int64 }

// Open begins the account, or continues one of the same name: processes that follow one another may share it.
func Open(path string, began int64) (*Account, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open account: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return nil, fmt.Errorf("size account: %w", err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map account: %w", err)
	}
	a := &Account{first: (*int64)(unsafe.Pointer(&mem[0])), last: (*int64)(unsafe.Pointer(&mem[8])), silence: (*int64)(unsafe.Pointer(&mem[16]))}
	atomic.CompareAndSwapInt64(a.first, 0, began)
	a.Beat()
	return a, nil
}

// Beat says: still running.
func (a *Account) Beat() {
	now := Now()
	for {
		was := atomic.LoadInt64(a.last)
		if was >= now {
			return
		}
		if atomic.CompareAndSwapInt64(a.last, was, now) {
			if was != 0 && now-was > atomic.LoadInt64(a.silence) {
				atomic.StoreInt64(a.silence, now-was)
			}
			return
		}
	}
}

// Read returns the first and the last sign of life; ok is false while there is none.
func Read(path string) (first, last int64, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < size {
		return 0, 0, false
	}
	first, last = *(*int64)(unsafe.Pointer(&b[0])), *(*int64)(unsafe.Pointer(&b[8]))
	return first, last, first != 0 && last != 0
}

// Hold locks an account for as long as this process lives.
func Hold(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) // never closed
	if err == nil {
		err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
	}
	if err != nil {
		return fmt.Errorf("lock account: %w", err)
	}
	return nil
}

// Lives tells whether a process that holds the account still exists, however long it has not been seen running. It takes no
// lock to find out: a process that starts meanwhile would have it too, and seem to be the one.
func Lives(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	other := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &other) == nil && other.Type != unix.F_UNLCK
}

// Silence returns the longest time between two signs of life since it was last asked for.
func Silence(path string) (time.Duration, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("open account: %w", err)
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], 16); err != nil {
		return 0, fmt.Errorf("read account: %w", err)
	}
	_, err = f.WriteAt(make([]byte, 8), 16)
	return time.Duration(binary.NativeEndian.Uint64(b[:])), err
}
