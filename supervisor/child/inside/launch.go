package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// ErrKilledEarly says that the process died before it became the program.
var ErrKilledEarly = errors.New("killed before the program ran")

// Launch is one start of a program, by a copy of this process that becomes it, with the same pid.
type Launch struct {
	Process *os.Process

	report *os.File // to the copy
	order  *order
}

// Fork makes the copy, in a cgroup (-1: ours). It must run on a thread that lives as long as the program may. The copy waits, and knows no
// program yet.
func Fork(cgroup int) (*Launch, error) {
	ours, theirs, err := wire.SocketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	l := &Launch{report: ours}
	l.order, err = newOrder()
	if err != nil {
		l.Free()
		return nil, err
	}
	syscall.ForkLock.Lock() // no descriptor is there that a program would inherit
	pid, errno := l.order.fork(cgroup, theirs.Fd())
	syscall.ForkLock.Unlock()
	if errno != 0 {
		l.Free()
		return nil, StartFault(fmt.Errorf("fork: %w", errno))
	}
	l.Process, err = os.FindProcess(int(pid))
	if err != nil { // nobody has reaped it
		l.Free()
		return nil, err
	}
	return l, nil
}

// Free lets go of the copy. One that waits ends.
func (l *Launch) Free() {
	if l.report != nil {
		_ = l.report.Close()
	}
	if l.order != nil {
		l.order.free()
	}
	l.report, l.order = nil, nil
}

// Discard ends a start whose gate was never opened.
func (l *Launch) Discard() {
	l.Free()
	_ = l.Process.Kill()
	_, _ = box.WaitFor(l.Process)
}

// letGo is how long to wait for a program that may run but is not wanted any more: it should be asked to end, as any other.
const letGo = time.Second

// Lingering returns a context that ends letGo after another.
func Lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(letGo, func() { end(context.Cause(ctx)) })
	})
	return late, func() {
		stop()
		end(nil)
	}
}

// Become has the copy become the program. It returns nil if the program runs, or has run; a message, if the copy said why it does not.
// After an error of ctx the program may still start to run.
func (l *Launch) Become(ctx context.Context, prog *Program, files [3]*os.File) (*guard.Message, error) {
	defer l.Free()
	steps, err := prog.steps(l.order)
	if err == nil {
		err = l.order.follow(steps)
	}
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return l.open(ctx, files)
}

// open opens the gate.
func (l *Launch) open(ctx context.Context, files [3]*os.File) (*guard.Message, error) {
	killed := l.send(files)
	late, cancel := Lingering(ctx)
	defer cancel()
	defer context.AfterFunc(late, func() { _ = l.report.SetReadDeadline(time.Unix(1, 0)) })()
	var said report
	n, err := l.report.Read((*[unsafe.Sizeof(said)]byte)(unsafe.Pointer(&said))[:])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, context.Cause(ctx)
	case err == nil && n == int(unsafe.Sizeof(said)):
		return &guard.Message{Op: wire.OpFailed, Index: int(said.step), Number: int(said.errno),
			Why: "prepare its process: " + syscall.Errno(said.errno).Error()}, nil
	case killed != nil:
		return nil, errors.Join(ErrKilledEarly, killed)
	}
	return nil, nil // the exec closed the other end, or a death after the last possible report did
}

// send tells the copy to go on, with the program's descriptors.
func (l *Launch) send(files [3]*os.File) (err error) {
	conn, err := l.report.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd()))
	return errors.Join(conn.Control(func(fd uintptr) { err = wire.SendPacket(int(fd), []byte{1}, rights) }), err)
}
