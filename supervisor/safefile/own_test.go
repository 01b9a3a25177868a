package safefile

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// acl lets a user read and write what else is root's. The bits of the group show its mask.
const acl = "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x06\x00\x67\x12\x00\x00" + "\x04\x00\x00\x00\xff\xff\xff\xff" +
	"\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"

// A file is ours where each thing on the way to it is. The first one that is not is named, with its owner and the command that mends it.
func TestWhatIsOursIsSoOnItsWholePath(t *testing.T) {
	s := newScene(t)
	s.file("plain", 0, 0o644, "")
	s.file("open", 0, 0o606, "")
	s.file("group", 0, 0o664, "")
	s.file("secret/key", 0, 0o600, "")
	s.file("secret/group", 0, 0o640, "")
	s.file("secret/theirs", service, 0o600, "")
	s.file("secret/shared", 0, 0o640, "")
	must(t, os.Chown(s.at("secret/shared"), 0, service))
	s.file("secret/listed", 0, 0o600, "")
	must(t, unix.Setxattr(s.at("secret/listed"), "system.posix_acl_access", []byte(acl), 0))
	s.folder("loose", 0, 0o777)
	s.file("loose/x", 0, 0o600, "")
	s.file("home/logs/x", 0, 0o600, "")
	s.folder("sticky", 0, 0o1777)
	s.file("sticky/x", 0, 0o600, "")
	s.folder("sticky/theirs", service, 0o755)
	s.file("sticky/theirs/x", 0, 0o600, "")
	s.link("sticky/link", "../plain", service)
	s.link("round", "round", 0)
	s.link("out", "home/logs/x", 0)
	s.link("in", s.at("secret/key"), 0)
	s.link("home/in", "../plain", 0)
	for _, c := range []struct {
		name string
		use  Purpose
		want string // of the message; empty: it is ours
	}{
		{"plain", Setting, ""},
		{"plain", Command, ""},
		{"plain", Secret, "DIR/plain belongs to root and group 0, and its mode 0644 lets others read it: chmod 600 DIR/plain"},
		{"open", Setting, "DIR/open belongs to root and group 0, and its mode 0606 lets others write to it: chmod 604 DIR/open"},
		{"group", Setting, "its mode 0664 lets others write to it: chmod 644 DIR/group"},
		{"secret/key", Secret, ""},
		{"secret/group", Setting, ""},
		{"secret/group", Secret, "its mode 0640 lets others read it: chmod 600 DIR/secret/group"},
		{"secret/theirs", Secret, "DIR/secret/theirs belongs to user 4711, who can change it: chown 0 DIR/secret/theirs"},
		{"secret/shared", Secret, "DIR/secret/shared belongs to root and group 4711, and its mode 0640 lets others read it: chmod 600 "},
		{"secret/listed", Secret, "its mode 0660 lets others read it: chmod 600 "},
		{"secret/listed", Setting, "its mode 0660 lets others write to it: chmod 640 "},
		{"loose/x", Setting, "DIR/loose belongs to root and group 0, and its mode 0777 lets others write to it: chmod 755 DIR/loose"},
		{"home/logs/x", Setting, "DIR/home belongs to user 4711, who can change what is in it: chown 0 DIR/home, or use a file elsewhere"},
		{"sticky/x", Secret, ""},
		{"sticky", Setting, "DIR/sticky belongs to root and group 0, and its mode 1777 lets others write to it: use a directory elsewhere"},
		{"sticky/theirs/x", Setting, "DIR/sticky/theirs belongs to user 4711"},
		{"sticky/link", Setting, "DIR/sticky/link is a link of user 4711, who can change it: chown -h 0 DIR/sticky/link"},
		{"out", Setting, "DIR/home belongs to user 4711"},
		{"in", Secret, ""},
		{"home/in", Setting, "DIR/home belongs to user 4711"},
		{"none", Secret, ""},
		{"round", Setting, ""},
	} {
		err := Own(s.at(c.name), c.use)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, "DIR", s.dir))) {
			t.Errorf("%s for %d: %v", c.name, c.use, err)
		}
	}
	if err := Own("/tmp", Setting); err != nil && strings.Contains(err.Error(), "chmod") {
		t.Errorf("of /tmp: %v", err)
	}
	if err := Own("/dev/null", Secret); err == nil || !strings.HasSuffix(err.Error(), ": name a regular file") {
		t.Errorf("of a device: %v", err)
	}
	t.Setenv("SUDO_UID", "4711")
	if err := Own(s.at("home/logs/x"), Setting); err != nil {
		t.Error("who ran sudo is root already: ", err)
	}
}

