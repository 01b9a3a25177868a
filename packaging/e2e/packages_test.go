package e2e

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

const (
	largest = 8 << 20
	slowest = 20 * time.Millisecond
)

// Neither the caller's settings nor the place where it happens may show.
func TestTwoBuildsAreBitIdentical(t *testing.T) {
	one := packages(t, buildOlder)
	two, err := build("again", older, "TZ=Pacific/Auckland", "LC_ALL=C", "UNDERSTUDY_ZK=elsewhere:1", "HOSTNAME=other")
	must.OK(t, err)
	files, err := filepath.Glob(one + "/*")
	if err != nil || len(files) != 9 {
		t.Fatalf("two binaries, two deb and two rpm, two lists of parts and the sums were to be made, not %v", files)
	}
	for _, f := range files {
		a, err := os.ReadFile(f)
		must.OK(t, err)
		b, err := os.ReadFile(filepath.Join(two, filepath.Base(f)))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s is another the second time: %v", filepath.Base(f), err)
		}
		if kind := filepath.Ext(f); kind == ".deb" || kind == ".rpm" {
			t.Logf("%s has %.1f MB", filepath.Base(f), float64(len(a))/(1<<20))
			if len(a) > largest {
				t.Errorf("%s is larger than %d MB", filepath.Base(f), largest>>20)
			}
		}
	}
}

func TestBinaryIsStaticAndStartsQuickly(t *testing.T) {
	dir := packages(t, buildOlder)
	for _, arch := range []string{"amd64", "arm64"} {
		f, err := elf.Open(filepath.Join(dir, "understudy-"+arch))
		must.OK(t, err)
		defer f.Close()
		if f.Section(".symtab") != nil || f.Section(".interp") != nil || f.Section(".dynamic") != nil {
			t.Errorf("%s is not static and stripped", arch)
		}
	}
	var took []time.Duration
	for range 30 {
		began := time.Now()
		must.OK(t, run(exec.Command(filepath.Join(dir, "understudy-"+runtime.GOARCH), "--help")))
		took = append(took, time.Since(began))
	}
	t.Logf("--help: %s", kit.Summary(took))
	if best := slices.Min(took); best > slowest { // of a machine that is busy the quickest says most
		t.Errorf("--help takes %v at best", best)
	}
}

func TestLintianFindsNoError(t *testing.T) {
	need.These(t, "lintian")
	dir := packages(t, buildOlder)
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.Command("lintian", "--allow-root", "--fail-on", "error", file(t, dir, "*_"+arch+".deb"))
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Errorf("%v: %v", cmd, err)
		}
	}
}

func TestRpmlintFindsNoError(t *testing.T) {
	need.These(t, "rpm")
	// It unpacks with cpio, which takes the absolute names in the package at their word: never as root.
	dir, err := os.MkdirTemp("", "rpmlint-")
	must.OK(t, err)
	defer os.RemoveAll(dir)
	err = run(exec.Command("cp", file(t, packages(t, buildOlder), "*.x86_64.rpm"), "../rpm/rpmlint.toml", dir))
	if err == nil {
		err = run(exec.Command("chmod", "-R", "a+rX", dir))
	}
	must.OK(t, err)
	cmd := exec.Command("rpmlint", "-c", "rpmlint.toml", filepath.Base(file(t, dir, "*.rpm")))
	if os.Geteuid() == 0 {
		cmd = exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups"}, cmd.Args...)...)
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), " 0 errors") {
		t.Errorf("rpmlint: %v", err)
	}
}

func TestManualPagesHaveNoFaults(t *testing.T) {
	need.These(t, "lintian") // which brings man
	root := t.TempDir()
	must.OK(t, run(exec.Command("dpkg-deb", "-x", file(t, packages(t, buildOlder), "*_amd64.deb"), root)))
	pages, _ := filepath.Glob(root + "/usr/share/man/man?/*")
	if len(pages) < 15 {
		t.Errorf("only %v", pages)
	}
	for _, page := range pages {
		cmd := exec.Command("man", "--warnings", "-l", page)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80")
		var complaints strings.Builder
		cmd.Stderr = &complaints
		text, err := cmd.Output()
		for line := range strings.Lines(string(text)) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("%s is too wide for a terminal: %s", filepath.Base(page), line)
			}
		}
		if err != nil || complaints.Len() > 0 || !regexp.MustCompile(`(?m)^NAME\n +understudy.* - \S`).Match(text) {
			t.Errorf("%s: %v %s\n%.200s", filepath.Base(page), err, complaints.String(), text)
		}
	}
}

