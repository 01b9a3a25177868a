package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Of all that is in the binary, the list of its parts tells hash and licence, in the form that its readers need: CycloneDX 1.5 with
// SPDX's names, every reference leading somewhere.
func TestEveryPartHasAHashAndALicence(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := about{version: "1.2.3", date: time.Unix(0, 0).UTC()}.bom(binary)
	if err != nil {
		t.Fatal(err)
	}
	again, err := about{version: "1.2.3", date: time.Unix(0, 0).UTC()}.bom(binary)
	if err != nil || string(again) != string(text) {
		t.Errorf("it is another one each time: %v", err)
	}
	var bom struct {
		BOMFormat, SpecVersion, SerialNumber string
		Version                              int
		Metadata                             struct {
			Timestamp time.Time
			Component component
		}
		Components   []component
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.SpecVersion != "1.5" || bom.Version != 1 ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`).MatchString(bom.SerialNumber) {
		t.Errorf("%.300s", text)
	}
	self := bom.Metadata.Component
	refs := []string{self.Ref}
	sha := regexp.MustCompile(`^[0-9a-f]{64}$`)
	for _, c := range slices.Concat(bom.Components, self.Components) {
		refs = append(refs, c.Ref)
		if len(c.Hashes) != 1 || c.Hashes[0].Alg != "SHA-256" || !sha.MatchString(c.Hashes[0].Content) {
			t.Errorf("%s: hashes %v", c.Name, c.Hashes)
		}
		if c.Name == "" || c.Version == "" || c.Type != "library" && c.Type != "file" || c.Type == "library" && (c.PURL != c.Ref || len(c.Properties) != 1) {
			t.Errorf("%+v", c)
		}
		if len(c.Licenses) != 1 || (c.Licenses[0].License == nil) == (c.Licenses[0].Expression == "") {
			t.Errorf("%s: licences %+v", c.Name, c.Licenses)
		}
	}
	for _, d := range bom.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !slices.Contains(refs, ref) {
				t.Errorf("%s leads nowhere", ref)
			}
		}
	}
	slices.Sort(refs)
	if len(slices.Compact(slices.Clone(refs))) != len(refs) {
		t.Errorf("a reference is there twice: %v", refs)
	}
	raw, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(raw); len(self.Components) != 1 || self.Components[0].Hashes[0].Content != hex.EncodeToString(sum[:]) {
		t.Errorf("the binary: %+v", self.Components)
	}

	info, err := buildinfo.ReadFile(binary)
	if err != nil || len(info.Deps) < 5 {
		t.Fatalf("%v, %+v", err, info)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		i := slices.IndexFunc(bom.Components, func(c component) bool { return c.Name == m.Path && c.Version == m.Version })
		if i < 0 {
			t.Errorf("%s is not listed", m.Path)
			continue
		}
		want, _ := hex.DecodeString(bom.Components[i].Hashes[0].Content)
		if line := m.Path + " " + m.Version + " h1:" + base64.StdEncoding.EncodeToString(want) + "\n"; !strings.Contains(string(sums), line) {
			t.Errorf("go.sum does not have %s", line)
		}
	}
	if want := `{"expression":"Apache-2.0 AND MIT"}`; !slices.ContainsFunc(bom.Components, func(c component) bool {
		said, _ := json.Marshal(c.Licenses[0])
		return c.Name == "gopkg.in/yaml.v3" && string(said) == want
	}) {
		t.Error("yaml.v3 is under two licences")
	}
}

// The hash that go.sum has is what h1 makes of a module's files.
func TestHashIsThatOfGoSum(t *testing.T) {
	dir, err := output("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "github.com/oklog/run")
	if err != nil {
		t.Fatal(err)
	}
	dir, version, _ := strings.Cut(dir, " ")
	sum, err := h1(dir, "github.com/oklog/run@"+version)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../../go.sum")
	if line := "github.com/oklog/run " + version + " h1:" + base64.StdEncoding.EncodeToString(sum) + "\n"; err != nil || !strings.Contains(string(sums), line) {
		t.Errorf("%v: go.sum does not have %s", err, line)
	}
}

func TestLicenceThatNobodyKnowsIsAnError(t *testing.T) {
	for text, want := range map[string]string{"do as you like": "nobody has said yet", "": "comes without a licence"} {
		dir := t.TempDir()
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if ids, err := licences("x", dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v", ids, err)
		}
	}
}
