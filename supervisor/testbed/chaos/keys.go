package main

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
)

// keys is what all nodes share.
type keys struct {
	secret string // of the agents
	zk     string // the credentials
}

// keyring is the folder in which one host has its keys. It is not beside the logs, which are kept.
type keyring string

const (
	secretFile = "agent.secret"
	zkFile     = "zookeeper.secret"
	tokenFile  = "http.token"
)

func (k keyring) file(name string) string { return filepath.Join(string(k), name) }

func newSecret() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// ring makes the keys of one host.
func (w *world) ring() keyring {
	k := keyring(w.Program.TempDir())
	for name, text := range map[string]string{secretFile: w.keys.secret, zkFile: w.keys.zk, tokenFile: newSecret()} {
		w.must(replace(k.file(name), text+"\n"))
	}
	return k
}
