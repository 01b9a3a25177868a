package cli

import (
	"crypto/tls"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/control/web"
	"understudy/supervisor/keyfile"
)

// serve makes what serves the config's HTTP by what the supervisor writes on the board; nil when nothing is to be served.
func serve(c *config.Config, conf *supervisor.Config, board *web.Board) *web.Server {
	if c.HTTP.Listen == "" {
		return nil
	}
	unserved := make(chan string, 1)
	conf.Unserved = unserved
	return web.New(web.Config{
		Unserved: func(why string) {
			select {
			case <-unserved: // nobody has taken what was said before
			default:
			}
			unserved <- why
		},
		Listen: c.HTTP.Listen, Node: conf.Node, Host: conf.Host, Hosts: c.HTTP.Hosts, Version: conf.Version, Board: board,
		Token: token("http.token_file", c.HTTP.TokenFile, "no client can give orders", conf.Logger),
		ReadToken: token("http.read_token_file", c.HTTP.ReadTokenFile, "only clients with the token of http.token_file may look",
			conf.Logger),
		Certificate: certificate(c.HTTP.TLS, conf.Logger),
		Logger:      conf.Logger.Named("http"),
		Cluster:     control.NewSharedCluster(client(c, conf.Auth)),
	})
}

// token reads the secret anew each time it is needed.
func token(key, file, without string, log hclog.Logger) func() (string, error) {
	if file == "" {
		return nil
	}
	read := func() (string, error) { return keyfile.Line(file) }
	if _, err := read(); err != nil {
		log.Error("cannot read a token of HTTP clients: "+without, "key", key, "error", err)
	}
	return read
}

// certificate is what HTTPS is spoken with: renewed as its files are, and the previous one while they cannot be read or do not fit
// each other. Nil: it is not spoken.
func certificate(files *config.TLSFiles, log hclog.Logger) func() (*tls.Certificate, error) {
	if files == nil {
		return nil
	}
	get := keyfile.Cached(func() (*tls.Certificate, error) {
		own, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		return &own, err
	}, func(err error) {
		log.Error("cannot read the certificate for HTTPS: using the previous one", "error", err)
	})
	if _, err := get(); err != nil {
		log.Error("cannot read the certificate for HTTPS: HTTPS connections fail until it can be read", "error", err)
	}
	return get
}
