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
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/wait"
)

// says runs a script in a tree and returns its output.
func says(t *testing.T, tree *Tree, spec Spec, script string) string {
	t.Helper()
	spec.Argv = []string{"sh", "-c", script}
	if spec.Env == nil {
		spec.Env = os.Environ()
	}
	got, err := Output(t.Context(), new(wait.Reach), tree.Start, spec)
	if err != nil || got.Status.Code != 0 {
		t.Fatalf("%+v %q %v", got.Status, got.Output, err)
	}
	return strings.TrimSpace(string(got.Output))
}

// ofThis is a line of this process's own status.
func ofThis(t *testing.T, name string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/thread-self/status")
	must.OK(t, err)
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, name+":") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no %s", name)
	return ""
}

func TestProgramGetsItsSettingsAndTheSupervisorKeepsItsOwn(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		need.These(t, "root")
		tree := planted(t, guarded(t, kind))
		before := ofThis(t, "Umask") + ofThis(t, "Uid") + ofThis(t, "Groups")
		var limit unix.Rlimit
		must.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
		settings := inside.Settings{
			Credential: &inside.Credential{UID: 65534, GID: 65533, Groups: []uint32{65533, 7, 9}, Name: "nobody"},
			Umask:      new(uint32(0o027)), Nice: new(17), OOMScoreAdj: new(321),
			Limits: []inside.Limit{limitOf("nofile", 300, 400), limitOf("core", 0, inside.Unlimited), limitOf("as", 1<<30, 1<<31), limitOf("nproc", 77, 77), limitOf("rttime", 5000, inside.Unlimited)},
		}
		got := says(t, tree, Spec{Settings: settings, Dir: "/usr"}, `id -u; id -g; id -G; umask; cut -d " " -f 19 /proc/$$/stat; cat /proc/$$/oom_score_adj
			ulimit -Sn; ulimit -Hn; ulimit -Sc; ulimit -Hc; ulimit -Sv; ulimit -Hv; grep -o "processes *77 *77" /proc/$$/limits | tr -s " "; pwd; grep -c "^Uid:.65534.65534.65534.65534" /proc/$$/status
			grep timeout /proc/$$/limits | tr -s " " | sed "s/ $//"; cut -d " " -f 6 /proc/$$/stat | sed "s/^$$\$/leader/"`)
		want := strings.Join([]string{
			"65534", "65533", "65533 7 9", "0027", "17", "321", "300", "400", "0", "unlimited", "1048576", "2097152", "processes 77 77", "/usr", "1",
			"Max realtime timeout 5000 unlimited us", "leader",
		}, "\n")
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if after := ofThis(t, "Umask") + ofThis(t, "Uid") + ofThis(t, "Groups"); after != before {
			t.Errorf("the supervisor was %s, is %s", before, after)
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil || now != limit {
			t.Errorf("the supervisor's limit was %v, is %v %v", limit, now, err)
		}
	})
}

// The signals that a program does not get, what it is passed, and what it sees are the same with settings.
func TestSettingsLeaveNothingElseBehindInTheProgram(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		const script = `grep -e SigIgn -e SigBlk -e Umask /proc/self/status; ulimit -Sn; ulimit -Hn; ls /proc/self/fd; readlink /proc/$$/fd/0
			env | grep -v "^_=" | sort; cat /proc/$$/oom_score_adj; cut -d " " -f 19 /proc/$$/stat; cat /proc/$$/cmdline | tr "\0" " "`
		env := []string{"PATH=" + os.Getenv("PATH"), "GOGC=7", "A=1", "B=2", "A=3"}
		plain := says(t, tree, Spec{Env: env}, script)
		launched := says(t, tree, Spec{Env: env, Settings: inside.Settings{OOMScoreAdj: new(0)}}, script)
		if plain != launched {
			t.Errorf("plain\n%s\nlaunched\n%s", plain, launched)
		}
		for _, want := range []string{"SigBlk:\t0000000000000000\n", ofThis(t, "SigIgn") + "\n", "\nA=3\nB=2\nGOGC=7\nPATH="} {
			if !strings.Contains(plain, want) {
				t.Errorf("no %q in\n%s", want, plain)
			}
		}
		if kept := says(t, tree, Spec{Env: append(env, "NOTIFY_SOCKET=x")}, "echo $NOTIFY_SOCKET"); kept != "x" {
			t.Errorf("its own socket is %q", kept)
		}
	})
}

// An environment may be larger than any packet.
func TestLargeEnvironmentIsPassedOn(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		env := []string{"PATH=" + os.Getenv("PATH")}
		for i := range 10 {
			env = append(env, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 100_000)))
		}
		for _, settings := range []inside.Settings{{}, {Umask: new(uint32(0o22))}} {
			if got := says(t, tree, Spec{Env: env, Settings: settings}, "echo ${#V0} ${#V9}"); got != "100000 100000" {
				t.Error(got)
			}
		}
	})
}

