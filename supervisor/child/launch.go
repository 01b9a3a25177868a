package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

const (
	kindLaunch   = "launch" // in place of a container's kind: see InitMain
	launchOrder  = 3
	launchReport = 4
	goDied       = 2 // the exit code of a Go program that lacks a vital resource
)

// errKilledEarly: the process died before it became the program.
var errKilledEarly = errors.New("killed before the program ran")

// launch is one start of a program: directly, or, if it has settings that a fork cannot apply, by a launcher. That is this
// binary once more, which applies the settings and then becomes the program, with the same pid.
type launch struct {
	prog       *program
	exe, args0 string
	files      [3]*os.File
	place      func(*syscall.SysProcAttr) // sets where the process is forked into
	opens      func() error               // has to succeed before its gate is opened; nil: it has no gate

	process *os.Process
	err     error
	report  link // to the launcher
}

// fork must run on a thread that lives as long as the program may. It does not wait for a launcher.
func (l *launch) fork() {
	attr := l.prog.attr(l.files[:]...)
	if l.place != nil {
		l.place(attr.Sys)
	}
	if l.prog.plain() && !l.prog.Gate {
		l.process, l.err = os.StartProcess(l.prog.Path, l.prog.Argv, attr)
		l.err = startFault(l.err)
		return
	}
	order, err := l.prog.write()
	if err != nil {
		l.err = err
		return
	}
	defer order.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		l.err = err
		return
	}
	defer theirs.Close()
	l.report = link{ours}
	attr.Dir, attr.Env = "", []string{"GOMAXPROCS=1", "GOGC=off"}
	attr.Files = append(attr.Files, order, theirs)
	if l.process, err = os.StartProcess(l.exe, []string{l.args0 + initTitle + l.prog.Path, kindLaunch}, attr); err != nil {
		l.err = startFault(fmt.Errorf("fork launcher: %w", err))
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

// hear returns nil if the program runs, or has run; a message, if the launcher said why it does not. After an error of
// ctx the program may still start to run.
func (l *launch) hear(ctx context.Context) (*guard.Message, error) {
	if l.report.file == nil {
		return nil, l.err
	}
	defer l.report.file.Close()
	if l.err != nil {
		return nil, l.err
	}
	enough := func() { _ = l.report.file.SetReadDeadline(time.Unix(1, 0)) }
	unwanted := context.AfterFunc(ctx, enough)
	defer unwanted()
	prepared := false
	buf := make([]byte, maxPacket)
	for {
		m, err := l.report.receive(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, context.Cause(ctx)
		case err != nil && prepared:
			return nil, nil // the exec closed the other end, or a death after the last possible report did
		case err != nil:
			return nil, errKilledEarly
		case m.Op == opReady:
			if !unwanted() {
				return nil, context.Cause(ctx)
			}
			if err := l.open(); err != nil {
				return nil, err
			}
			late, cancel := lingering(ctx, letGo)
			defer cancel()
			defer context.AfterFunc(late, enough)()
			prepared = true
		default:
			return &m, nil
		}
	}
}

// open opens the gate for a waiting launcher.
func (l *launch) open() error {
	if l.opens == nil {
		return nil
	}
	if err := l.opens(); err != nil {
		return err
	}
	if err := l.report.send(&guard.Message{Op: opOpen}); err != nil {
		return errors.Join(errKilledEarly, err)
	}
	return nil
}

// toldToGoOn waits at a gate. P3: a process that is not told to go on never runs, whether its parent is gone or did not hold it in time.
func toldToGoOn(gate int) bool {
	buf := make([]byte, 256)
	for {
		m, err := recvFD(gate, buf)
		if err == nil {
			return m.Op == opOpen
		}
		if !errors.Is(err, unix.EAGAIN) {
			return false
		}
		pollOne(gate, unix.POLLIN, time.Minute)
	}
}

// launchMain is the main function of a launcher. It returns only if the program cannot be started.
func launchMain() int {
	runtime.LockOSThread() // the settings belong to a thread, and this one becomes the program
	debug.SetGCPercent(-1)
	unix.CloseOnExec(launchOrder)
	unix.CloseOnExec(launchReport)
	tell := func(m *guard.Message) int {
		_ = sendFD(launchReport, m)
		return 126
	}
	prog, err := readProgram(os.NewFile(launchOrder, "program"))
	if err != nil {
		return tell(&guard.Message{Op: opFailed, Why: err.Error()})
	}
	// By a failing exec, Go restores the soft limit of open files that it raised at its start.
	_ = syscall.Exec("", nil, nil)
	steps, err := prog.steps()
	if err != nil {
		return tell(&guard.Message{Op: opFailed, Why: err.Error()})
	}
	last := failure()
	tell(&guard.Message{Op: opReady})
	if prog.Gate && !toldToGoOn(launchReport) {
		return 126
	}
	// From here on allocate no memory: by the limits there may be none, and no thread.
	for i := range steps {
		if errno := steps[i].do(); errno != 0 {
			last.write(launchReport, i+1, errno)
			break
		}
	}
	return 126
}

// failed is the message about a failed step, made beforehand.
type failed struct {
	packet        []byte
	step, because int // the positions of the numbers
}

func failure() failed {
	const packet = `{"op":"failed","index":    ,"number":    }`
	return failed{packet: []byte(packet), step: len(`{"op":"failed","index":`), because: len(packet) - len(`    }`)}
}

func (f failed) write(fd, step int, errno unix.Errno) {
	put := func(at, n int) {
		for i := at + 3; i >= at && (n > 0 || i == at+3); i-- {
			f.packet[i] = byte('0' + n%10)
			n /= 10
		}
	}
	put(f.step, step)
	put(f.because, int(errno))
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&f.packet[0])), uintptr(len(f.packet)))
}

// giveUp ends a failed start. A process that cannot be ended at once stays with the tree.
func (p *part) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := p.kill(ctx); err != nil && !errors.Is(err, ErrUnproved) {
		return err
	}
	return nil
}
