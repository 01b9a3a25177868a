package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// dockers are the capabilities that Docker, containerd and Kubernetes give to a container of root's.
var dockers = strings.Fields("CAP_CHOWN CAP_DAC_OVERRIDE CAP_FSETID CAP_FOWNER CAP_MKNOD CAP_NET_RAW CAP_SETGID CAP_SETUID CAP_SETFCAP CAP_SETPCAP CAP_NET_BIND_SERVICE CAP_SYS_CHROOT CAP_KILL CAP_AUDIT_WRITE")

// box is what a container is to be, as an orchestrator asks a runtime for it.
type box struct {
	name     string // and the hostname
	root     string // the image, unpacked
	args     []string
	env      []string
	user     int
	caps     []string
	readOnly bool
	noGain   bool              // allowPrivilegeEscalation: false
	podmans  bool              // the calls that Podman and CRI-O allow, in place of those of Docker and containerd
	free     bool              // privileged: all calls, and a cgroup that can be written to
	mounts   map[string]string // path inside: folder or file of this host
}

// runc is a runtime with its containers.
type runc struct{ dir string }

func (r runc) command(words ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", filepath.Join(r.dir, "state")}, words...)...)
}

// start runs a container in a host's network (without a host: in one of its own), with the runtime's own idea of a container but for what the box says, and with the
// default list of calls that are allowed.
func (r runc) start(t *testing.T, h *kit.Host, b box) *container {
	t.Helper()
	id := fmt.Sprintf("understudy-%s-%d", b.name, time.Now().UnixNano())
	bundle := filepath.Join(r.dir, id)
	err := os.MkdirAll(bundle, 0o755)
	if err == nil {
		cmd := r.command("spec")
		cmd.Dir = bundle
		err = run(cmd)
	}
	if err == nil {
		err = b.write(filepath.Join(bundle, "config.json"), h)
	}
	must.OK(t, err)
	c := &container{Host: h, cmd: r.command("run", "--bundle", bundle, id), log: filepath.Join(bundle, "log"), ended: make(chan struct{})}
	log, err := os.Create(c.log)
	must.OK(t, err)
	defer log.Close()
	c.cmd.Stdout, c.cmd.Stderr = log, log
	must.OK(t, c.cmd.Start())
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = r.command("delete", "--force", id).Run()
		<-c.ended
		if t.Failed() {
			t.Logf("story: log of %s:\n%s", b.name, c.said())
		}
	})
	return c
}

