package zktest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const orphanEnv = "UNDERSTUDY_ZKTEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		os.Exit(parent())
	}
	os.Exit(m.Run())
}

// parent starts a server, says so, and waits to be killed.
func parent() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := New(ctx, Config{Dir: os.Getenv(orphanEnv)})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(e.PID(0))
	<-ctx.Done()
	return 1
}

func TestServersDieWithTheProcessThatStartedThem(t *testing.T) {
	Need(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), orphanEnv+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	pid := strings.TrimSpace(line)
	if err != nil || !alive(pid) {
		_ = cmd.Process.Kill()
		t.Fatalf("server %q: %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(10 * time.Second)
	for alive(pid) {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("server %s outlives its parent", pid)
		}
	}
}

// alive is false for a zombie: nobody may be there to reap it.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}
