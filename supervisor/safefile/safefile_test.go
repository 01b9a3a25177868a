package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
)

const service, stranger = 4711, 4712

// needRoot leaves out what only root can show.
func needRoot(t *testing.T) {
	t.Helper()
	need.These(t, "root")
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// scene is what root and two users have put on a disk. Their temporary directory may be in one that is nobody's business.
type scene struct {
	*testing.T
	dir string
}

func newScene(t *testing.T) scene {
	needRoot(t)
	t.Setenv("SUDO_UID", "")
	s := scene{t, t.TempDir()}
	must(t, os.Chmod(s.dir, 0o755))
	s.folder("secret", 0, 0o700)
	s.file("secret/shadow", 0, 0o600, "root:secret")
	s.folder("home", service, 0o755)
	s.folder("home/logs", service, 0o755)
	return s
}

func (s scene) at(name string) string { return filepath.Join(s.dir, name) }

func (s scene) folder(name string, uid int, mode uint32) {
	must(s, os.MkdirAll(s.at(name), 0o755), os.Chown(s.at(name), uid, uid), unix.Chmod(s.at(name), mode))
}

func (s scene) file(name string, uid int, mode os.FileMode, text string) {
	must(s, os.WriteFile(s.at(name), []byte(text), mode), os.Chmod(s.at(name), mode), os.Chown(s.at(name), uid, uid))
}

func (s scene) link(name, target string, uid int) {
	must(s, os.Symlink(target, s.at(name)), os.Lchown(s.at(name), uid, uid))
}

func TestRootReadsNothingThatTheUserOnlyPointsAt(t *testing.T) {
	s := newScene(t)
	s.link("home/link", s.at("secret/shadow"), service)
	s.link("home/up", "../secret", service)
	s.link("rooted", s.at("home/logs"), 0)
	s.link("home/rooted", s.at("secret"), 0)
	s.file("home/own", service, 0o600, "own")
	s.file("home/logs/own", service, 0o600, "own")
	s.file("home/given", 0, 0o600, "given")
	s.file("home/foreign", stranger, 0o644, "foreign")
	must(t, os.Link(s.at("secret/shadow"), s.at("home/hard")))
	must(t, unix.Mkfifo(s.at("home/fifo"), 0o666))
	s.folder("other", stranger, 0o755)
	s.file("other/x", service, 0o644, "x")
	s.folder("shared", 0, 0o775)
	must(t, os.Chown(s.at("shared"), 0, service)) // as Ubuntu's /var/log
	s.folder("shared/app", 0, 0o755)
	s.file("shared/app/x", 0, 0o644, "in a shared directory")
	s.folder("sticky", 0, 0o1777)
	s.file("sticky/x", 0, 0o644, "in a sticky one")
	s.file("sticky/theirs", stranger, 0o644, "not ours")
	s.link("sticky/link", s.at("secret/shadow"), stranger)
	for name, want := range map[string]string{
		"home/own": "own", "home/given": "given", "rooted/own": "own", "shared/app/x": "in a shared directory", "sticky/x": "in a sticky one",
		"home/link": "!symbolic link of user 4711", "home/up/shadow": "!symbolic link of user 4711", "home/rooted/shadow": "!where users other than root may write",
		"home/hard": "!2 names", "home/fifo": "!not a regular file", "home/logs": "!not a regular file", "other/x": "!other belongs to user 4712",
		"home/foreign": "!belongs to user 4712", "sticky/theirs": "!belongs to user 4712", "sticky/link": "!symbolic link of user 4712", "home/none": "!no such file",
	} {
		f, err := Open(s.at(name), Who{UID: service})
		got := ""
		if err == nil {
			text := make([]byte, 100)
			n, _ := f.Read(text)
			got = string(text[:n])
			_ = f.Close()
		}
		if problem, bad := strings.CutPrefix(want, "!"); bad && (err == nil || !strings.Contains(err.Error(), problem)) || !bad && got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// What is to be written to is no link either, whoever made it, and however late.
	d, name, err := DirOf(s.at("home/link"), Who{UID: service})
	must(t, err)
	defer d.Close()
	if f, err := d.Open(name, unix.O_WRONLY|unix.O_APPEND, 0); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link was opened to write there: %v", err)
		_ = f.Close()
	}
	// For a program of root nobody else's directory will do, and the message says what will.
	_, err = Open(s.at("home/own"), Who{})
	var refused *Refused
	if !errors.As(err, &refused) || refused.Path != s.at("home") || !strings.Contains(err.Error(), "say `user:`") {
		t.Error(err)
	}
	// Root's own link is followed where a group may write, as Ubuntu's of its logs may, and not where everybody may.
	s.folder("data", 0, 0o755)
	s.file("data/x", 0, 0o644, "moved")
	s.link("shared/link", "../data", 0)
	s.link("sticky/own", "../data", 0)
	if f, err := Open(s.at("shared/link/x"), Who{}); err != nil {
		t.Error(err)
	} else {
		_ = f.Close()
	}
	if f, err := Open(s.at("shared/link/x"), Who{UID: service}); err == nil {
		t.Error("a link was followed that the user of the program can replace")
		_ = f.Close()
	}
	if f, err := Open(s.at("sticky/own/x"), Who{}); err == nil {
		t.Error("a link was followed where everybody may write")
		_ = f.Close()
	}
	t.Setenv("SUDO_UID", fmt.Sprint(service))
	if f, err := Open(s.at("home/own"), Who{}); err != nil {
		t.Error("who ran sudo is root already: ", err)
	} else {
		_ = f.Close()
	}
}

// A user swaps a directory for a link as fast as he can, while root makes, renames and removes what should be in it.
func TestNothingAppearsOutsideWhileADirectoryIsSwapped(t *testing.T) {
	s := newScene(t)
	s.file("secret/log", 0, 0o600, "precious")
	s.link("home/evil", s.at("secret"), service)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			_ = unix.Renameat2(unix.AT_FDCWD, s.at("home/logs"), unix.AT_FDCWD, s.at("home/evil"), unix.RENAME_EXCHANGE)
			select {
			case <-over:
				return
			default:
			}
		}
	}()
	within, refused := 0, 0
	for range 3000 {
		d, name, err := DirOf(s.at("home/logs/log"), Who{UID: service})
		if err != nil {
			refused++
			continue
		}
		f, err := d.Open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, 0o600)
		if err != nil {
			t.Error(err)
		} else {
			_, _ = f.WriteString("line\n")
			_ = f.Close()
		}
		must(t, d.Rename(name, name+".1"), d.Remove(name+".1"))
		d.Close()
		within++
	}
	close(over)
	<-done
	entries, err := os.ReadDir(s.at("secret"))
	text, _ := os.ReadFile(s.at("secret/log"))
	if err != nil || len(entries) != 2 || string(text) != "precious" {
		t.Errorf("outside there is now %v, %q", entries, text)
	}
	if within == 0 {
		t.Errorf("root was refused always: %d times", refused)
	}
}
