package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/testbed/must"
)

// strangerRole looks for sockets in the directory that it is given, by its names and by what the kernel tells everybody, and
// sends to each.
const strangerRole = "notify-test-stranger"

func strangerMain() int {
	dir := os.Args[1]
	var found []string
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		found = append(found, path)
		return nil
	})
	known, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(known)) {
		if f := strings.Fields(line); strings.HasPrefix(f[len(f)-1], dir) {
			found = append(found, f[len(f)-1])
		}
	}
	if len(os.Args) > 2 {
		found = append(found, os.Args[2:]...) // what only the program is told
	}
	if len(found) < 3 {
		fmt.Println("found next to nothing")
		return 1
	}
	for _, name := range found {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err == nil {
			err = unix.Sendto(fd, []byte("READY=1\nSTATUS=stolen"), 0, &unix.SockaddrUnix{Name: name})
		}
		if err == nil {
			fmt.Println("reached", name)
		}
		_ = unix.Close(fd)
	}
	return 0
}

func stranger(s *Socket, words ...string) *exec.Cmd {
	cmd := as(exec.Command("/proc/self/exe"), 65533)
	cmd.Args = append([]string{strangerRole, s.cfg.Dir}, words...)
	cmd.Dir = "/"
	return cmd
}

// Nobody else reaches the socket: that of a user by its mode, even if its name leaks; that of root, which may become anybody, by its
// name.
func TestStrangerDoesNotReachTheSocket(t *testing.T) {
	need.These(t, "root")
	ofUser := made(t, Config{UID: 65534})
	ofRoot := made(t, Config{})
	for _, cmd := range []*exec.Cmd{stranger(ofUser, ofUser.path()), stranger(ofRoot)} {
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	}
	for _, s := range []*Socket{ofUser, ofRoot} {
		must.OK(t, s.conn.SetReadDeadline(unixEpoch))
		if n, err := s.conn.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it was sent %d bytes: %v", n, err)
		}
	}
}

// A folder whose name can be guessed may be there before us, and its owner puts what he likes in our socket's place.
func TestFolderOfAStrangerIsNotUsed(t *testing.T) {
	need.These(t, "root")
	dir := made(t, Config{}).cfg.Dir
	theirs, open, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "open"), filepath.Join(dir, "link")
	err := errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, 65533, 65533), os.Mkdir(open, 0o755), os.Chmod(open, 0o777), os.Symlink(dir, link))
	must.OK(t, err)
	for at, why := range map[string]string{theirs: "belongs to another user (uid 65533): remove it", open: "chmod go-w " + open, link: "is not a directory"} {
		if s, err := Listen(Config{Dir: at}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v %v", at, s, err)
		}
	}
}

// userRole is a supervisor of a user without a runtime directory. It tells where its socket is.
const userRole = "notify-test-user"

func userMain() int {
	s, err := Listen(Config{UID: uint32(os.Geteuid())})
	if err == nil {
		fmt.Println(s.Dir())
		err = s.Close()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestUserWithoutARuntimeDirectoryHasAFolderOfItsOwn(t *testing.T) {
	need.These(t, "root")
	tmp, err := os.MkdirTemp("", "n")
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	// What a stranger can do beforehand: the names that could be guessed are his, and so is a runtime directory.
	err = os.Chmod(tmp, 0o777|fs.ModeSticky)
	for _, name := range []string{"understudy-65534", "understudy", "run", "run/understudy"} {
		at := filepath.Join(tmp, name)
		err = errors.Join(err, os.Mkdir(at, 0o777), os.Chmod(at, 0o777), os.Chown(at, 65533, 65533))
	}
	must.OK(t, err)
	for _, runtime := range []string{"", filepath.Join(tmp, "run")} {
		cmd := as(exec.Command("/proc/self/exe"), 65534)
		cmd.Args, cmd.Dir = []string{userRole}, "/"
		cmd.Env = []string{"TMPDIR=" + tmp, "XDG_RUNTIME_DIR=" + runtime}
		out, err := cmd.Output()
		at := strings.TrimSpace(string(out))
		if err != nil || filepath.Dir(at) != tmp || !strings.HasPrefix(filepath.Base(at), prefix) {
			t.Errorf("with XDG_RUNTIME_DIR=%s: %q %v", runtime, at, err)
		}
	}
	// Where everybody may rename what is in it, as in an emptyDir of Kubernetes, it is still the only one; only its owner counts.
	for owner, want := range map[int]bool{0: true, 65533: false} {
		must.OK(t, errors.Join(os.Chown(tmp, owner, owner), os.Chmod(tmp, 0o777)))
		cmd := as(exec.Command("/proc/self/exe"), 65534)
		cmd.Args, cmd.Dir = []string{userRole}, "/"
		cmd.Env = []string{"TMPDIR=" + tmp}
		if out, err := cmd.Output(); (err == nil) != want {
			t.Errorf("in one of user %d without the sticky bit: %q %v", owner, out, err)
		}
	}
	// Its own one is used.
	must.OK(t, os.Chown(filepath.Join(tmp, "run"), 65534, 65534))
	must.OK(t, errors.Join(os.Chmod(filepath.Join(tmp, "run"), 0o700), os.Remove(filepath.Join(tmp, "run/understudy"))))
	cmd := as(exec.Command("/proc/self/exe"), 65534)
	cmd.Args, cmd.Dir = []string{userRole}, "/"
	cmd.Env = []string{"TMPDIR=" + tmp, "XDG_RUNTIME_DIR=" + filepath.Join(tmp, "run")}
	if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), filepath.Join(tmp, "run/understudy")+"/") {
		t.Errorf("%q %v", out, err)
	}
}