func TestSettingThatCannotBeAppliedIsNamed(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		need.These(t, "root")
		tree := planted(t, guarded(t, kind))
		dir := t.TempDir()
		closed := filepath.Join(dir, "closed")
		garbage := filepath.Join(dir, "garbage")
		lost := filepath.Join(dir, "lost")
		if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(closed, 0o700), os.WriteFile(garbage, []byte("garbage"), 0o755),
			os.WriteFile(lost, []byte("#!/no/such/interpreter\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
		for p := dir; p != "/"; p = filepath.Dir(p) {
			if err := os.Chmod(p, 0o755); err != nil && p == dir {
				t.Fatal(err)
			}
			if p == os.TempDir() {
				_ = os.Chmod(p, 0o1777)
				break
			}
		}
		nobody := &inside.Credential{UID: 65534, GID: 65534, Groups: []uint32{65534}, Name: "nobody"}
		for _, c := range []struct {
			spec  Spec
			want  error
			errno error
			says  string
		}{
			{Spec{Argv: []string{"true"}, Dir: "/no/such"}, inside.ErrSettings, unix.ENOENT, "working_dir: stat /no/such: no such file or directory: create it"},
			{Spec{Argv: []string{"true"}, Dir: "/etc/passwd"}, inside.ErrSettings, unix.ENOTDIR, "working_dir"},
			{Spec{Argv: []string{"true"}, Dir: closed, Settings: inside.Settings{Credential: nobody}}, inside.ErrSettings, unix.EACCES, "working_dir: " + closed + ": permission denied: its user"},
			{Spec{Argv: []string{"true"}, Settings: inside.Settings{Limits: []inside.Limit{limitOf("nofile", 1, 1<<40)}}}, inside.ErrSettings, unix.EPERM, "limits.nofile: 1:1099511627776: operation not permitted: the supervisor's own hard limit"},
			{Spec{Argv: []string{"true"}, Settings: inside.Settings{Limits: []inside.Limit{limitOf("nofile", 2, 1)}}}, inside.ErrSettings, nil, "above the hard one"},
			{Spec{Argv: []string{"true"}, Settings: inside.Settings{Limits: []inside.Limit{limitOf("files", 1, 1)}}}, inside.ErrSettings, nil, "limits.files: there is no such limit"},
			{Spec{Argv: []string{"true"}, Settings: inside.Settings{Nice: new(20)}}, inside.ErrSettings, nil, "nice: 20"},
			{Spec{Argv: []string{"true"}, Settings: inside.Settings{OOMScoreAdj: new(-1001)}}, inside.ErrSettings, nil, "oom_score_adj: -1001"},
			{Spec{Argv: []string{"true"}, Settings: inside.Settings{Umask: new(uint32(0o1000))}}, inside.ErrSettings, nil, "umask: 01000"},
			{Spec{Argv: []string{garbage}, Settings: inside.Settings{Credential: nobody}}, inside.ErrNotExecutable, unix.ENOEXEC, "start " + garbage + " as user nobody (uid 65534): exec format error"},
			{Spec{Argv: []string{lost}, Settings: inside.Settings{Umask: new(uint32(0))}}, inside.ErrNotFound, unix.ENOENT, "start " + lost},
			{Spec{Argv: []string{"tr\x00ue"}, Settings: inside.Settings{Umask: new(uint32(0))}}, inside.ErrNotFound, nil, ""},
			{Spec{Argv: []string{"true"}, Env: []string{"A=\x00"}, Settings: inside.Settings{Umask: new(uint32(0))}}, nil, nil, "environment"},
		} {
			_, err := tree.Start(t.Context(), c.spec)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || c.errno != nil && !errors.Is(err, c.errno) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v", c.says, err)
			}
		}
		must.Report(t, tree.Kill(t.Context()))
	})
}

