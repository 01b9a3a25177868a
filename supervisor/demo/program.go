package demo

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// began is when this process began, as near as it can tell: what it measures of an overlap is rather too much.
var began = now()

const (
	signEvery = time.Millisecond
	signSize  = 16 // two int64: first and last sign of life
)

// Program is what a node runs: it signs, every millisecond, that it runs. The file is mapped, so SIGKILL loses nothing. With a command it
// runs that, and signs until that has ended.
func Program(ctx context.Context, dir string, command []string) error {
	// In a PID namespace of its own every run has the same pid.
	name := fmt.Sprintf("%s,%s,%d.life", os.Getenv("UNDERSTUDY_NODE"), os.Getenv("UNDERSTUDY_TOKEN"), began)
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(signSize); err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, signSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	first, last := (*int64)(unsafe.Pointer(&mem[0])), (*int64)(unsafe.Pointer(&mem[8]))
	sign := func() { atomic.StoreInt64(last, int64(now())) }
	sign()
	atomic.StoreInt64(first, int64(began))
	over := ctx.Done()
	ended := make(chan error, 1)
	if len(command) > 0 {
		over = nil             // it is the command's end that counts
		runtime.LockOSThread() // with which the command would die
		defer runtime.UnlockOSThread()
		if err := start(ctx, command, ended); err != nil {
			return err
		}
	}
	beat := time.NewTicker(signEvery)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			sign()
		case err := <-ended:
			sign()
			return err
		case <-over:
			sign()
			return nil
		}
	}
}

// start starts a command, which is asked to end when ctx ends, and reports its end.
func start(ctx context.Context, command []string, ended chan<- error) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { ended <- cmd.Wait() }() // which Program waits for
	return nil
}

// signs are what the programs have left in a folder.
type signs string

// lives are those so far.
func (s signs) lives() []life {
	files, err := filepath.Glob(filepath.Join(string(s), "*.life"))
	if err != nil {
		return nil
	}
	var all []life
	for _, file := range files {
		parts := strings.Split(strings.TrimSuffix(filepath.Base(file), ".life"), ",")
		data, err := os.ReadFile(file)
		if err != nil || len(data) < signSize || len(parts) != 3 {
			continue
		}
		l := life{
			node:  parts[0],
			first: time.Duration(binary.NativeEndian.Uint64(data)),
			last:  time.Duration(binary.NativeEndian.Uint64(data[8:])),
		}
		l.token, _ = strconv.ParseInt(parts[1], 10, 64)
		if l.first != 0 {
			all = append(all, l)
		}
	}
	return all
}
