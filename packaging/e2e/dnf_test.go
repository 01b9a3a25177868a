package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// repository has folders of packages that dnf installs from: the release's, and one of what its disk lacks.
type repository struct{ dir string }

// newRepository has a systemd that the package can depend on: that of the disk is not in rpm's books.
func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t.TempDir()}
	own := filepath.Join(r.dir, "own")
	const stub = "name: systemd\narch: noarch\nversion: \"252\"\nmaintainer: nobody\ndescription: stands for that of the disk\n"
	config := filepath.Join(t.TempDir(), "stub.yaml")
	err := os.WriteFile(config, []byte(stub), 0o644)
	if err == nil {
		cmd := exec.Command("go", "tool", "-modfile=packaging/tools/go.mod", "nfpm", "package", "--config", config, "--packager", "rpm", "--target", own)
		cmd.Dir = "../.."
		err = errors.Join(os.Mkdir(own, 0o755), run(cmd))
	}
	if err == nil {
		err = run(exec.Command("createrepo_c", "--quiet", own))
	}
	must.OK(t, err)
	return r
}

// add publishes the packages of a build beside the stub.
func (r repository) add(t *testing.T, builds ...func() (string, error)) {
	t.Helper()
	site := t.TempDir()
	published(t, site, true, builds...)
	must.OK(t, run(exec.Command("cp", "-r", filepath.Join(site, "rpm"), filepath.Join(site, "understudy.asc"), r.dir)))
}

// dnf does as it does on a machine whose disk is at root.
func (r repository) dnf(t *testing.T, root string, words ...string) {
	t.Helper()
	args := []string{
		"--assumeyes", "--installroot=" + root, "--releasever=1", "--disablerepo=*", "--repofrompath=here,file://" + r.dir + "/rpm",
		"--enablerepo=here", "--setopt=here.gpgcheck=0", "--setopt=here.repo_gpgcheck=1", "--setopt=here.gpgkey=file://" + r.dir + "/understudy.asc",
		"--setopt=here.metadata_expire=0", "--repofrompath=own,file://" + r.dir + "/own", "--enablerepo=own", "--setopt=own.gpgcheck=0", "--setopt=cachedir=" + t.TempDir(),
	}
	out, err := exec.Command("dnf", append(args, words...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "scriptlet failed") {
		t.Fatalf("dnf %v: %v\n%s", words, err, out)
	}
}

func TestDnfInstallsUpgradesAndRemoves(t *testing.T) {
	need.These(t, "dnf", "rpm", "nspawn", "gpg", "dpkg-scanpackages")
	repo, r := newRepository(t), newRpmRoot(t)
	repo.add(t, buildOlder)
	repo.dnf(t, r.dir, "install", "understudy")
	says := func(version string) {
		t.Helper()
		if out, err := exec.Command("chroot", r.dir, "/usr/bin/understudy", "version").Output(); err != nil || !strings.Contains(string(out), version) {
			t.Errorf("it is %s, not %s: %v", out, version, err)
		}
	}
	says(older)
	config := "# changed by the operator\n" + r.read(t, "etc/understudy/understudy.yaml")
	must.OK(t, os.WriteFile(filepath.Join(r.dir, "etc/understudy/understudy.yaml"), []byte(config), 0o644))
	repo.add(t, buildNewer)
	repo.dnf(t, r.dir, "upgrade", "understudy")
	says(newer)
	if r.read(t, "etc/understudy/understudy.yaml") != config {
		t.Error("the upgrade has overwritten the operator's config")
	}
	repo.dnf(t, r.dir, "remove", "understudy")
	if r.has("usr/bin/understudy") || !r.has("etc/understudy/understudy.yaml.rpmsave") {
		t.Error("the removal leaves the binary, or takes the operator's config away")
	}
}
