package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/supervisor/testbed/keytest"
)

// What lets strangers at the HTTP side is warned of, and what to type is said.
func TestTokensThatStrangersGetAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	for name, token := range map[string]string{"one": "x", "fifteen": strings.Repeat("x", 15), "long": strings.Repeat("x", 16), "open": strings.Repeat("x", 16)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	authority := keytest.New(t)
	authority.Sign(t, "web", nil)
	files := authority.TLS("web")
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	openKey := filepath.Join(dir, "web.key")
	if err := os.WriteFile(openKey, text, 0o644); err != nil { //nolint:gosec // as it should not be
		t.Fatal(err)
	}
	if err := os.Chmod(openKey, 0o644); err != nil {
		t.Fatal(err)
	}
	secured := ", tls: {cert_file: " + files.CertFile + ", key_file: " + files.KeyFile + "}"
	for http, want := range map[string][]string{
		`listen: "127.0.0.1:1", token_file: DIR/long`: nil,
		`listen: "[::1]:1", token_file: DIR/long`:     nil,
		`listen: "localhost:1", token_file: DIR/long`: nil,
		`listen: ":1"`: {"http.listen: every host that reaches :1 can read status"},
		`listen: "[::]:1", read_token_file: DIR/long` + secured:                                 nil,
		`listen: "0.0.0.0:1", token_file: DIR/long`:                                             {"http.listen: every host", "http.token_file: the token is sent without TLS to 0.0.0.0:1"},
		`listen: "10.0.0.1:1", read_token_file: DIR/long`:                                       {"http.read_token_file: the token is sent without TLS"},
		`listen: "10.0.0.1:1", token_file: DIR/long` + secured:                                  nil,
		`listen: "127.0.0.1:1", token_file: DIR/one`:                                            {"http.token_file: the token in DIR/one is shorter than 16 characters and can be guessed: openssl rand -hex 32 > DIR/one"},
		`listen: "127.0.0.1:1", read_token_file: DIR/fifteen`:                                   {"http.read_token_file: the token in DIR/fifteen is shorter"},
		`listen: "127.0.0.1:1", token_file: DIR/open`:                                           {"http.token_file: DIR/open belongs to "},
		`listen: "127.0.0.1:1", token_file: DIR/long, read_token_file: DIR/long`:                {"http.read_token_file: is the file of token_file"},
		`listen: "10.0.0.1:1", tls: {cert_file: ` + files.CertFile + `, key_file: DIR/web.key}`: {"lets others read it: chmod 600 DIR/web.key"},
		`listen: "10.0.0.1:1", tls: {cert_file: DIR/none, key_file: DIR/web.key}`:               {"http.tls: open DIR/none", "http.tls.key_file: DIR/web.key belongs to"},
	} {
		src := "node: n\nzookeeper: {servers: [127.0.0.1]}\nservices: {}\nhttp: {" + strings.ReplaceAll(http, "DIR", dir) + "}\n"
		r := newLoader("u.yaml", disk{}).load([]byte(src))
		if r.Err() != nil {
			t.Errorf("%s: %v", http, r.Err())
			continue
		}
		got := slices.Concat(r.Warnings, r.Here())
		ok := len(got) == len(want)
		for i := range min(len(got), len(want)) {
			ok = ok && strings.Contains(got[i].String(), strings.ReplaceAll(want[i], "DIR", dir))
		}
		if !ok {
			t.Errorf("%s: %v", http, got)
		}
	}
}
