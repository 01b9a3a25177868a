package journal

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/must"
)

func TestJournalIsKnownByItsStream(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stream"))
	must.OK(t, err)
	defer f.Close()
	var is unix.Stat_t
	must.OK(t, unix.Fstat(int(f.Fd()), &is))
	for stream, want := range map[string]bool{fmt.Sprintf("%d:%d", is.Dev, is.Ino): true, fmt.Sprintf("%d:%d", is.Dev, is.Ino+1): false, "": false} {
		t.Setenv("JOURNAL_STREAM", stream)
		if Is(f) != want {
			t.Errorf("%q is the stream: %v", stream, !want)
		}
	}
}

func TestAStreamBearsItsNameAndWaits(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "stdout")
	journald, err := net.Listen("unix", at)
	must.OK(t, err)
	defer journald.Close()
	f, err := open(at, "web/nginx\n7", "understudy.service")
	must.OK(t, err)
	defer f.Close()
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("a program whose output does not wait loses lines: %o, %v", flags, err)
	}
	if !strings.HasPrefix(Variable(f), "JOURNAL_STREAM=") {
		t.Errorf("%q", Variable(f))
	}
	if _, err := f.WriteString("said\n"); err != nil {
		t.Fatal(err)
	}
	must.OK(t, f.Close())
	conn, err := journald.Accept()
	must.OK(t, err)
	defer conn.Close()
	got, err := io.ReadAll(bufio.NewReader(conn))
	if want := "web/nginx 7\nunderstudy.service\n6\n1\n0\n0\n0\nsaid\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestOurUnitIsFoundInOurCgroup(t *testing.T) {
	t.Parallel()
	for cgroups, want := range map[string]string{
		"0::/system.slice/understudy.service\n":                                                  "understudy.service",
		"0::/system.slice/system-understudy.slice/understudy@solo.service/supervisor\n":          "understudy@solo.service",
		"0::/user.slice/user-0.slice/session-1.scope\n":                                          "session-1.scope",
		"4:memory:/x.service\n1:name=systemd:/system.slice/_.hidden.service\n0::/\n":             ".hidden.service",
		"0::/user.slice/user-0.slice/user@0.service/app.slice/understudy.service/web.service/\n": "user@0.service",
		"0::/machine/x.service\n": "",
		"0::/\n":                  "",
		"":                        "",
	} {
		if got := unitOf(cgroups); got != want {
			t.Errorf("%q: %q, not %q", cgroups, got, want)
		}
	}
}

func TestWithoutAJournalThereIsNoStream(t *testing.T) {
	t.Parallel()
	if f, err := open(filepath.Join(t.TempDir(), "none"), "x", ""); err == nil {
		f.Close()
		t.Error("a stream to nowhere")
	}
}