// Each example is right where it is installed, and bash takes its completions.
func TestInstalledFilesAreRight(t *testing.T) {
	root := t.TempDir()
	must.OK(t, run(exec.Command("dpkg-deb", "-x", file(t, packages(t, buildOlder), "*_"+runtime.GOARCH+".deb"), root)))
	installed, _ := filepath.Glob(root + "/usr/share/doc/understudy/examples/*.yaml")
	installed = append(installed, root+"/etc/understudy/understudy.yaml")
	for _, f := range installed {
		must.Report(t, run(exec.Command(root+"/usr/bin/understudy", "check", "--elsewhere", "--config", f)))
	}
	for _, name := range []string{"haproxy.cfg", "prometheus-rules.yml", "grafana-dashboard.json", "conf.d/clock.yaml", "wrap.sh", "token-store.py", "hardening.conf"} {
		if _, err := os.Stat(filepath.Join(root, "usr/share/doc/understudy/examples", name)); err != nil {
			t.Error(err)
		}
	}
	must.Report(t, run(exec.Command("bash", "-c", "source "+root+"/usr/share/bash-completion/completions/understudy && complete -p understudy")))
}

var (
	codeBlock    = regexp.MustCompile("(?s)\n *```.*?\n *```")
	relativeLink = regexp.MustCompile(`(?m)\]\(([^)\s#:]+)[^)\s:]*\)|^# yaml-language-server: \$schema=(\S+)$`)
)

// What an installed page or example refers to beside it is installed, too.
func TestInstalledLinksLead(t *testing.T) {
	root := t.TempDir()
	must.OK(t, run(exec.Command("dpkg-deb", "-x", file(t, packages(t, buildOlder), "*_"+runtime.GOARCH+".deb"), root)))
	links := 0
	err := filepath.WalkDir(root+"/usr/share/doc", func(path string, _ os.DirEntry, err error) error {
		if kind := filepath.Ext(path); err != nil || kind != ".md" && kind != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range relativeLink.FindAllSubmatch(codeBlock.ReplaceAll(text, nil), -1) {
			links++
			to := filepath.Join(filepath.Dir(path), string(link[1])+string(link[2]))
			if next, err := os.Readlink(to); err == nil {
				to = filepath.Join(filepath.Dir(to), next)
			}
			if strings.HasPrefix(to, root+"/usr/share/common-licenses/") { // of each Debian
				continue
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", strings.TrimPrefix(path, root), err)
			}
		}
		return nil
	})
	if err != nil || links < 300 {
		t.Errorf("%d links, %v", links, err)
	}
}

func TestListOfPartsIsWhole(t *testing.T) {
	root := t.TempDir()
	must.OK(t, run(exec.Command("dpkg-deb", "-x", file(t, packages(t, buildOlder), "*_"+runtime.GOARCH+".deb"), root)))
	text, err := os.ReadFile(root + "/usr/share/doc/understudy/understudy.cdx.json")
	must.OK(t, err)
	var bom struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct {
			Name, Version string
			Hashes        []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal(text, &bom); err != nil || bom.BOMFormat != "CycloneDX" {
		t.Fatalf("%v: %.100s", err, text)
	}
	binary, err := os.ReadFile(root + "/usr/bin/understudy")
	must.OK(t, err)
	if itself := fmt.Sprintf("%x", sha256.Sum256(binary)); !bytes.Contains(text, []byte(itself)) {
		t.Errorf("it does not have the binary's hash, %s", itself)
	}
	var listed []string
	for _, c := range bom.Components {
		if c.Name == "std" {
			continue
		}
		if listed = append(listed, c.Name+" "+c.Version); len(c.Hashes) == 0 {
			t.Errorf("%s is without a hash", c.Name)
		}
	}
	out, err := exec.Command("go", "version", "-m", root+"/usr/bin/understudy").Output()
	must.OK(t, err)
	var says struct{ Commit string }
	said, err := exec.Command(root+"/usr/bin/understudy", "version", "--json").Output()
	if err = errors.Join(err, json.Unmarshal(said, &says)); err != nil || len(says.Commit) != 40 {
		t.Errorf("it does not say of which commit it is: %s %v", said, err)
	}
	var inside []string
	for _, m := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(string(out), -1) {
		inside = append(inside, m[1]+" "+m[2])
	}
	if diff := cmp.Diff(inside, listed); diff != "" {
		t.Error(diff)
	}
	copyright, err := os.ReadFile(root + "/usr/share/doc/understudy/copyright")
	must.OK(t, err)
	for _, m := range inside {
		if !strings.Contains(string(copyright), m+" is part of the program") {
			t.Errorf("the licence of %s is missing", m)
		}
	}
}
