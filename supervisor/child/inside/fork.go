package inside

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A program's process is a copy of this one that makes calls into the kernel, and nothing else, until it execs the program. This binary
// once more, as a launcher, would take 5 ms to initialise all that it contains, between a won lock and the program. os.StartProcess
// cannot be used: its child does not wait for an order, and it shares this process's memory, so that our thread waits until its exec.

// What the syscall package does around a fork. The runtime promises to keep these: https://go.dev/issue/67401.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

// call is one call into the kernel that a copy makes.
type call struct {
	number uintptr
	args   [6]uintptr
	onFile bool       // the first argument is the result of the call before it
	wants  uintptr    // any other result is an error; 0: each is fine
	fails  unix.Errno // it is known to fail
	step   int32
}

func kernel(number uintptr, args ...uintptr) call {
	c := call{number: number}
	copy(c.args[:], args)
	return c
}

// order is what a copy is to do, in memory that it shares with this process from before the fork on: so it can be written after that, at
// addresses that are valid in both. nil: none is written, only explained.
type order struct {
	*orders
	memory []byte
	used   uintptr
}

// orders begins the memory.
type orders struct {
	calls   [256]call // once the gate is open; the last one is the exec
	number  int
	message unix.Msghdr // what the copy receives at its gate: a byte, and the program's descriptors
	vector  unix.Iovec
	word    [8]byte
	control [64]byte

	mask               uint64     // the signals that are blocked without the fork
	handler, byDefault [8]uintptr // of a signal
}

const orderSize = 8 << 20 // the kernel takes 6 MB of arguments and environment at most

var errOrderTooLarge = errors.New("its arguments and environment are too large")

func newOrder() (*order, error) {
	memory, err := unix.Mmap(-1, 0, orderSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory for a new process: %w", err)
	}
	o := &order{memory: memory, orders: (*orders)(unsafe.Pointer(&memory[0])), used: unsafe.Sizeof(orders{})}
	o.vector.Base = &o.word[0]
	o.vector.SetLen(1)
	o.message.Iov, o.message.Control = &o.vector, &o.control[0]
	o.message.SetIovlen(1)
	o.message.SetControllen(len(o.control))
	return o, nil
}

func (o *order) free() { _ = unix.Munmap(o.memory) }

// put copies data to a place that a number of any size may begin at.
func (o *order) put(data []byte) uintptr {
	if o == nil || o.used+uintptr(len(data)) > orderSize {
		if o != nil {
			o.used = orderSize + 1
		}
		return 0
	}
	at := o.used
	copy(o.memory[at:], data)
	o.used = (at + uintptr(len(data)) + 15) &^ 15
	return uintptr(unsafe.Pointer(&o.memory[at]))
}

// value copies a value without pointers.
func value[T any](o *order, v T) uintptr {
	return o.put(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)))
}

func (o *order) text(s string) uintptr { return o.put(append([]byte(s), 0)) }

// texts is a list of texts that ends with a null pointer.
func (o *order) texts(all []string) uintptr {
	list := make([]byte, 0, 8*(len(all)+1))
	for _, s := range all {
		at := o.text(s)
		list = append(list, unsafe.Slice((*byte)(unsafe.Pointer(&at)), unsafe.Sizeof(at))...)
	}
	return o.put(append(list, make([]byte, unsafe.Sizeof(uintptr(0)))...))
}

// follow makes the copy take these steps, with descriptors that come with the order to open the gate.
func (o *order) follow(steps []step) error {
	all := descriptors()
	for i, s := range steps {
		for _, c := range s.calls {
			c.step = int32(i + 1)
			all = append(all, c)
		}
	}
	if o.used > orderSize || len(all) > len(o.calls) {
		return errOrderTooLarge
	}
	o.number = copy(o.calls[:], all)
	return nil
}

const gate = 3 // the copy's descriptor: all above are closed

// descriptors puts the descriptors that came, which have the lowest numbers, in their places.
func descriptors() (all []call) {
	for fd := range uintptr(3) {
		all = append(all, kernel(unix.SYS_DUP3, gate+1+fd, fd, 0))
	}
	return slices.Grow(all, 64)
}

// cloneArgs is the kernel's clone_args.
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

const (
	signals = 65
	ignored = 1 // the greatest handler of a signal that is none
)

// report is what a copy says of the step that failed; 0: before the first.
type report struct{ step, errno int32 }

