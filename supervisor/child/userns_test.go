package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/containment"
	"understudy/supervisor/child/inside"
)

const probingRole = "child-test-probing"

// probing looks for a container as a user who may only have namespaces.
func probing() int {
	c, err := containment.Choose(context.Background(), "auto", hclog.New(&hclog.LoggerOptions{Output: os.Stdout}))
	fmt.Println(c.Kind, c.UserNS, err)
	if c.Kind == box.KindPidNS {
		fmt.Println(foundStub(c))
	}
	return 0
}

// foundStub makes a stub, and looks for it as a later process does.
func foundStub(c box.Container) (found int, err error) {
	id := box.TreeID{Kind: c.Kind, Mark: fmt.Sprintf(box.StubMark+"%010d", os.Getpid()), User: uint32(os.Getuid())}
	if id.UserNS, err = box.UserNS(); err != nil {
		return 0, err
	}
	s, err := waitingStub(c, id.Mark)
	if err != nil {
		return 0, err
	}
	defer s.Abort()
	if _, err := s.NextMessage(context.Background(), patience); err != nil {
		return 0, err
	}
	all, err := id.Stubs()
	return len(all), err
}

// waitingStub is a stub at its gate.
func waitingStub(c box.Container, mark string) (*inside.Stub, error) {
	return inside.ForkStub(c, mark, "", [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, os.Environ())
}

// What a user namespace takes from programs is not taken without a word.
func TestUserNamespaceIsTold(t *testing.T) {
	need.These(t, box.KindPidNS)
	need.These(t, "root")
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = probingRole
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "pidns true <nil>\n1 <nil>\n") {
		t.Fatalf("%s %v", out, err)
	}
	if strings.Count(string(out), "[WARN]") != 1 || !strings.Contains(string(out), "setuid") {
		t.Errorf("not told, or not once: %s", out)
	}
	root := exec.Command("/proc/self/exe")
	root.Args[0] = probingRole
	if out, err := root.CombinedOutput(); err != nil || strings.Contains(string(out), "setuid") {
		t.Errorf("%s %v", out, err)
	}
}
