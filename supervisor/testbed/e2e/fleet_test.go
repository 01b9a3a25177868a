package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Files that are replaced, links that are swapped as Kubernetes does it, and SIGHUP all have the config read.
func TestAConfigBehindLinksIsFollowed(t *testing.T) {
	f := newFleet(t, 1, 5*time.Millisecond)
	a := f.Lab.Machine(t, "a")
	dir := t.TempDir()
	version := func(n int) {
		d := filepath.Join(dir, fmt.Sprint("..v", n))
		must.OK(t, os.Mkdir(d, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(d, "understudy.yaml"), []byte(f.Text(a)), 0o600))
		must.OK(t, os.Symlink(filepath.Base(d), filepath.Join(dir, "..data_tmp")))
		must.OK(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version(1)
	path := filepath.Join(dir, "understudy.yaml")
	must.OK(t, os.Symlink("..data/understudy.yaml", path))
	s := f.FromFile(t, a, path)
	f.AllOn(t, "a", 0)
	for i, name := range []string{"second", "third"} {
		f.Add(t, name)
		version(i + 2)
		f.Of[name].Next(t, soon, 0)
	}
	if n := strings.Count(s.Log(), "config reloaded"); n != 2 {
		t.Errorf("two changes were taken up %d times", n)
	}
}

// A directory in the midst of the way may be a link as well, and an included directory may be made anew.
func TestAConfigBehindALinkedDirectoryIsFollowed(t *testing.T) {
	f := newFleet(t, 1, 5*time.Millisecond)
	a := f.Lab.Machine(t, "a")
	dir := t.TempDir()
	for n, name := range []string{"", "second"} {
		if name != "" {
			f.Add(t, name)
		}
		d := filepath.Join(dir, "rel", fmt.Sprint(n))
		must.OK(t, os.MkdirAll(d, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(d, "u.yaml"), []byte(f.Text(a)+"include: ["+dir+"/conf.d/*.yaml]\n"), 0o600))
	}
	f.Names = f.Names[:1]
	must.OK(t, os.Mkdir(filepath.Join(dir, "conf.d"), 0o700))
	must.OK(t, os.Mkdir(filepath.Join(dir, "etc"), 0o700))
	must.OK(t, os.Symlink("rel/0", filepath.Join(dir, "current")))
	must.OK(t, os.Symlink("../current/u.yaml", filepath.Join(dir, "etc", "u.yaml")))
	s := f.FromFile(t, a, filepath.Join(dir, "etc", "u.yaml"))
	f.AllOn(t, "a", 0)
	must.OK(t, os.Symlink("rel/1", filepath.Join(dir, "current.new")))
	must.OK(t, os.Rename(filepath.Join(dir, "current.new"), filepath.Join(dir, "current")))
	f.Of["second"].Next(t, soon, 0)
	for _, name := range []string{"third", "fourth"} {
		must.OK(t, os.RemoveAll(filepath.Join(dir, "conf.d")))
		f.Add(t, name)
		must.OK(t, os.Mkdir(filepath.Join(dir, "conf.d"), 0o700))
		text := "services: {" + name + ": {" + kit.Command(f.Of[name].Child("every=5ms")) + "}}\n"
		must.OK(t, os.WriteFile(filepath.Join(dir, "conf.d", name+".yaml"), []byte(text), 0o600))
		if name == "fourth" { // the third one's file is gone, and that alone stops nothing
			kit.Until(t, soon, "it is told", func() bool { return s.Says("third.yaml gives no services any more (third)") })
			s.Signal(syscall.SIGHUP)
		}
		f.Of[name].Next(t, soon, 0)
	}
}
