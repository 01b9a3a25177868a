package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"understudy/election"
)

//go:embed page
var pageFiles embed.FS

// scripts are one script, in this order.
var scripts = []string{"picture.js", "list.js", "card.js", "nodes.js", "orders.js"}

// page is what people are shown: one document, which loads nothing from anywhere, and runs nothing but what is in it.
type page struct{ text, policy string }

func newPage() page {
	read := func(names ...string) (all string) {
		for _, name := range names {
			text, err := pageFiles.ReadFile("page/" + name)
			if err != nil {
				panic(err) // it was built in
			}
			all += string(text)
		}
		return all
	}
	style, script := read("page.css"), "'use strict';\n"+words()+read(scripts...)
	return page{
		text: strings.NewReplacer("{{style}}", style, "{{script}}", script).Replace(read("page.html")),
		policy: fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", digest(script), digest(style)),
	}
}

// words are those of the cluster that the page decides by, as a constant of its script.
func words() string {
	text, err := json.Marshal(map[string]any{
		"role": map[string]election.Role{
			"standby": election.RoleStandby, "active": election.RoleActive, "stopping": election.RoleStopping,
		},
		"health": map[string]election.Health{
			"ok": election.HealthOK, "starting": election.HealthStarting, "unknown": election.HealthUnknown,
		},
		"signs": map[election.Role]string{
			election.RoleActive: "●", election.RoleStandby: "○", election.RoleClaiming: "◔",
			election.RoleFencing: "✕", election.RoleStopping: "◐",
			election.RoleFailed: "▲", election.RolePaused: "‖", election.RoleOffline: "–",
		},
		"paused":       election.RolePaused,
		"ill":          []election.Health{election.HealthFailing, election.HealthFailed, election.HealthUnfit},
		"planned":      slices.DeleteFunc(slices.Clone(ends), func(r election.Reason) bool { return !r.Planned() }),
		"noBreadcrumb": election.NoBreadcrumb,
	})
	if err != nil {
		panic(err) // they are plain
	}
	return "const wire = " + string(text) + ";\n"
}

// digest is how a policy names what stands between two tags.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (p page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", p.policy)
	_, _ = w.Write([]byte(p.text))
}
