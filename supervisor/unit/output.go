package unit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/safefile"
)

// ownOutput is this process's output behind a log that leads into it, or nil. No file of a config has such a name, because its path is
// absolute. Each user has pipes of its own, because a pipe's owner may read from it.
func ownOutput(log string) *os.File {
	name, _, _ := strings.Cut(log, ":")
	return map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr}[name]
}

// shield keeps a program of another user from our own input and outputs, unless that user may have them anyway: it could read what is typed
// at a terminal, and empty a file. It writes into pipes in their place, and reads nothing.
func (u *Unit) shield(ctx context.Context, spec *child.Spec) error {
	if spec.Credential == nil || spec.Credential.UID == uint32(os.Geteuid()) {
		return nil
	}
	who := spec.Credential
	if f := spec.Stdin; f != nil && !mayHave(f, who.UID) && !onlyRead(f) {
		u.log.Warn("the program reads nothing from this terminal or file; its user may not open it",
			"service", u.cfg.Service, "user", cmp.Or(who.Name, fmt.Sprint(who.UID)))
		spec.Stdin = nil
	}
	into := []string{"stdout", "stderr"}
	if sameFile(os.Stdout, os.Stderr) { // lines stay in their order
		into[1] = into[0]
	}
	for i, file := range []**os.File{&spec.Stdout, &spec.Stderr} {
		if *file != os.Stdout && *file != os.Stderr || mayWriteTo(*file, who.UID) {
			continue
		}
		log, err := u.logs.open(ctx, &u.reach, config.LogFile{File: fmt.Sprintf("%s:%d", into[i], who.UID)},
			safefile.Who{UID: who.UID}, u.log)
		if err != nil {
			return fmt.Errorf("pipe for the output: %w", err)
		}
		u.grant(log, who)
		*file = log.Writer()
	}
	return nil
}

// mayWriteTo is mayHave for an output. What is sent to a socket of ours is not the program's, and neither is what others write into a FIFO.
func mayWriteTo(f *os.File, uid uint32) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	var is unix.Stat_t
	if err != nil || unix.Fstat(int(f.Fd()), &is) != nil || is.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return false
	}
	return mayHave(f, uid) && (flags&unix.O_ACCMODE == unix.O_WRONLY || is.Mode&unix.S_IFMT != unix.S_IFIFO || is.Uid == uid)
}

// mayHave reports whether a file of ours may be a user's program's, too: it leads to another process or nowhere, or the user owns it.
func mayHave(f *os.File, uid uint32) bool {
	var is unix.Stat_t
	if unix.Fstat(int(f.Fd()), &is) != nil {
		return false
	}
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK:
		return true
	case unix.S_IFCHR:
		if is.Rdev == unix.Mkdev(1, 3) { // /dev/null
			return true
		}
	}
	return is.Uid == uid
}

// onlyRead reports whether f is a file that can only be read, which somebody has redirected our input from.
func onlyRead(f *os.File) bool {
	var is unix.Stat_t
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDONLY && unix.Fstat(int(f.Fd()), &is) == nil && is.Mode&unix.S_IFMT == unix.S_IFREG
}

func sameFile(a, b *os.File) bool {
	one, err := a.Stat()
	other, failed := b.Stat()
	return err == nil && failed == nil && os.SameFile(one, other)
}