// What is opened is what was judged: nothing of a stranger, and no device, by whichever links, words and swaps.
func TestWhatIsOpenedIsOursAlone(t *testing.T) {
	s := newScene(t)
	s.file("plain", 0, 0o644, "ours")
	s.folder("sticky", 0, 0o1777)
	s.file("sticky/theirs", stranger, 0o644, "theirs")
	s.link("sticky/link", "../plain", stranger)
	s.folder("deep/er", 0, 0o755)
	s.file("deep/plain", 0, 0o644, "deep")
	s.link("down", "deep/er", 0)
	s.link("device", "/dev/null", 0)
	s.file("home/logs/x", 0, 0o644, "")
	t.Chdir(s.dir)
	for name, want := range map[string]string{
		s.at("plain"): "ours", "plain": "ours", "./sticky/../plain": "ours", "down/../plain": "deep", s.dir + "/down/../plain": "deep",
		"sticky/theirs": "belongs to user 4712, who can change it: chown 0 ", "sticky/link": "is a link of user 4712", "device": "is not a regular file",
		"none": "no such file", "home/logs/x": "belongs to user 4711", "/proc/self/cwd/sticky/theirs": "belongs to user 4712",
	} {
		f, err := OpenOwn(name, Setting)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		text, _ := io.ReadAll(f)
		f.Close()
		if string(text) != want {
			t.Errorf("%s: %q", name, text)
		}
	}
	// A stranger swaps his file for root's, by a name that nobody keeps him from changing.
	s.folder("loose", 0, 0o1777)
	s.file("loose/x", stranger, 0o644, "theirs")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				for _, step := range [][2]string{{"loose/x", "loose/z"}, {"loose/y", "loose/x"}, {"loose/z", "loose/x"}} {
					_ = os.Link(s.at("plain"), s.at("loose/y"))
					_ = os.Rename(s.at(step[0]), s.at(step[1]))
				}
			}
		}
	}()
	for range 60000 {
		f, err := OpenOwn(s.at("loose/x"), Setting)
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(f)
		f.Close()
		if string(text) != "ours" {
			t.Errorf("it reads %q", text)
			break
		}
	}
	close(stop)
	<-done
}

// Who can write to the root itself can put anything in the place of a folder.
func TestTheRootIsOnThePath(t *testing.T) {
	s := newScene(t)
	s.file("secret/key", 0, 0o600, "")
	must(t, os.Chmod(s.dir, 0o777))
	told := make(chan error)
	go func() {
		runtime.LockOSThread() // and never again for anything else
		err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Chroot(s.dir))
		if err == nil {
			err = Own("/secret/key", Secret)
		}
		told <- err
	}()
	if err := <-told; err == nil || err.Error() != "/ belongs to root and group 0, and its mode 0777 lets others write to it: chmod 755 /" {
		t.Error(err)
	}
}

// Debian's group staff may write in /usr/local, and become root by that: a command is accepted there, a secret or a config is not.
func TestDebiansStaffMayWriteCommandsInItsPlaceAlone(t *testing.T) {
	st := &unix.Stat_t{Mode: unix.S_IFDIR | 0o2775, Gid: staff}
	for here, fine := range map[string]bool{"/usr/local": true, "/usr/local/bin": true, "/usr/localized": false, "/etc/understudy": false} {
		if err := Command.check(here, st, false); (err == nil) != fine {
			t.Errorf("%s: %v", here, err)
		}
		if Setting.check(here, st, false) == nil {
			t.Errorf("%s is good for a config", here)
		}
	}
	for _, other := range []*unix.Stat_t{{Mode: unix.S_IFDIR | 0o2777, Gid: staff}, {Mode: unix.S_IFDIR | 0o2775, Gid: staff + 1}, {Mode: unix.S_IFDIR | 0o2775, Gid: staff, Uid: stranger}} {
		if Command.check("/usr/local", other, false) == nil {
			t.Errorf("%+v is accepted", other)
		}
	}
}

// Without root, root's file is a secret that we may read by our group, as Kubernetes has it with an fsGroup; not one that all may read.
func TestAGroupReadsASecretOfRootsWhereWeAreNotRoot(t *testing.T) {
	s := newScene(t)
	must(t, os.Chmod(filepath.Dir(s.dir), 0o755))
	s.file("mounted", 0, 0o440, "")
	must(t, os.Chown(s.at("mounted"), 0, service))
	s.file("open", 0, 0o444, "")
	s.file("own", service, 0o640, "")
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestAsTheUser$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), "SECRETS="+s.dir), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: service, Gid: service}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAsTheUser(t *testing.T) {
	dir := os.Getenv("SECRETS")
	if dir == "" {
		return // another test runs this as another user
	}
	if err := Own(dir+"/mounted", Secret); err != nil {
		t.Error(err)
	}
	for name, mend := range map[string]string{"open": "chmod 440 ", "own": "chmod 600 "} {
		if err := Own(filepath.Join(dir, name), Secret); err == nil || !strings.HasSuffix(err.Error(), mend+filepath.Join(dir, name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
