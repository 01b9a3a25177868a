package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

const (
	stranger   = 65534
	forgedName = "n.s.p%d-%d-1.0123456789ab" // as a supervisor would have named it
	forgedPid  = 1 << 30
)

// forgery is what a stranger makes who can write a breadcrumb: an identity of a tree, and what it names.
type forgery struct {
	t      *testing.T
	id     box.TreeID
	cgroup string // what the identity names
}

// forge names something in a directory that belongs to the stranger.
func forge(t *testing.T, host box.Host, base string) *forgery {
	t.Helper()
	inode, err := box.InodeOf(base)
	must.OK(t, err)
	cgroup := filepath.Join(base, fmt.Sprintf(forgedName, host.PidNS, forgedPid))
	return &forgery{t, box.TreeID{Kind: box.KindCgroup, Boot: host.Boot, PidNS: host.PidNS, Pid: forgedPid, StartTime: 1, Path: cgroup, Inode: inode}, cgroup}
}

// run says that a process is the first one of a run in it.
func (f *forgery) run(pid int) {
	f.t.Helper()
	s, err := box.StatOf(pid)
	must.OK(f.t, err)
	at := filepath.Join(f.cgroup, box.RunPrefix+"1")
	err = errors.Join(os.Mkdir(at, 0o755), unix.Setxattr(at, box.FirstAttr, fmt.Appendf(nil, "%d %d", s.Pid, s.Start), 0), os.Chown(at, stranger, stranger))
	must.OK(f.t, err)
}

// file makes a file of the forged cgroup.
func (f *forgery) file(name, text string) {
	f.t.Helper()
	at := filepath.Join(f.cgroup, name)
	must.OK(f.t, errors.Join(os.WriteFile(at, []byte(text), 0o600), os.Chown(at, stranger, stranger)))
}

// judged ends and looks at the tree as agents and `fence kill-local` do. It is over soon, whatever is named.
func (f *forgery) judged(want error) {
	f.t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := box.KillByID(ctx, f.id); !errors.Is(err, want) {
			f.t.Errorf("kill: %v", err)
		}
		if dead, err := box.ProveDead(f.id); dead || !errors.Is(err, want) {
			f.t.Errorf("dead %v, %v", dead, err)
		}
		_ = f.id.Leftover()
	}()
	select {
	case <-over:
	case <-time.After(patience):
		f.t.Fatal("it does not come to an end")
	}
}

// victim is a process of root's that belongs to no tree.
func victim(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "1000")
	must.OK(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Error("it was killed")
		default:
		}
		_ = cmd.Process.Kill()
		<-ended
	})
	return cmd.Process.Pid
}

func ofStranger(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.Chown(dir, stranger, stranger)
	}
	must.OK(t, err)
	return dir
}

// A directory that looks like a cgroup makes root kill nothing, and proves no death.
func TestADirectoryThatIsNoCgroupNamesNobody(t *testing.T) {
	need.These(t, "root")
	_, host := boxed(t)
	for _, populated := range []string{"populated 0\n", "populated 1\n"} {
		f := forge(t, host, ofStranger(t))
		must.OK(t, errors.Join(os.Mkdir(f.cgroup, 0o755), os.Chown(f.cgroup, stranger, stranger)))
		pid := victim(t)
		f.file("cgroup.kill", "")
		f.file("cgroup.freeze", "")
		f.file("cgroup.procs", fmt.Sprintln(pid))
		f.file("cgroup.events", populated)
		f.run(pid)
		f.judged(box.ErrElsewhere)
	}
}

// That nothing is there proves a death only among cgroups.
func TestNothingInADirectoryThatIsNoCgroupProvesNoDeath(t *testing.T) {
	need.These(t, "root")
	_, host := boxed(t)
	forge(t, host, ofStranger(t)).judged(box.ErrElsewhere)
}

// A link leads to nothing that is killed or frozen, wherever on the path it stands.
func TestALinkToACgroupNamesNobody(t *testing.T) {
	need.These(t, "root")
	place, host := boxed(t)
	other := leftBehindAs(t, place.Base, "other", forgedPid+1, 1, host.PidNS)
	named := leftBehindAs(t, place.Base, "n.s", forgedPid, 1, host.PidNS)
	last := forge(t, host, ofStranger(t))
	first := forge(t, host, ofStranger(t))
	link := filepath.Join(filepath.Dir(first.cgroup), "link")
	must.OK(t, errors.Join(os.Symlink(other, last.cgroup), os.Symlink(place.Base, link)))
	inode, err := box.InodeOf(place.Base)
	must.OK(t, err)
	first.id.Path, first.id.Inode = filepath.Join(link, filepath.Base(named)), inode
	for _, f := range []*forgery{last, first} {
		f.judged(box.ErrElsewhere)
	}
	for _, at := range []string{other, named} {
		events, err := os.ReadFile(filepath.Join(at, "cgroup.events"))
		if err != nil || !strings.Contains(string(events), "populated 1") || !strings.Contains(string(events), "frozen 0") {
			t.Errorf("%s: %s %v", at, events, err)
		}
	}
}

