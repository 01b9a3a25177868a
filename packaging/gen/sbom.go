package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// component is one of CycloneDX's.
type component struct {
	Type       string      `json:"type"`
	Ref        string      `json:"bom-ref"`
	Name       string      `json:"name"`
	Version    string      `json:"version"`
	Hashes     []hash      `json:"hashes,omitempty"`
	Licenses   []licence   `json:"licenses,omitempty"`
	PURL       string      `json:"purl,omitempty"`
	Properties []property  `json:"properties,omitempty"`
	Components []component `json:"components,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type licence struct {
	License    *licenceID `json:"license,omitempty"`
	Expression string     `json:"expression,omitempty"`
}

type licenceID struct {
	ID string `json:"id"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ofTree says what a hash is of: of Go's listing of the hashes of all files, not of one file.
const ofTree = "understudy:hash-is-of"

func under(ids []string) []licence {
	if len(ids) == 1 {
		return []licence{{License: &licenceID{ids[0]}}}
	}
	return []licence{{Expression: strings.Join(ids, " AND ")}}
}

// bom lists what binaries of one version are made of, as CycloneDX 1.5: what the Go linker has written into them, with the sums that
// go.sum has, the licences that the modules come with, and the binaries themselves.
func (a about) bom(binaries ...string) ([]byte, error) {
	self := component{
		Type: "application", Ref: "pkg:golang/understudy@" + a.version, Name: "understudy", Version: a.version,
		PURL: "pkg:golang/understudy@" + a.version, Licenses: under([]string{"Apache-2.0"}),
	}
	var parts []component
	var refs []string
	all := sha256.New()
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("read what %s is made of: %w", binary, err)
		}
		text, err := os.ReadFile(binary)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		_, _ = all.Write(sum[:])
		name := filepath.Base(binary)
		self.Components = append(self.Components, component{
			Type: "file", Ref: self.Ref + "#" + name, Name: name, Version: a.version,
			Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: self.Licenses,
		})
		if len(parts) == 0 {
			std, err := library(info.GoVersion)
			if err != nil {
				return nil, err
			}
			parts, refs = append(parts, std), append(refs, std.Ref)
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			ref := "pkg:golang/" + m.Path + "@" + m.Version
			if slices.Contains(refs, ref) {
				continue
			}
			dir, err := output("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
			if err != nil {
				return nil, err
			}
			c, err := module(m.Path, m.Version, m.Sum, dir)
			if err != nil {
				return nil, err
			}
			parts, refs = append(parts, c), append(refs, ref)
		}
	}
	id := all.Sum(nil)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of our own making, the same for the same binaries
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"serialNumber": fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		"metadata":     map[string]any{"timestamp": a.date.Format(time.RFC3339), "component": self},
		"components":   parts,
		"dependencies": []map[string]any{{"ref": self.Ref, "dependsOn": refs}},
	}, "", "  ")
}

// module is one that a binary has inside. sum is as go.sum has it: h1: and the SHA-256, in base64, of a line for each file.
func module(path, version, sum, dir string) (component, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil || !strings.HasPrefix(sum, "h1:") || len(raw) != sha256.Size {
		return component{}, fmt.Errorf("%s %s has the sum %q, which is no h1", path, version, sum)
	}
	ids, err := licences(path, dir)
	if err != nil {
		return component{}, err
	}
	ref := "pkg:golang/" + path + "@" + version
	return component{
		Type: "library", Ref: ref, Name: path, Version: version, PURL: ref, Licenses: under(ids),
		Hashes:     []hash{{"SHA-256", hex.EncodeToString(raw)}},
		Properties: []property{{ofTree, "the module's files, as go.sum has it: " + sum}},
	}, nil
}

// library is Go's own, which is in no go.sum: its hash is made in the same way of the sources here.
func library(version string) (component, error) {
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return component{}, err
	}
	ids, err := licences("the Go standard library", root)
	if err != nil {
		return component{}, err
	}
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "go"), " ") // experiments are behind a blank
	sum, err := h1(filepath.Join(root, "src"), "std@"+version)
	if err != nil {
		return component{}, err
	}
	ref := "pkg:golang/std@" + version
	return component{
		Type: "library", Ref: ref, Name: "std", Version: version, PURL: ref, Licenses: under(ids), Hashes: []hash{{"SHA-256", hex.EncodeToString(sum)}},
		Properties: []property{{ofTree, "GOROOT/src, made as go.sum's h1 is, with std@" + version + "/ before each name"}},
	}, nil
}

// h1 is Go's hash of a tree: of a line for each file, in order, with its SHA-256 and its name.
func h1(dir, prefix string) ([]byte, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = prefix + "/" + filepath.ToSlash(strings.TrimPrefix(name, dir+string(filepath.Separator)))
	}
	slices.Sort(names)
	whole := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, strings.TrimPrefix(name, prefix+"/")))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(whole, "%x  %s\n", sha256.Sum256(text), name)
	}
	return whole.Sum(nil), nil
}
