package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// fleet is hosts on which a runtime runs the containers that an example asks for; a child stands for the example's own program.
type fleet struct {
	stage    *kit.Stage
	accounts *kit.Accounts
	cluster  *kit.Cluster
	runc     runc
	image    string // Understudy's, unpacked
	root     string // that of the program
	names    string // the file /etc/hosts
	hosts    map[string]*kit.Host
	last     int64 // when the last run began
}

// How programs are held where the runtime allows this much.
const (
	walked  = "last resort: processes are contained by walking /proc"
	apart   = "processes are contained by a PID namespace"
	grouped = "processes are contained by a cgroup"
)

func newFleet(t *testing.T) *fleet {
	t.Helper()
	need.These(t, "root", "runc", "buildah", "seccomp")
	f := &fleet{stage: kit.NewStage(t, 1, zktest.Config{}), runc: runc{t.TempDir()}, image: unpacked(t, kit.UnderstudyBinary(t)), hosts: map[string]*kit.Host{}}
	f.stage.Lab.ProxyAt(t, f.stage.Lab.Addr()+":2181", f.stage.Servers[0])
	f.accounts = kit.NewAccounts(t, f.stage.Lab)
	f.cluster = kit.Look(t, f.stage.Servers, "/understudy")
	f.root, f.names = t.TempDir(), filepath.Join(t.TempDir(), "hosts")
	err := os.MkdirAll(filepath.Join(f.root, "bin"), 0o755)
	if err == nil {
		err = copyFile(kit.ChildBinary(t), filepath.Join(f.root, "bin/child"))
	}
	if err == nil {
		err = os.WriteFile(f.names, []byte("127.0.0.1 localhost\n"+f.stage.Lab.Addr()+" zk1 zk2 zk3\n"), 0o644)
	}
	if err == nil {
		err = os.Chmod(f.accounts.File(""), 0o777)
	}
	must.OK(t, err)
	return f
}

// hasUnderstudy puts the binary into the program's image.
func (f *fleet) hasUnderstudy(t *testing.T) {
	t.Helper()
	err := os.MkdirAll(filepath.Join(f.root, "usr/bin"), 0o755)
	if err == nil {
		err = copyFile(filepath.Join(f.image, "usr/bin/understudy"), filepath.Join(f.root, "usr/bin/understudy"))
	}
	must.OK(t, err)
}

// program puts the child in the place of what the example's words wrap.
func (f *fleet) program(t *testing.T, words []string) []string {
	t.Helper()
	i := slices.Index(words, "--")
	if i < 0 || i == len(words)-1 {
		t.Fatalf("%q wraps nothing", words)
	}
	child := f.accounts.Child("every=2ms", "daemons=2", "chains=1")
	return append(slices.Clone(words[:i+1]), append([]string{"/bin/child", "dir=/srv/accounts", "life=/srv/life"}, child[3:]...)...)
}

// shared is what every container sees of this host.
func (f *fleet) shared(more map[string]string) map[string]string {
	all := map[string]string{"/srv/accounts": f.accounts.File(""), "/srv/life": f.stage.Lab.Lifeline(), "/etc/hosts": f.names}
	for inside, outside := range more {
		all[inside] = outside
	}
	return all
}