// What is ignored is not a way to fill the log, nor what is sent one to keep the supervisor busy.
func TestFloodIsToldOnceAndReadInSmallParts(t *testing.T) {
	var log strings.Builder
	s := made(t, Config{UID: uint32(os.Geteuid()), Belongs: func(int) bool { return false }, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true})})
	say := speaker(t, s)
	const sent = 400
	t.Run("while it goes on", func(t *testing.T) {
		run(t, s)
		for range sent {
			say("STATUS=x")
		}
		say("STATUS=last")
	})
	if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 3 {
		t.Errorf("%d lines: %s", lines, log.String())
	}
	if !strings.Contains(log.String(), fmt.Sprintf("from=\"pid %d of user %d\"", os.Getpid(), os.Geteuid())) || !strings.Contains(log.String(), "others_before=") {
		t.Error(log.String())
	}

	f, read, at := flood{}, 0, unixEpoch
	for end := at.Add(10 * while); at.Before(end); at = at.Add(1000) { // a sender that is never late
		if read++; f.pause(at) > 0 {
			at = at.Add(f.pause(at))
		}
	}
	if most := 11 * mostInAWhile; read > most {
		t.Errorf("%d were read where %d may be", read, most)
	}
}

// The program's own processes are believed, and cost what is read of them all the same. The others wait in the kernel.
func TestFloodOfTheProgramItselfIsReadInSmallParts(t *testing.T) {
	var looked atomic.Int64
	s := made(t, Config{UID: uint32(os.Geteuid()), Belongs: func(int) bool { looked.Add(1); return true }})
	began := time.Now()
	run(t, s)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must.OK(t, err)
	defer unix.Close(fd)
	sent, refused := 0, 0
	for time.Since(began) < 10*while {
		err := unix.Sendto(fd, []byte("STATUS=x\nWATCHDOG=1"), 0, &unix.SockaddrUnix{Name: s.path()})
		switch {
		case err == nil:
			sent++
		case errors.Is(err, unix.EAGAIN):
			refused++
		default:
			t.Fatal(err)
		}
	}
	most := int64(time.Since(began)/while+2) * mostInAWhile
	if n := looked.Load(); n == 0 || n > most || refused == 0 {
		t.Errorf("of %d sent %d were read, where %d may be; %d were refused", sent, n, most, refused)
	}
}

var unixEpoch = time.Unix(1, 0)

// Nobody is left to think that a folder is used which is not.
func TestAFolderThatIsNotUsedIsTold(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	for named, want := range map[string]string{
		"": "", dir: "", file: file + " is not a directory: remove it; ", "run": `"run" is not an absolute path: name a folder of this user; `,
		dir + "/none": "there is no " + dir + "/none: mkdir -m 700 " + dir + "/none; ",
	} {
		t.Setenv(keyfile.RunVariable, named)
		if want != "" {
			want = keyfile.RunVariable + ": " + want + DefaultDir() + " is used"
		}
		if got := Ignored(); got != want {
			t.Errorf("%q: %q", named, got)
		}
	}
}
