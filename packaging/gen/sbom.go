package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// bom lists what a binary is made of, as CycloneDX 1.5: what the Go linker has written into it.
func (a about) bom(binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w", binary, err)
	}
	type component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
	}
	self := component{Type: "application", Ref: "pkg:golang/understudy@" + a.version, Name: "understudy", Version: a.version, PURL: "pkg:golang/understudy@" + a.version}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{{Type: "library", Ref: "pkg:golang/std@" + goVersion, Name: "std", Version: goVersion, PURL: "pkg:golang/std@" + goVersion}}
	refs := []string{parts[0].Ref}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		ref := "pkg:golang/" + m.Path + "@" + m.Version
		parts = append(parts, component{Type: "library", Ref: ref, Name: m.Path, Version: m.Version, PURL: ref})
		refs = append(refs, ref)
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":     map[string]any{"timestamp": a.date.Format(time.RFC3339), "component": self},
		"components":   parts,
		"dependencies": []map[string]any{{"ref": self.Ref, "dependsOn": refs}},
	}, "", "  ")
}