// nobodyMain is a supervisor without rights: it says what it is told when it asks for too much.
func nobodyMain() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 500, Max: 500})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	g, err := StartGuard(ctx, GuardConfig{Container: box.Container{Kind: box.KindWalk}, Name: "nobody"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	defer func() { cancel(); <-ran }()
	if err := errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+time.Minute)); err != nil {
		fmt.Println(err)
		return 1
	}
	tree, err := g.NewTree(ctx, 1, "svc", nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	own := &inside.Credential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Name: "me"}
	for _, s := range []inside.Settings{
		{Nice: new(-5)}, {OOMScoreAdj: new(-500)}, {Limits: []inside.Limit{limitOf("nproc", 1, 1<<30)}},
		{Credential: &inside.Credential{UID: 1, GID: 1, Name: "daemon"}},
		{Capabilities: &inside.Capabilities{Bounding: new(uint64(0))}}, {Capabilities: &inside.Capabilities{Ambient: 1 << unix.CAP_NET_BIND_SERVICE}},
		{Credential: own, NoNewPrivs: true, Capabilities: &inside.Capabilities{Bounding: new(^uint64(0))}, Nice: new(5), OOMScoreAdj: new(500), Limits: []inside.Limit{limitOf("nofile", 64, 64)}, Umask: new(uint32(0o77))},
	} {
		got, err := Output(ctx, new(wait.Reach), tree.Start, Spec{Argv: []string{"sh", "-c", "umask; ulimit -n; cat /proc/$$/oom_score_adj; cut -d ' ' -f 19 /proc/$$/stat"}, Env: os.Environ(), Settings: s})
		fmt.Printf("%q %v\n", got.Output, err)
	}
	return 0
}

func TestSupervisorWithoutRightsSaysWhatTheyWouldBeNeededFor(t *testing.T) {
	need.These(t, "root")
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{nobodyRole}
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{
		"nice: -5: permission denied: a value below", "oom_score_adj: -500: permission denied: to lower it",
		"limits.nproc: 1:1073741824: operation not permitted: the supervisor's own hard limit is lower: raise that one (LimitNPROC=",
		"user: daemon (uid 1, gid 1): its groups: operation not permitted: only a supervisor that runs as root",
		"capabilities.bounding: operation not permitted: only a supervisor that runs as root (with CAP_SETPCAP) can lower it",
		"capabilities.ambient: operation not permitted: the supervisor itself does not have all of them: run it as root",
		`"0077\n64\n500\n5\n" <nil>`,
	}
	if len(lines) != len(want) {
		t.Fatal(out.String())
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("%s\nwithout %q", lines[i], want[i])
		}
	}
}

// P4: a change of the user takes the death signal away, which is the last thing that notices when all three are killed.
func TestProgramOfAnotherUserKeepsItsDeathSignal(t *testing.T) {
	need.These(t, box.KindCgroup)
	need.These(t, "root")
	bounded := &inside.Capabilities{Bounding: new(uint64(1 << unix.CAP_NET_BIND_SERVICE))}
	for name, settings := range map[string]inside.Settings{
		"another user":                {Credential: asNobody()},
		"another user with a right":   {Credential: asNobody(), Capabilities: &inside.Capabilities{Ambient: 1 << unix.CAP_NET_BIND_SERVICE}, NoNewPrivs: true},
		"root without most of rights": {Capabilities: bounded, NoNewPrivs: true},
		"root, by name":               {Credential: &inside.Credential{Name: "root"}, Capabilities: &inside.Capabilities{Ambient: *bounded.Bounding}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t, box.KindCgroup)
			p.do(command{Do: "begin", Epoch: 1})
			p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
			p.do(command{Do: "tree", Epoch: 1, Name: "a"})
			p.do(command{Do: "start", Name: "a", Script: "echo ready; exec sleep 1000", Settings: settings})
			p.ready()
			guardians := p.guardians()
			freeze(t, p.cmd.Process.Pid)
			kill9(guardians...)
			awaitDeath(t, guardians...)
			p.lives()
			kill9(p.cmd.Process.Pid)
			p.dead()
		})
	}
}

// The directory is the same wherever a stub is: the supervisor's own, and for another user one that everybody can enter.
func TestProgramStartsWhereTheSupervisorIs(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		need.These(t, "root")
		tree := planted(t, guarded(t, kind))
		t.Chdir(t.TempDir())
		here, err := os.Getwd()
		if err == nil {
			err = os.WriteFile("relative", []byte("#!/bin/sh\npwd\n"), 0o755)
		}
		must.OK(t, err)
		for _, settings := range []inside.Settings{{}, {Umask: new(uint32(0o22))}} {
			got, err := Output(t.Context(), new(wait.Reach), tree.Start, Spec{Argv: []string{"./relative"}, Settings: settings})
			if err != nil || strings.TrimSpace(string(got.Output)) != here {
				t.Errorf("%q %v", got.Output, err)
			}
		}
		nobody := inside.Settings{Credential: &inside.Credential{UID: 65534, GID: 65534, Name: "nobody"}}
		if got := says(t, tree, Spec{Settings: nobody}, "pwd"); got != "/" {
			t.Errorf("nobody is in %s", got)
		}
	})
}

func limitOf(name string, soft, hard uint64) inside.Limit {
	return inside.Limit{Name: name, Soft: soft, Hard: hard}
}
