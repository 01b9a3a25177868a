package config

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
		`listen: "127.0.0.1:1", token_file: /etc`:                                               {"http.token_file: /etc is not a regular file"},
		`listen: "127.0.0.1:1", token_file: /etc/services`:                                      {"http.token_file: /etc/services must hold one line"},
		`listen: "10.0.0.1:1", tls: {cert_file: /etc/services, key_file: /etc/services}`:        {"http.tls: read our certificate: "},
		`listen: "127.0.0.1:1", token_file: DIR/long, read_token_file: DIR/long`:                {"http.read_token_file: is the file of token_file"},
		`listen: "10.0.0.1:1", tls: {cert_file: ` + files.CertFile + `, key_file: DIR/web.key}`: {"lets others read it: chmod 600 DIR/web.key"},
		`listen: "10.0.0.1:1", tls: {cert_file: DIR/none, key_file: DIR/web.key}`:               {"http.tls: read our certificate: open DIR/none", "http.tls.key_file: DIR/web.key belongs to"},
	} {
		src := "node: n\nzookeeper: {servers: [127.0.0.1]}\nservices: {}\nhttp: {" + strings.ReplaceAll(http, "DIR", dir) + "}\n"
		r := newLoader("u.yaml", disk{}).load([]byte(src))
		if r.Err() != nil {
			t.Errorf("%s: %v", http, r.Err())
			continue
		}
		got := slices.DeleteFunc(slices.Concat(r.Warnings, r.Here()), func(f Fault) bool { return strings.Contains(f.Message, "is no address of this host") })
		ok := len(got) == len(want)
		for i := range min(len(got), len(want)) {
			ok = ok && strings.Contains(got[i].String(), strings.ReplaceAll(want[i], "DIR", dir))
		}
		if !ok {
			t.Errorf("%s: %v", http, got)
		}
	}
}

// What run would meet when it speaks TLS is told by check, the same for both that do.
func TestACertificateThatIsOfNoUseIsWarnedOf(t *testing.T) {
	authority := keytest.New(t)
	authority.Sign(t, "good", nil)
	authority.Sign(t, "other", nil)
	authority.Sign(t, "old", nil, func(c *x509.Certificate) { c.NotAfter = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC) })
	for key, format := range map[string]string{
		"zookeeper.tls": "zookeeper: {servers: [127.0.0.1], tls: {%s}}\n",
		"http.tls":      "zookeeper: {servers: [127.0.0.1]}\nhttp: {listen: '127.0.0.1:1', tls: {%s}}\n",
	} {
		for files, want := range map[[2]string]string{
			{"good", "good-key"}:  "",
			{"good", "other-key"}: key + ": read our certificate: tls: private key does not match public key (on this machine)",
			{"good", "none"}:      key + ": read our certificate: open " + authority.File("none") + ": no such file or directory (on this machine)",
			{"none", "good-key"}:  key + ": read our certificate: open " + authority.File("none") + ": no such file or directory (on this machine)",
			{"old", "old-key"}:    key + ".cert_file: " + authority.File("old") + " expired on 2020-01-02T03:04:05Z (on this machine)",
		} {
			tls := fmt.Sprintf("cert_file: %s, key_file: %s", authority.File(files[0]), authority.File(files[1]))
			r := newLoader("u.yaml", disk{}).load([]byte("node: n\nservices: {}\n" + fmt.Sprintf(format, tls)))
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
			var got []string
			for _, f := range r.Here() {
				got = append(got, f.Key+": "+f.Message)
			}
			if text := strings.Join(got, "\n"); text != want {
				t.Errorf("%s, %v: %q, not %q", key, files, text, want)
			}
		}
	}
}

// A blank at the end is not seen, and belongs to the password.
func TestABlankAfterAPasswordIsWarnedOf(t *testing.T) {
	name := filepath.Join(t.TempDir(), "zk")
	for text, want := range map[string]string{"a:b\n": "", "a:b \n": "1", "a:b c\r\n": "", "a:b\nc:d\t": "2"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := newLoader("u.yaml", disk{}).load([]byte(
			"node: n\nservices: {}\nzookeeper: {servers: [127.0.0.1], auth: {scheme: digest, file: " + name + "}}\n")).Here()
		if want != "" {
			want = "u.yaml:3:64: zookeeper.auth.file: " + name + ": line " + want + " ends with a blank, which belongs to the password (on this machine)"
		}
		if (len(got) > 0) != (want != "") || want != "" && got.Error() != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// An address that no supervisor of this host could listen at is told beforehand; one that is taken may be its own.
func TestAnAddressOfAnotherHostIsWarnedOf(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	agent := "fencing: {agent: {secret_file: /no/such, listen: "
	for keys, want := range map[string]int{
		"http: {listen: '192.0.2.1:8437', read_token_file: /no/such}": 1, agent + "'192.0.2.1:8438'}}": 1,
		"http: {listen: '" + taken.Addr().String() + "'}": 0, agent + "'127.0.0.1:8438'}}": 0,
	} {
		r := newLoader("u.yaml", disk{}).load([]byte("node: n\nzookeeper: {servers: [127.0.0.1]}\nservices: {}\n" + keys + "\n"))
		got := 0
		for _, f := range r.Here() {
			got += strings.Count(f.String(), "listen: 192.0.2.1:843")
			if strings.HasSuffix(f.Key, "listen") && !strings.Contains(f.Message, "is no address of this host: use one that it has, or :PORT for all (on this machine)") {
				t.Errorf("%s: %s", keys, f)
			}
		}
		if r.Err() != nil || got != want {
			t.Errorf("%s: %v, %v", keys, r.Err(), r.Here())
		}
	}
}
