package e2e

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confinedRole is this binary as the last step before a container's first process: it forbids it and all that come after it what
// container runtimes forbid by default, and becomes it.
const confinedRole = "understudy-packages-confined"

func confined() error {
	if err := forbid(); err != nil {
		return fmt.Errorf("forbid calls: %w", err)
	}
	return fmt.Errorf("become %s: %w", os.Args[1], syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
}

// forbid is what matters here of the filter of Docker, containerd and Podman for containers without CAP_SYS_ADMIN: no namespaces
// are made, in whatever way, and clone3 seems not to exist, since a filter cannot see its flags.
func forbid() error {
	const (
		seen, flags    = 0, 16 // where the call's number and its first argument are (their low half, on little-endian machines)
		allow          = unix.SECCOMP_RET_ALLOW
		refuse         = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		unknown        = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		load           = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal, anyOf   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		answer         = unix.BPF_RET | unix.BPF_K
		allNamespaces  = 0x7e020000
		withAllThreads = unix.SECCOMP_FILTER_FLAG_TSYNC
	)
	filter := []unix.SockFilter{
		{Code: load, K: seen},
		{Code: equal, K: unix.SYS_CLONE3, Jt: 7},
		{Code: equal, K: unix.SYS_UNSHARE, Jt: 5},
		{Code: equal, K: unix.SYS_SETNS, Jt: 4},
		{Code: equal, K: unix.SYS_MOUNT, Jt: 3},
		{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		{Code: load, K: flags},
		{Code: anyOf, K: allNamespaces, Jf: 2},
		{Code: answer, K: refuse},
		{Code: answer, K: unknown},
		{Code: answer, K: allow},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, withAllThreads, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