// probe asks a container on a host over HTTP, as a kubelet does.
func probe(h *kit.Host, path string) int {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get("http://" + h.Addr + ":8437" + path)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// failOver runs the containers of an example, and stops, kills and restarts whichever is active.
func (f *fleet) failOver(t *testing.T, boxes []box, held string) {
	t.Helper()
	running := map[string]*container{}
	for _, b := range boxes {
		if f.hosts[b.name] == nil {
			f.hosts[b.name] = f.stage.Lab.Host(t, b.name)
		}
	}
	start := func(name string) {
		i := slices.IndexFunc(boxes, func(b box) bool { return b.name == name })
		running[name] = f.runc.start(t, f.hosts[name], boxes[i])
	}
	var active kit.Run
	for i, b := range boxes {
		if start(b.name); i == 0 {
			active = f.accounts.On(t, 20*time.Second, b.name, f.last)
		} else {
			f.cluster.WaitStandby(t, 15*time.Second, "hello", b.name)
		}
	}
	if !strings.Contains(running[active.Node].said(), held) {
		t.Errorf("the log does not say %q", held)
	}
	const soon = 5 * time.Second                                             // less than lease and grace delay take
	const lost = 3*time.Second*7/6 + time.Second + 2*time.Second + kit.Stall // the lease, a start of the container, and the grace delay
	for _, fault := range []struct {
		name  string
		do    func(c *container)
		code  int
		limit time.Duration
	}{
		{"stopped", func(c *container) { c.signal(syscall.SIGTERM) }, 0, soon},
		{"its supervisor killed", func(c *container) { kit.Signal(syscall.SIGKILL, supervisorOf(t, c)) }, 128 + 9, soon},
		{"killed as a whole", func(c *container) { c.signal(syscall.SIGKILL) }, 128 + 9, lost},
		{"its supervisor and guardians killed", func(c *container) {
			supervisor := supervisorOf(t, c) // nobody is left who would end the programs, but the first process
			kit.KillAtOnce(append(kit.Children(supervisor), supervisor)...)
		}, 128 + 9, lost},
	} {
		for name, h := range f.hosts {
			kit.Until(t, kit.Soon, "the probes tell who is active", func() bool {
				return probe(h, "/readyz") == 200 && (probe(h, "/active/hello") == 200) == (name == active.Node)
			})
		}
		old := running[active.Node]
		kit.Until(t, kit.Soon, "orphans are reaped", func() bool { return !old.unburied() })
		fault.do(old)
		if code := old.code(t); code != fault.code {
			t.Errorf("%s: a container ends with %d", fault.name, code)
		}
		start(active.Node) // at once, on the same volumes, as Kubernetes and Docker do
		next := f.accounts.Next(t, fault.limit, active.First)
		t.Logf("%s: %s runs it after %v", fault.name, next.Node, f.gap(next))
		if next.Node == active.Node && fault.limit != lost { // else whoever is back at once has seen the lease end as soon as the others
			t.Errorf("%s: %s runs it again", fault.name, next.Node)
		}
		for _, b := range boxes {
			if b.name != next.Node {
				f.cluster.WaitStandby(t, 15*time.Second, "hello", b.name)
			}
		}
		active = next
	}
	for _, c := range running {
		c.signal(syscall.SIGTERM)
		c.code(t)
	}
	f.last = active.First
	f.accounts.CheckOverlap(t)
	f.accounts.CheckTokens(t)
}

func (f *fleet) gap(latter kit.Run) time.Duration {
	runs := f.accounts.Runs()
	i := slices.IndexFunc(runs, func(r kit.Run) bool { return r.ID == latter.ID })
	return kit.Gap(runs[i-1], runs[i]).Round(time.Millisecond)
}

// The pods of the Kubernetes manifest: with no rights, a read-only root, and the binary from an init container.
func TestPodsFailOver(t *testing.T) {
	f := newFleet(t)
	var m struct {
		Kind string
		Spec struct {
			Replicas int
			Template struct{ Spec pod }
		}
	}
	text, err := os.ReadFile("../../examples/kubernetes.yml")
	must.OK(t, err)
	for in := yaml.NewDecoder(strings.NewReader(string(text))); m.Kind != "StatefulSet"; {
		must.OK(t, in.Decode(&m))
	}
	p := m.Spec.Template.Spec
	if len(p.Init) != 1 || len(p.Containers) != 1 || p.Security.Seccomp.Type != "RuntimeDefault" {
		t.Fatalf("%+v", p)
	}
	var boxes []box
	for i := range m.Spec.Replicas {
		name := fmt.Sprint("hello-", i)
		dirs := map[string]string{}
		for _, v := range p.Volumes {
			dirs[v.Name] = t.TempDir()
			if err := os.Chmod(dirs[v.Name], 0o777); err != nil { // as an emptyDir is
				t.Fatal(err)
			}
		}
		first := p.box(p.Init[0], name, f.image, dirs, []string{"/usr/bin/understudy"})
		if c := f.runc.start(t, nil, first); c.code(t) != 0 {
			t.Fatalf("the init container: %s", c.said())
		}
		b := p.box(p.Containers[0], name, f.root, dirs, nil)
		b.args, b.mounts = f.program(t, b.args), f.shared(b.mounts)
		boxes = append(boxes, b)
	}
	t.Run("containerd", func(t *testing.T) { f.failOver(t, boxes, walked) })
	for i := range boxes {
		boxes[i].podmans = true
	}
	t.Run("CRI-O", func(t *testing.T) { f.failOver(t, boxes, apart) })
}

// pod is what matters here of a pod's spec.
type pod struct {
	Security struct {
		User    int                   `yaml:"runAsUser"`
		Seccomp struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Init       []inPod `yaml:"initContainers"`
	Containers []inPod
	Volumes    []struct {
		Name  string
		Empty *struct{} `yaml:"emptyDir"`
	}
}

type inPod struct {
	Command, Args []string
	Env           []struct {
		Name, Value string
		From        *struct {
			Field struct {
				Path string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	Security struct {
		Gain     *bool                   `yaml:"allowPrivilegeEscalation"`
		ReadOnly bool                    `yaml:"readOnlyRootFilesystem"`
		Caps     struct{ Drop []string } `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Mounts []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

// box is what a kubelet makes of a container of the pod.
func (p pod) box(c inPod, name, root string, dirs map[string]string, entry []string) box {
	b := box{name: name, root: root, user: p.Security.User, readOnly: c.Security.ReadOnly, caps: dockers, mounts: map[string]string{}}
	b.noGain = c.Security.Gain != nil && !*c.Security.Gain
	if slices.Contains(c.Security.Caps.Drop, "ALL") {
		b.caps = []string{}
	}
	var known []string // $(NAME), its value, ...
	for _, e := range c.Env {
		value := e.Value
		if e.From != nil && e.From.Field.Path == "metadata.name" {
			value = name
		}
		b.env = append(b.env, e.Name+"="+value)
		known = append(known, "$("+e.Name+")", value)
	}
	command := c.Command
	if command == nil {
		command = entry
	}
	for _, word := range slices.Concat(command, c.Args) {
		b.args = append(b.args, strings.NewReplacer(known...).Replace(word))
	}
	for _, m := range c.Mounts {
		b.mounts[m.Path] = dirs[m.Name]
	}
	return b
}

// The container of docs/install.md, privileged.
func TestPrivilegedContainersFailOver(t *testing.T) {
	f := newFleet(t)
	f.hasUnderstudy(t)
	text, err := block(installDoc, "container")
	must.OK(t, err)
	var words []string
	for _, name := range []string{"ENTRYPOINT", "CMD"} {
		var some []string
		found := regexp.MustCompile(`(?m)^` + name + ` (\[.*\])$`).FindStringSubmatch(text)
		if found == nil || json.Unmarshal([]byte(found[1]), &some) != nil {
			t.Fatalf("docs/install.md has no %s", name)
		}
		words = append(words, some...)
	}
	words = slices.Insert(words, slices.Index(words, "--"), "--http", ":8437")
	var boxes []box
	for _, name := range []string{"one", "two"} {
		boxes = append(boxes, box{name: name, root: f.root, args: f.program(t, words), caps: append(slices.Clone(dockers), "CAP_SYS_ADMIN"), free: true, mounts: f.shared(nil)})
	}
	f.failOver(t, boxes, grouped)
}

// The containers of the compose file: as root, with the capabilities that Docker gives, and the binary in the image.
func TestComposedContainersFailOver(t *testing.T) {
	f := newFleet(t)
	var file struct {
		Services map[string]struct {
			Hostname string
			Command  []string
		}
	}
	text, err := os.ReadFile("../../examples/compose.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	must.OK(t, err)
	f.hasUnderstudy(t)
	var boxes []box
	for name, s := range file.Services {
		if s.Hostname == "" {
			continue // ZooKeeper
		}
		if s.Hostname != name {
			t.Errorf("%s calls itself %s", name, s.Hostname)
		}
		boxes = append(boxes, box{name: name, root: f.root, args: f.program(t, s.Command), caps: dockers, mounts: f.shared(nil)})
	}
	if len(boxes) != 3 {
		t.Fatalf("%d nodes", len(boxes))
	}
	f.failOver(t, boxes, walked)
}
