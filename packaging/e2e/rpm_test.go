package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// rpmRoot is the disk of a machine that rpm works on from outside: the scripts run in it.
type rpmRoot struct{ dir string }

func newRpmRoot(t *testing.T) rpmRoot {
	t.Helper()
	need.These(t, "rpm", "nspawn") // which brings the disk
	r := rpmRoot{newDisk(t, debian, t.TempDir())}
	if err := run(exec.Command("mount", "-t", "proc", "proc", filepath.Join(r.dir, "proc"))); err != nil { // tmpfiles looks there
		t.Fatal(err)
	}
	return r
}

// rpm runs rpm on the disk. Debian's systemd is not in rpm's books.
func (r rpmRoot) rpm(t *testing.T, words ...string) {
	t.Helper()
	out, err := exec.Command("rpm", append([]string{"--root", r.dir, "--nodeps", "--noverify"}, words...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "scriptlet failed") {
		t.Fatalf("rpm %v: %v\n%s", words, err, out)
	}
}

func (r rpmRoot) has(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, name))
	return err == nil
}

func (r rpmRoot) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	must.OK(t, err)
	return string(text)
}

func TestRpmIsInstalledUpgradedAndErased(t *testing.T) {
	r := newRpmRoot(t)
	arch := rpmArch[runtime.GOARCH]
	r.rpm(t, "--install", file(t, packages(t, buildOlder), "*."+arch+".rpm"))
	for _, name := range []string{
		"usr/bin/understudy", "usr/lib/systemd/system/understudy.service", "usr/lib/systemd/system/understudy@.service",
		"etc/understudy/understudy.yaml", "etc/understudy/conf.d", "var/log/understudy", "usr/share/man/man1/understudy-run.1.gz",
		"usr/share/zsh/site-functions/_understudy", "usr/share/licenses/understudy/LICENSE",
		"etc/systemd/system/multi-user.target.wants/understudy.service", // Debian's presets enable everything
	} {
		if !r.has(name) {
			t.Errorf("%s is missing", name)
		}
	}
	if r.has("usr/share/lintian/overrides/understudy") {
		t.Error("it has what is the deb's")
	}
	if !strings.Contains(r.read(t, "etc/passwd"), "\nunderstudy:") {
		t.Error("there is no user")
	}
	config := "# changed by the operator\n" + r.read(t, "etc/understudy/understudy.yaml")
	must.OK(t, os.WriteFile(filepath.Join(r.dir, "etc/understudy/understudy.yaml"), []byte(config), 0o644))
	must.OK(t, os.Remove(filepath.Join(r.dir, "etc/systemd/system/multi-user.target.wants/understudy.service")))
	r.rpm(t, "--upgrade", file(t, packages(t, buildNewer), "*."+arch+".rpm"))
	if r.read(t, "etc/understudy/understudy.yaml") != config {
		t.Error("the upgrade has overwritten the operator's config")
	}
	if r.has("etc/systemd/system/multi-user.target.wants/understudy.service") {
		t.Error("the upgrade has enabled what the operator had disabled")
	}
	out, err := exec.Command("chroot", r.dir, "/usr/bin/understudy", "version").Output()
	if err != nil || !strings.Contains(string(out), newer) {
		t.Errorf("after the upgrade: %s %v", out, err)
	}
	r.rpm(t, "--erase", "understudy")
	left, err := exec.Command("find", r.dir, "-xdev", "-name", "*understudy*", "-not", "-path", "*/rpm/*", "-not", "-path", r.dir+"/run/*").Output()
	must.OK(t, err)
	var names []string
	for _, name := range strings.Fields(string(left)) {
		names = append(names, strings.TrimPrefix(name, r.dir))
	}
	slices.Sort(names)
	// What the operator has changed is kept, as rpm does, and logs are.
	if got, want := strings.Join(names, " "), "/etc/understudy /etc/understudy/understudy.yaml.rpmsave /var/log/understudy"; got != want {
		t.Errorf("after the removal there is left %s", got)
	}
}

func TestRpmScriptsSurviveAHostWithoutSystemd(t *testing.T) {
	need.These(t, "rpm")
	for _, script := range []string{"post", "preun", "postun"} {
		for _, n := range []string{"0", "1", "2"} {
			cmd := exec.Command("/bin/sh", "-e", "../rpm/"+script, n)
			cmd.Env = []string{"PATH=/nonexistent"}
			must.Report(t, run(cmd))
		}
	}
}
