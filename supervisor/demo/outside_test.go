package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

func TestAProcessIsSeenFromItsStartInTheLogToItsEnd(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() { _ = cmd.Process.Kill(); <-ended }()

	const limit = 10 * time.Second
	o := newOutside()
	defer o.close()
	path := filepath.Join(t.TempDir(), "node-1.log")
	o.follow("node-1", path)
	starts := func(pid, token int) string {
		at := time.Now().Format("2006-01-02T15:04:05.000Z0700")
		return fmt.Sprintf("%s [INFO]  understudy: program started: service=demo pid=%d token=%d\n", at, pid, token)
	}
	line := starts(cmd.Process.Pid, 42)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n, part := range []string{"a line of the program's own\n" + starts(os.Getpid(), 41) + line[:40], line[40:]} { // lines come as they are written
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		kit.Until(t, limit, "the start is seen", func() bool { return len(o.lives()) == n+1 })
	}
	asked := now()
	l := o.lives()[1]
	if l.node != "node-1" || l.token != 42 || l.last < asked {
		t.Errorf("got %+v at %v", l, asked)
	}
	killed := now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	end := now()
	kit.Until(t, limit, "the end is seen", func() bool { l := o.lives()[1]; return l.last < now()-50*milli })
	if l := o.lives()[1]; l.last > end+50*milli || l.last < killed {
		t.Errorf("killed at %v, ended at %v, seen at %v", killed, end, l.last)
	}
}
