package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"understudy/fencing/agent"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/kit"
)

// means is what the nodes' agents know one another by. Where there is both, both have to be right.
type means struct{ secret, certificates bool }

// meansOf draws it: a third of the seeds each.
func meansOf(seed uint64) means {
	return []means{{certificates: true}, {secret: true}, {secret: true, certificates: true}}[seed%3]
}

func (m means) String() string {
	switch {
	case !m.certificates:
		return "a secret"
	case !m.secret:
		return "certificates"
	}
	return "a secret and certificates"
}

// keys is what is good now, and what was before: that is good for nothing any more, and empty if there was nothing yet.
type keys struct {
	secret, formerSecret       string // of the agents
	authority, formerAuthority *keytest.Authority
	zk, formerZK               string // as ZooKeeper knows us
}

// keyring is the folder in which one host has its keys. It is not beside the logs, which are kept.
type keyring string

const (
	secretFile = "agent.secret"
	zkFile     = "zookeeper.secret"
	caFile     = "ca.pem"
	ownFile    = "own.pem" // certificate and key in one, so that they change together
	agentPort  = "8438"
)

func (k keyring) file(name string) string { return filepath.Join(string(k), name) }

// put replaces a file at once, as editors do.
func (k keyring) put(name, text string) error {
	path := k.file(name)
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

// lines is a file's text, with a secret on each line.
func lines(secrets ...string) string { return strings.Join(secrets, "\n") + "\n" }

func newSecret() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

func newCredentials() string { return "owner:" + newSecret() }

// files is where a node's agent finds its keys.
func (m means) files(k keyring) (f agent.Files) {
	if m.secret {
		f.Secret = k.file(secretFile)
	}
	if m.certificates {
		f.TLS = &keyfile.TLS{CAFile: k.file(caFile), CertFile: k.file(ownFile), KeyFile: k.file(ownFile), ServerName: "{node}"}
	}
	return f
}

// config is the agent's, as a config file has it.
func (m means) config(k keyring) string {
	f := m.files(k)
	text := "listen: \":" + agentPort + "\""
	if f.Secret != "" {
		text += fmt.Sprintf(", secret_file: %q", f.Secret)
	}
	if f.TLS != nil {
		text += fmt.Sprintf(", tls: {ca_file: %q, cert_file: %q, key_file: %q, server_name: %q}", f.TLS.CAFile, f.TLS.CertFile, f.TLS.KeyFile, f.TLS.ServerName)
	}
	return "{" + text + "}"
}

// secrets is what the nodes know one another by. World.mu guards keys and changes.
type secrets struct {
	*world
	means   means
	others  *keytest.Authority // of nobody here; nil without certificates
	keys    keys
	changes []*change
}

// build makes the first keys of all.
func (se *secrets) build() {
	se.changes = changes()
	se.keys = keys{secret: newSecret(), zk: newCredentials()}
	if se.means.certificates {
		se.keys.authority = keytest.New(se.Program)
		se.others = keytest.New(se.Program)
		se.others.Sign(se.Program, "a", nil)
	}
}

// ring makes the keys of one host.
func (se *secrets) ring(h *kit.Host) keyring {
	k := keyring(se.Program.TempDir())
	se.must(k.put(secretFile, lines(se.keys.secret)))
	se.must(k.put(zkFile, lines(se.keys.zk)))
	if se.means.certificates {
		se.must(k.put(caFile, se.text(se.keys.authority, "ca")))
		se.must(k.put(ownFile, se.signed(se.keys.authority, h)))
	}
	return k
}

// signed is a new certificate of a host, with its key.
func (se *secrets) signed(by *keytest.Authority, h *kit.Host) string {
	by.Sign(se.Program, h.Name, net.ParseIP(h.Addr))
	return se.text(by, h.Name+"-both")
}

func (se *secrets) text(of *keytest.Authority, name string) string {
	text, err := os.ReadFile(of.File(name))
	se.must(err)
	return string(text)
}
