// Package journal gives a program a stream of its own to systemd's journal. The stream has a name of its own, so that
// no line of the program can pass for a line of the supervisor, as in a shared stream.
package journal

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// socket is where journald takes streams.
const socket = "/run/systemd/journal/stdout"

// patience is for a journal that hangs: a program is not kept from its start by it for longer.
const patience = 200 * time.Millisecond

// variable is where systemd says which file is the stream to its journal.
const variable = "JOURNAL_STREAM"

// Is says whether a file is the stream to the journal that systemd has given this process.
func Is(f *os.File) bool {
	return Variable(f) == variable+"="+os.Getenv(variable)
}

// Runs reports whether this host has a journal that takes streams.
func Runs() bool {
	_, err := os.Stat(socket)
	return err == nil
}

// Variable is what tells a program, in its environment, that a file is its stream to the journal.
func Variable(f *os.File) string {
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		return ""
	}
	return fmt.Sprintf("%s=%d:%d", variable, is.Dev, is.Ino)
}

// Open opens a stream whose lines bear a name. It takes priorities before lines, as systemd's own streams do.
func Open(name string) (*os.File, error) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	return open(socket, name, unitOf(string(own)))
}

// unitOf finds the systemd unit in a /proc/<pid>/cgroup, as systemd's cg_path_get_unit does: the first name that is not a slice. "" means
// none.
func unitOf(cgroups string) string {
	for line := range strings.Lines(cgroups) {
		_, path, ours := strings.Cut(strings.TrimSpace(line), ":name=systemd:")
		if !ours {
			path, ours = strings.CutPrefix(strings.TrimSpace(line), "0::")
		}
		for name := range strings.SplitSeq(path, "/") {
			if !ours || name == "" || strings.HasSuffix(name, ".slice") {
				continue
			}
			if strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") {
				return strings.TrimPrefix(name, "_") // systemd's escape of names that the kernel could mistake
			}
			break
		}
	}
	return ""
}

func open(socket, name, unit string) (*os.File, error) {
	conn, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return nil, fmt.Errorf("open a stream to the journal: %w", err)
	}
	defer conn.Close()
	stream := conn.(*net.UnixConn)
	_ = stream.CloseRead() // journald says nothing
	_ = stream.SetWriteDeadline(time.Now().Add(patience))
	// The name, the unit, the priority, whether lines may have one, and three places where they do not go besides. journald looks up the
	// unit of each line's writer, and takes ours (from root alone) if that has ended by then: a crash's last words would have no unit.
	if _, err := fmt.Fprintf(stream, "%s\n%s\n6\n1\n0\n0\n0\n", strings.ReplaceAll(name, "\n", " "), unit); err != nil {
		return nil, fmt.Errorf("begin a stream to the journal: %w", err)
	}
	f, err := stream.File()
	if err != nil {
		return nil, fmt.Errorf("stream to the journal: %w", err)
	}
	if err := unix.SetNonblock(int(f.Fd()), false); err != nil { // a program expects its output to wait
		return nil, errors.Join(fmt.Errorf("stream to the journal: %w", err), f.Close())
	}
	return f, nil
}