// What waits for somebody who never comes holds nobody up: neither a FIFO nor a file system.
func TestNothingThatIsNamedHoldsAProofUp(t *testing.T) {
	need.These(t, "root")
	_, host := boxed(t)
	t.Run("FIFOs", func(t *testing.T) {
		f := forge(t, host, ofStranger(t))
		must.OK(t, errors.Join(os.Mkdir(f.cgroup, 0o755), os.Chown(f.cgroup, stranger, stranger)))
		for _, name := range []string{"cgroup.kill", "cgroup.events", "cgroup.freeze", "cgroup.procs"} {
			at := filepath.Join(f.cgroup, name)
			must.OK(t, unix.Mkfifo(at, 0o600))
			t.Cleanup(func() { // lets those go who wait
				if file, err := os.OpenFile(at, os.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
					_ = file.Close()
				}
			})
		}
		f.judged(box.ErrElsewhere)
	})
	t.Run("a file system", func(t *testing.T) {
		need.These(t, "fuse")
		dir := ofStranger(t)
		f := forge(t, host, dir)
		fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		must.OK(t, err)
		err = unix.Mount("stranger", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd()))
		if err != nil {
			t.Fatal(errors.Join(err, fuse.Close()))
		}
		t.Cleanup(func() { _ = errors.Join(fuse.Close(), unix.Unmount(dir, unix.MNT_DETACH)) })
		f.judged(box.ErrElsewhere)
	})
}

// In a cgroup of a user's own a written-down process is only one of theirs.
func TestTheOwnerOfACgroupNamesNobodyElsesProcess(t *testing.T) {
	need.These(t, "root")
	place, host := boxed(t)
	cgroup := leftBehindAs(t, place.Base, "n.s", forgedPid, 1, host.PidNS)
	f := forge(t, host, place.Base)
	must.OK(t, os.Chown(cgroup, stranger, stranger))
	f.run(victim(t))
	f.judged(box.ErrUnproved)
	if events, err := os.ReadFile(filepath.Join(cgroup, "cgroup.events")); err != nil || !strings.Contains(string(events), "populated 0") {
		t.Errorf("what is in it is not killed: %s %v", events, err)
	}
	theirs := exec.Command("/bin/sleep", "1000")
	theirs.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	must.OK(t, errors.Join(os.Remove(filepath.Join(cgroup, box.RunPrefix+"1")), theirs.Start()))
	go func() { _ = theirs.Wait() }()
	f.run(theirs.Process.Pid)
	must.Report(t, box.KillByID(t.Context(), f.id))
	awaitDeath(t, theirs.Process.Pid)
}

// Each of the checks holds by itself, also where the others would have refused before.
func TestOnlyACgroupIsOpenedAndByNoLink(t *testing.T) {
	need.These(t, "root")
	place, host := boxed(t)
	cgroup := leftBehind(t, place.Base, forgedPid, 1, host.PidNS)
	dir := ofStranger(t)
	fake, link := filepath.Join(dir, "fake"), filepath.Join(dir, "link")
	must.OK(t, errors.Join(os.Mkdir(fake, 0o755), os.Symlink(place.Base, link)))
	for path, want := range map[string]error{cgroup: nil, fake: box.ErrNoCgroup, filepath.Join(link, filepath.Base(cgroup)): unix.ENOTDIR, link: unix.ENOTDIR} {
		l, err := box.OpenTreeCgroup(path, 0)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			l.Close()
		}
	}
	const mounts = "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n25 1 0:5 / /tmp rw - tmpfs tmpfs rw\n"
	for at, want := range map[string]bool{"/sys/fs/cgroup/unified/a/b": true, "/sys/fs/cgroup/unified": false, "/sys/fs/cgroup/unified2/x": false, "/tmp/x": false} {
		if box.BelowCgroups(at, mounts) != want {
			t.Errorf("%s: not %v", at, want)
		}
	}
	if base, _, err := box.OpenBase(filepath.Join(fake, "x")); !errors.Is(err, box.ErrNoCgroup) {
		t.Errorf("%d, %v", base, err)
	}
}
