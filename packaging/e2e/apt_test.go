package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// published makes the folder of a web server of the packages of builds, signed.
func published(t *testing.T, dir string, signed bool, builds ...func() (string, error)) {
	t.Helper()
	from := t.TempDir()
	for _, build := range builds {
		must.OK(t, run(exec.Command("sh", "-c", "cp $0/*.deb $0/*.rpm $1", packages(t, build), from)))
	}
	cmd := exec.Command("../repository.sh", from, dir)
	if signed {
		cmd.Env = append(os.Environ(), "SIGN=maintainers@understudy.invalid", "GNUPGHOME="+keyring(t))
	}
	must.OK(t, run(cmd))
}

// keyring has a key to sign with, made on the spot.
func keyring(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // its sockets' names must be short
	must.OK(t, err)
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() // there may be no agent
		_ = os.RemoveAll(home)
	})
	err = os.Chmod(home, 0o700)
	if err == nil {
		cmd := exec.Command("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "Maintainers <maintainers@understudy.invalid>", "ed25519", "sign", "never")
		cmd.Env = append(os.Environ(), "GNUPGHOME="+home)
		err = run(cmd)
	}
	must.OK(t, err)
	return home
}

// A machine that has the repository as a source installs from it, upgrades from it, and believes nobody who changes it.
func TestAptInstallsAndUpgradesFromTheRepository(t *testing.T) {
	need.These(t, "nspawn", "gpg", "dpkg-scanpackages", "createrepo_c")
	site := t.TempDir()
	published(t, site, true, buildOlder)
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	defer server.Close()
	root := newDisk(t, debian, t.TempDir())
	in := func(command string) (string, error) {
		cmd := exec.Command("chroot", root, "/bin/sh", "-ec", command)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	done := func(command string) string {
		t.Helper()
		out, err := in(command)
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return out
	}
	const only = " -o Dir::Etc::SourceParts=/root/sources -o Dir::Etc::SourceList=/dev/null"
	done("mkdir -p /root/sources /etc/apt/keyrings; chmod 1777 /tmp")
	must.OK(t, run(exec.Command("cp", filepath.Join(site, "understudy.asc"), filepath.Join(root, "etc/apt/keyrings/understudy.asc"))))
	done("echo 'deb [signed-by=/etc/apt/keyrings/understudy.asc] " + server.URL + "/apt ./' >/root/sources/understudy.list")
	done("apt-get" + only + " update && apt-get" + only + " install -y understudy")
	if got := done("understudy version"); !strings.Contains(got, older) {
		t.Errorf("it is %s, not %s", got, older)
	}
	published(t, site, true, buildOlder, buildNewer) // by another key: whoever has the web server
	if out, err := in("apt-get" + only + " update -o APT::Update::Error-Mode=any"); err == nil {
		t.Errorf("what another key signed is believed:\n%s", out)
	}
	must.OK(t, run(exec.Command("cp", filepath.Join(site, "understudy.asc"), filepath.Join(root, "etc/apt/keyrings/understudy.asc"))))
	done("apt-get" + only + " update && apt-get" + only + " upgrade -y")
	if got := done("understudy version"); !strings.Contains(got, newer) {
		t.Errorf("after the upgrade it is %s, not %s", got, newer)
	}
}
