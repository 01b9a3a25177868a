package config

import (
	"net"
	"strings"
)

// HTTPServer says what is served over HTTP. The token files hold secrets, and are read with each request that needs them.
type HTTPServer struct {
	Listen    string `yaml:"listen,omitempty" doc:"Where to listen, as host:port, or without a host on all addresses. If it is missing or empty, HTTP is off."`
	TokenFile string `yaml:"token_file,omitempty" doc:"The file with the bearer token that changes need. Without it no client may change anything."`

	ReadTokenFile string    `yaml:"read_token_file,omitempty" doc:"The file with the token that reading needs, as a bearer token or as a browser's password. The token of token_file works too. Without it every client may read."`
	Hosts         []string  `yaml:"hosts,omitempty,flow" doc:"More names that a Host header may have, beside those of node and host, localhost and IP addresses."`
	TLS           *TLSFiles `yaml:"tls,omitempty" doc:"Speak only TLS (HTTPS). A renewed certificate is loaded while running."`
}

// TLSFiles names a server's certificate. The files are read anew as they change.
type TLSFiles struct {
	CertFile string `yaml:"cert_file" doc:"The certificate and its chain, in PEM."`
	KeyFile  string `yaml:"key_file" doc:"Its key, in PEM."`
}

func (h HTTPServer) check(p place) {
	if h.Listen != "" { // empty: off
		checkAddress(p.key("listen"), h.Listen)
	}
	for _, file := range []struct{ key, name string }{{"token_file", h.TokenFile}, {"read_token_file", h.ReadTokenFile}} {
		token := p.key(file.key)
		checkSecretFile(token, file.name, "the token", false)
		if file.name != "" && h.Listen == "" {
			token.warn("has no effect without listen:")
		}
	}
	if h.ReadTokenFile != "" && h.ReadTokenFile == h.TokenFile {
		p.key("read_token_file").danger("is the file of token_file, too: every client that may read could also change something")
	}
	for i, name := range h.Hosts {
		if name == "" || strings.ContainsAny(name, " \t/:[]*@") {
			p.key("hosts").item(i).fault("%s: write the name of a host, without a scheme or a port", quoted(name))
		}
	}
	if h.TLS != nil {
		h.TLS.check(p.key("tls"))
	}
	h.checkClear(p)
}

func (t TLSFiles) check(p place) {
	checkFile(p.key("cert_file"), t.CertFile, "the certificate")
	checkFile(p.key("key_file"), t.KeyFile, "its key")
}

// checkClear warns of what others on the network can read: tokens, and all where no token is asked for.
func (h HTTPServer) checkClear(p place) {
	host, _, err := net.SplitHostPort(h.Listen)
	if err == nil && (host == "" || isAny(host)) && h.ReadTokenFile == "" {
		p.key("listen").danger("every host that reaches %s can read status, history and metrics: set read_token_file, "+
			"or listen on one address that only monitoring reaches", h.Listen)
	}
	if h.Listen == "" || h.TLS != nil || err == nil && isLoopback(host) {
		return
	}
	for key, name := range map[string]string{"token_file": h.TokenFile, "read_token_file": h.ReadTokenFile} {
		if name != "" {
			p.key(key).danger("the token is sent without TLS to %s, where others can read it: give http.tls a cert_file and a key_file, "+
				"or say `listen: 127.0.0.1:PORT` and put a proxy that does TLS in front", h.Listen)
		}
	}
}