// fork makes the copy, in a cgroup (-1: ours). It waits at its gate, which is a socket. It must run on a thread that lives as long as the
// program may.
//
// P3: a copy that nobody tells to go on never runs the program, whether its parent is gone or did not hold it in time. P4: it dies with
// that thread.
//
// The copy has this thread only, and of this process's heap no more than the stack that fork runs on: no function may be called in it but
// those that make calls.
//
//go:norace
//go:noinline
func (o *orders) fork(cgroup int, socket uintptr) (pid uintptr, errno syscall.Errno) {
	var (
		args       = cloneArgs{exitSignal: uint64(unix.SIGCHLD)}
		parent     = uintptr(os.Getpid())
		page       = uintptr(os.Getpagesize())
		heap       = ownHeap()
		lean       bool
		stack      uintptr
		i          int
		one        *call
		first, got uintptr
		said       report
	)
	if cgroup >= 0 { // P3: nobody can fork into a removed cgroup
		args.flags, args.cgroup = unix.CLONE_INTO_CGROUP, uint64(cgroup)
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, 0, uintptr(unsafe.Pointer(&o.mask)), unsafe.Sizeof(o.mask), 0, 0)
	lean = heap.contains(uintptr(unsafe.Pointer(&args))) && !heap.contains(uintptr(unsafe.Pointer(o)))
	beforeFork() // from here on the stack stays where it is
	stack = uintptr(unsafe.Pointer(&args)) &^ (page - 1)
	if lean {
		_, _, _ = syscall.RawSyscall(unix.SYS_MADVISE, heap.low, heap.high-heap.low, unix.MADV_DONTFORK) // ENOMEM: it has gaps
		if _, _, errno = syscall.RawSyscall(unix.SYS_MADVISE, stack-page, 3*page, unix.MADV_DOFORK); errno != 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_MADVISE, heap.low, heap.high-heap.low, unix.MADV_DOFORK)
		}
	}
	if cgroup >= 0 {
		pid, _, errno = syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	} else {
		pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
	if errno != 0 || pid != 0 {
		_, _, _ = syscall.RawSyscall(unix.SYS_MADVISE, heap.low, heap.high-heap.low, unix.MADV_DOFORK) // others fork, too
		afterFork()
		return pid, errno
	}
	for i = 1; i < signals; i++ { // what the runtime does in a child, but from memory that the copy has
		_, _, errno = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(i), 0, uintptr(unsafe.Pointer(&o.handler)),
			unsafe.Sizeof(o.mask), 0, 0)
		if errno == 0 && o.handler[0] > ignored {
			_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(i), uintptr(unsafe.Pointer(&o.byDefault)), 0,
				unsafe.Sizeof(o.mask), 0, 0)
		}
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&o.mask)), 0,
		unsafe.Sizeof(o.mask), 0, 0)
	if _, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0); errno != 0 {
		goto over
	}
	if got, _, _ = syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); got != parent { // it died before, and no signal would say so
		errno = syscall.ESRCH
		goto over
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); errno != 0 {
		goto over
	}
	if first, _, errno = syscall.RawSyscall(unix.SYS_FCNTL, socket, unix.F_DUPFD_CLOEXEC, gate+1); errno != 0 {
		goto over
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_DUP3, first, gate, unix.O_CLOEXEC); errno != 0 {
		goto over
	}
	// Others see the ends of our connections although it waits, and the descriptors that come have known numbers.
	if _, _, errno = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, gate+1, 1<<31-1, 0); errno != 0 {
		for i = gate + 1; i < 1<<16; i++ {
			_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(i), 0, 0)
		}
	}
	for {
		got, _, errno = syscall.RawSyscall(unix.SYS_RECVMSG, gate, uintptr(unsafe.Pointer(&o.message)), unix.MSG_CMSG_CLOEXEC)
		if errno != syscall.EINTR {
			break
		}
	}
	if got != 1 || errno != 0 {
		goto over
	}
	for i = 0; i < o.number; i++ {
		one = &o.calls[i]
		first, said.step = one.args[0], one.step
		if one.onFile {
			first = got
		}
		if errno = one.fails; errno == 0 {
			got, _, errno = syscall.RawSyscall6(one.number, first, one.args[1], one.args[2], one.args[3], one.args[4], one.args[5])
		}
		if errno == 0 && one.wants != 0 && got != one.wants {
			errno = syscall.ESRCH
		}
		if errno != 0 {
			goto over
		}
	}
over:
	said.errno = int32(errno)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, gate, uintptr(unsafe.Pointer(&said)), unsafe.Sizeof(said))
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
	}
}
