package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestAProcessIsSeenFromItsStartInTheLogToItsEnd(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() { _ = cmd.Process.Kill(); <-ended }()

	o := newOutside()
	defer o.close()
	path := filepath.Join(t.TempDir(), "node-1.log")
	o.follow("node-1", path)
	line := fmt.Sprintf("%s [INFO]  understudy: child started: service=demo pid=%d token=42\n",
		time.Now().Format("2006-01-02T15:04:05.000Z0700"), cmd.Process.Pid)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range []string{"a line of the program's own\n" + line[:40], line[40:]} { // lines come as they are written
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * milli)
	}
	wait(t, "the start is seen", func() bool { return len(o.lives()) == 1 })
	asked := now()
	l := o.lives()[0]
	if l.node != "node-1" || l.token != 42 || l.last < asked {
		t.Errorf("got %+v at %v", l, asked)
	}
	killed := now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	end := now()
	wait(t, "the end is seen", func() bool { l := o.lives()[0]; return l.last < now()-50*milli })
	if l := o.lives()[0]; l.last > end+50*milli || l.last < killed {
		t.Errorf("killed at %v, ended at %v, seen at %v", killed, end, l.last)
	}
}

func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * milli) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after 10 s: %s", what)
		}
	}
}
