package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/notify"
)

// memberError is why a program of config.Service.Members fails, and its exit code.
type memberError struct {
	error
	code int
}

// failed tells who started this program why it fails, unless it was asked to end.
func failed(ctx context.Context, err error, code int) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	_ = sayLast(notify.Why+"="+oneLine(err), heardWithin) // the exit code counts
	return memberError{err, code}
}

// sayReady tells who started this program that it is ready.
func sayReady() error {
	if err := say("READY=1"); err != nil {
		return fmt.Errorf("say that the program is ready: %w", err)
	}
	return nil
}

// heardWithin is how long the supervisor may take to read what it is told.
const heardWithin = time.Second

// say tells who started this program something, as sd_notify(3) does.
func say(what string) error {
	conn, err := supervisorsSocket()
	if conn == nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(what))
	return err
}

// sayLast is say, and waits until it is read, for so long at most: this program is about to end, and its end would be seen first.
func sayLast(what string, within time.Duration) error {
	conn, err := supervisorsSocket()
	if conn == nil {
		return err
	}
	defer conn.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err = conn.Write([]byte(what)); err == nil { // of what is sent after it, the descriptor is closed when that is read
		err = sendFile(conn, "BARRIER=1", w)
	}
	_ = w.Close()
	if err == nil {
		_ = r.SetReadDeadline(time.Now().Add(within))
		_, _ = r.Read(make([]byte, 1))
	}
	return err
}

// supervisorsSocket is nil where no supervisor has started this program.
func supervisorsSocket() (*net.UnixConn, error) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(heardWithin)) // its queue may be full
	return conn, nil
}

// sendFile sends a descriptor with what it says. net does not do that on a connected socket.
func sendFile(conn *net.UnixConn, what string, f *os.File) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) (done bool) {
		sent = unix.Sendmsg(int(fd), []byte(what), unix.UnixRights(int(f.Fd())), nil, 0)
		return !errors.Is(sent, unix.EAGAIN)
	})
	return errors.Join(err, sent)
}