// write changes a spec that the runtime has written.
func (b box) write(file string, h *kit.Host) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec struct {
		Version  string           `json:"ociVersion"`
		Process  map[string]any   `json:"process"`
		Root     map[string]any   `json:"root"`
		Hostname string           `json:"hostname"`
		Mounts   []map[string]any `json:"mounts"`
		Linux    map[string]any   `json:"linux"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	spec.Hostname, spec.Root = b.name, map[string]any{"path": b.root, "readonly": b.readOnly}
	inheritable := []string{}
	held := b.caps
	if b.user != 0 {
		held = nil // the bounding set alone stays
	}
	spec.Process["capabilities"] = map[string]any{"bounding": b.caps, "effective": held, "permitted": held, "inheritable": inheritable, "ambient": inheritable}
	spec.Process["user"] = map[string]any{"uid": b.user, "gid": b.user}
	spec.Process["args"], spec.Process["terminal"], spec.Process["noNewPrivileges"] = b.args, false, b.noGain
	spec.Process["env"] = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + b.name}, b.env...)
	delete(spec.Process, "rlimits")
	for inside, outside := range b.mounts {
		spec.Mounts = append(spec.Mounts, map[string]any{"destination": inside, "source": outside, "type": "bind", "options": []string{"rbind", "rw"}})
	}
	spaces := []map[string]string{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}}
	if h != nil {
		spaces[len(spaces)-1]["path"] = h.Network()
	}
	if b.free {
		spaces = append(spaces, map[string]string{"type": "cgroup"})
		spec.Mounts = append(spec.Mounts, map[string]any{"destination": "/sys/fs/cgroup", "source": "cgroup2", "type": "cgroup2", "options": []string{"rw"}})
		spec.Linux["readonlyPaths"] = []string{}
	} else if spec.Linux["seccomp"], err = allowed(b.caps, b.podmans); err != nil {
		return err
	}
	spec.Linux["namespaces"] = spaces
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// administrators are the calls that Podman's list allows to all, and that of Docker and containerd with CAP_SYS_ADMIN only.
var administrators = strings.Fields("clone clone3 fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree setns umount umount2 unshare")

// allowed is the list of calls that Podman and CRI-O, or Docker and containerd, allow by default, for these capabilities and this machine.
func allowed(caps []string, podmans bool) (map[string]any, error) {
	type condition struct {
		Caps   []string `json:"caps"`
		Arches []string `json:"arches"`
	}
	var profile struct {
		Action   string `json:"defaultAction"`
		Errno    uint   `json:"defaultErrnoRet"`
		Machines []struct {
			Name  string   `json:"architecture"`
			Under []string `json:"subArchitectures"`
		} `json:"archMap"`
		Calls []struct {
			Names    []string         `json:"names"`
			Action   string           `json:"action"`
			Args     []map[string]any `json:"args"`
			Errno    *uint            `json:"errnoRet,omitempty"`
			Includes condition        `json:"includes"`
			Excludes condition        `json:"excludes"`
		} `json:"syscalls"`
	}
	text, err := os.ReadFile("/usr/share/containers/seccomp.json")
	if err == nil {
		err = json.Unmarshal(text, &profile)
	}
	if err != nil {
		return nil, err
	}
	if len(profile.Calls) < 10 {
		return nil, errors.New("the default list of calls is not one")
	}
	has := func(cap string) bool { return slices.Contains(caps, cap) }
	rules := []map[string]any{}
	for _, call := range profile.Calls {
		in, out := call.Includes, call.Excludes
		if slices.ContainsFunc(in.Caps, func(cap string) bool { return !has(cap) }) || slices.ContainsFunc(out.Caps, has) ||
			len(in.Arches) > 0 && !slices.Contains(in.Arches, runtime.GOARCH) || slices.Contains(out.Arches, runtime.GOARCH) {
			continue
		}
		if !podmans && !has("CAP_SYS_ADMIN") {
			call.Names = slices.DeleteFunc(call.Names, func(name string) bool { return slices.Contains(administrators, name) })
		}
		if len(call.Names) == 0 {
			continue
		}
		rule := map[string]any{"names": call.Names, "action": call.Action}
		if call.Errno != nil {
			rule["errnoRet"] = *call.Errno
		}
		if len(call.Args) > 0 {
			rule["args"] = call.Args
		}
		rules = append(rules, rule)
	}
	if !podmans {
		const namespaces = 0x7e020000 // a filter sees the flags of clone, and not those of clone3
		rules = append(rules, map[string]any{"names": []string{"clone"}, "action": "SCMP_ACT_ALLOW",
			"args": []map[string]any{{"index": 0, "value": namespaces, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}}})
		for _, name := range administrators {
			if errno := map[bool]syscall.Errno{true: syscall.ENOSYS, false: syscall.EPERM}[name == "clone3"]; name != "clone" {
				rules = append(rules, map[string]any{"names": []string{name}, "action": "SCMP_ACT_ERRNO", "errnoRet": errno})
			}
		}
	}
	machine := map[string]string{"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"}[runtime.GOARCH]
	machines := []string{machine}
	for _, m := range profile.Machines {
		if m.Name == machine {
			machines = append(machines, m.Under...)
		}
	}
	return map[string]any{"defaultAction": profile.Action, "defaultErrnoRet": profile.Errno, "architectures": machines, "syscalls": rules}, nil
}

// unpacked builds the image as `make image` does, and gives the folder that a container of it has as its root.
func unpacked(t *testing.T, binary string) (root string) {
	t.Helper()
	dir := t.TempDir()
	buildah := func(words ...string) string {
		t.Helper()
		storage := []string{"--storage-driver", "vfs", "--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run")}
		cmd := exec.Command("buildah", append(storage, words...)...)
		said, failed := &strings.Builder{}, &strings.Builder{}
		cmd.Stdout, cmd.Stderr = said, failed
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, failed)
		}
		return strings.TrimSpace(said.String())
	}
	context := filepath.Join(dir, "context")
	must.OK(t, os.Mkdir(context, 0o755))
	must.OK(t, copyFile(binary, filepath.Join(context, "understudy")))
	buildah("build", "--tag", "understudy:test", "--file", "../Containerfile", context)
	root = buildah("mount", buildah("from", "localhost/understudy:test"))
	t.Cleanup(func() { buildah("rm", "--all") })
	return root
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
