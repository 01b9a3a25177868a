package config

import (
	"net"
	"strings"
)

// HTTP says what is served over HTTP. The token files hold secrets, and are read by ReadSecret with each request that needs them.
type HTTP struct {
	Listen    string `yaml:"listen,omitempty" doc:"Where to listen, as host:port; without a host, on all addresses. Nothing is served when it is missing or empty."`
	TokenFile string `yaml:"token_file,omitempty" doc:"The file that holds the bearer token of those who may change something, an absolute path. Without it nobody may."`

	ReadTokenFile string    `yaml:"read_token_file,omitempty" doc:"The file that holds the token of those who may look, an absolute path: a bearer token, or the password that a browser asks for. The other token is good for that, too. Without it everybody may look. /active, /healthz and /readyz need none."`
	Hosts         []string  `yaml:"hosts,omitempty,flow" doc:"More names that this side is called by, as in a proxy's or a browser's Host header; those of node and host, localhost and IP addresses are known. Other names are refused, but for /active, /healthz and /readyz."`
	TLS           *TLSFiles `yaml:"tls,omitempty" doc:"Speak TLS (HTTPS), and nothing else. A renewed certificate is taken up while running."`
}

// TLSFiles names a server's certificate. The files are read anew as they change.
type TLSFiles struct {
	CertFile string `yaml:"cert_file" doc:"The certificate, and those that lead to its authority, in PEM, an absolute path."`
	KeyFile  string `yaml:"key_file" doc:"Its key, in PEM, an absolute path."`
}

func (h HTTP) check(p place) {
	if h.Listen != "" { // empty: off
		checkAddress(p.key("listen"), h.Listen)
	}
	for _, file := range []struct{ key, name string }{{"token_file", h.TokenFile}, {"read_token_file", h.ReadTokenFile}} {
		token := p.key(file.key)
		switch {
		case file.name == "" && token.given():
			token.fault("is empty: name the file that holds the token")
		case file.name != "" && !strings.HasPrefix(file.name, "/"): // it may be the secret itself, which no log shall show
			token.fault("must be the absolute path of a file that holds the token")
		case file.name != "":
			checkAbsolute(token, file.name)
			if h.Listen == "" {
				token.doubt("has no effect without listen:")
			}
		}
	}
	if h.ReadTokenFile != "" && h.ReadTokenFile == h.TokenFile {
		p.key("read_token_file").danger("is the file of token_file: everybody who may look may change something, too")
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

// checkClear warns of tokens that go over a network where it can be read.
func (h HTTP) checkClear(p place) {
	host, _, err := net.SplitHostPort(h.Listen)
	if h.Listen == "" || h.TLS != nil || err == nil && isLoopback(host) {
		return
	}
	for key, name := range map[string]string{"token_file": h.TokenFile, "read_token_file": h.ReadTokenFile} {
		if name != "" {
			p.key(key).danger("the token is sent without TLS to %s, where others can read it: give http.tls a cert_file and a key_file, or say "+
				"`listen: 127.0.0.1:PORT` and put a proxy that does TLS in front", h.Listen)
		}
	}
}
