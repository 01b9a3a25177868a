package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// slowly sleeps before each call that waits for a disk, for as many milliseconds as a file says.
const slowly = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static void wait_for_it(void) {
	int ms = 0;
	FILE *f = fopen(MILLISECONDS, "r");
	if (f != NULL) {
		if (fscanf(f, "%d", &ms) != 1)
			ms = 0;
		fclose(f);
	}
	usleep(ms * 1000);
}

int fsync(int fd) { wait_for_it(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
int fdatasync(int fd) { wait_for_it(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
`

// A disk that takes a quarter of a lease for each write moves nothing, and status says what it is.
func TestASlowDiskOfZooKeeperMovesNothing(t *testing.T) {
	need.These(t, "gcc")
	const lease = 6 * time.Second
	dir := t.TempDir()
	source, lib, file := filepath.Join(dir, "slowly.c"), filepath.Join(dir, "slowly.so"), filepath.Join(dir, "ms")
	must.OK(t, os.WriteFile(source, []byte(slowly), 0o644))
	if said, err := exec.Command("gcc", "-shared", "-fPIC", fmt.Sprintf("-DMILLISECONDS=%q", file), "-o", lib, source, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	s := kit.NewStage(t, 1, zktest.Config{Wrap: func(_ int, cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "LD_PRELOAD="+lib) }})
	p := suite.Play(t, s)
	p.Options.Session = 2 * lease
	_, b, run := p.OnTwoHosts(t)
	must.OK(t, os.WriteFile(file, fmt.Append(nil, (lease/4).Milliseconds()), 0o644))
	p.Alone(t, 5*lease, run.Node)
	if got := p.Runs(); len(got) != 1 {
		t.Errorf("%d runs", len(got))
	}
	kit.Until(t, soon, "both nodes tell of it", func() bool {
		for _, node := range []string{"a", "b"} {
			if data, _, err := p.Conn().Get(p.Path("nodes", node)); err != nil || !bytes.Contains(data, []byte("ZooKeeper takes ")) {
				return false
			}
		}
		return true
	})
	must.OK(t, os.Remove(file))
	p.Stands(t, b.Host)
}
