package child

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

// errKilledEarly: the process died before it became the program.
var errKilledEarly = errors.New("killed before the program ran")

// launch is one start of a program, by a copy of this process that becomes it, with the same pid.
type launch struct {
	cgroup int // to start it in; -1: ours

	process *os.Process
	err     error
	report  *os.File // to the copy
	order   *order
}

// fork must run on a thread that lives as long as the program may. The copy waits, and knows no program yet.
func (l *launch) fork() { l.err = l.copy() }

func (l *launch) copy() error {
	ours, theirs, err := wire.SocketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	l.report = ours
	if l.order, err = newOrder(); err != nil {
		return err
	}
	syscall.ForkLock.Lock() // no descriptor is there that a program would inherit
	pid, errno := l.order.fork(l.cgroup, theirs.Fd())
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return startFault(fmt.Errorf("fork: %w", errno))
	}
	l.process, err = os.FindProcess(int(pid)) // nobody has reaped it
	return err
}

// free lets go of the copy. One that waits ends.
func (l *launch) free() {
	if l.report != nil {
		_ = l.report.Close()
	}
	if l.order != nil {
		l.order.free()
	}
	l.report, l.order = nil, nil
}

// discard ends a start whose gate was never opened.
func (l *launch) discard() {
	l.free()
	if l.process != nil {
		_ = l.process.Kill()
		_, _ = box.WaitFor(l.process)
	}
}

// letGo is how long to wait for a program that may run but is not wanted any more: it should be asked to end, as any other.
const letGo = time.Second

// lingering returns a context that ends some time after another.
func lingering(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(d, func() { end(context.Cause(ctx)) })
	})
	return late, func() {
		stop()
		end(nil)
	}
}

// become has the copy become the program. It returns nil if the program runs, or has run; a message, if the copy said why it does not.
// After an error of ctx the program may still start to run.
func (l *launch) become(ctx context.Context, prog *program, files [3]*os.File) (*guard.Message, error) {
	defer l.free()
	if l.err != nil {
		return nil, l.err
	}
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
func (l *launch) open(ctx context.Context, files [3]*os.File) (*guard.Message, error) {
	killed := l.send(files)
	late, cancel := lingering(ctx, letGo)
	defer cancel()
	defer context.AfterFunc(late, func() { _ = l.report.SetReadDeadline(time.Unix(1, 0)) })()
	var said report
	n, err := l.report.Read((*[unsafe.Sizeof(said)]byte)(unsafe.Pointer(&said))[:])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, context.Cause(ctx)
	case err == nil && n == int(unsafe.Sizeof(said)):
		return &guard.Message{Op: wire.OpFailed, Index: int(said.step), Number: int(said.errno), Why: "prepare its process: " + syscall.Errno(said.errno).Error()}, nil
	case killed != nil:
		return nil, errors.Join(errKilledEarly, killed)
	}
	return nil, nil // the exec closed the other end, or a death after the last possible report did
}

// send tells the copy to go on, with the program's descriptors.
func (l *launch) send(files [3]*os.File) (err error) {
	conn, err := l.report.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd()))
	return errors.Join(conn.Control(func(fd uintptr) { err = wire.SendPacket(int(fd), []byte{1}, rights) }), err)
}

// giveUp ends a failed start. A process that cannot be ended at once stays with the tree.
func (p *part) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := p.kill(ctx); err != nil && !errors.Is(err, box.ErrUnproved) {
		return err
	}
	return nil
}
