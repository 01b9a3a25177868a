package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/control/web"
	"understudy/supervisor/keyfile"
)

// serve makes what serves the config's HTTP, and has it observe the supervisor; nil when nothing is to be served.
func serve(c *config.Config, conf *supervisor.Config) *web.Server {
	if c.HTTP.Listen == "" {
		return nil
	}
	board := web.NewBoard(child.Now)
	conf.Observer = observer{board}
	return web.New(web.Config{
		Listen: c.HTTP.Listen, Node: conf.Node, Host: conf.Host, Hosts: c.HTTP.Hosts, Version: conf.Version, Board: board,
		Token:       token(c.HTTP.TokenFile, "nobody may change anything", conf.Logger),
		ReadToken:   token(c.HTTP.ReadTokenFile, "nobody may look but those who may change something", conf.Logger),
		Certificate: certificate(c.HTTP.TLS, conf.Logger),
		Logger:      conf.Logger.Named("http"),
		Cluster: &reach{turn: make(chan struct{}, 1), cfg: election.Config{
			Servers: conf.Servers, Root: conf.Root, Timeout: max(conf.Timeout, 2*time.Second), Auth: conf.Auth, TLS: conf.TLS, Logger: hclog.NewNullLogger(),
		}},
	})
}

// token reads the secret anew each time it is needed.
func token(file, without string, log hclog.Logger) func() (string, error) {
	if file == "" {
		return nil
	}
	read := func() (string, error) {
		secret, _, err := config.ReadSecret(file)
		return secret, err
	}
	if _, err := read(); err != nil {
		log.Error("a token of HTTP cannot be read: "+without, "error", err)
	}
	return read
}

// certificate is what HTTPS is spoken with: renewed as its files are, and the former one while they cannot be read or do not fit
// each other. Nil: it is not spoken.
func certificate(files *config.TLSFiles, log hclog.Logger) func() (*tls.Certificate, error) {
	if files == nil {
		return nil
	}
	get := keyfile.Keep(func() (*tls.Certificate, error) {
		own, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		return &own, err
	}, func(err error) {
		log.Error("the certificate of HTTPS cannot be read: the former one serves", "error", err)
	})
	if _, err := get(); err != nil {
		log.Error("the certificate of HTTPS cannot be read: nobody is served until it can", "error", err)
	}
	return get
}

// observer tells a board what happens.
type observer struct{ *web.Board }

func (o observer) Lease(l supervisor.Lease) { o.Board.Lease(web.Lease(l)) }
func (o observer) State(s supervisor.State) { o.Board.State(web.State(s)) }

// reach is the cluster as those who come over HTTP reach it: over one connection, which is made when it is needed and given
// up when it fails.
type reach struct {
	cfg     election.Config
	turn    chan struct{} // capacity 1: held by whom uses what follows
	cluster *control.Cluster
}

func (r *reach) with(ctx context.Context, use func(*control.Cluster) error) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.cluster == nil {
		c, err := control.Open(ctx, r.cfg)
		if err != nil {
			return err
		}
		r.cluster = c
	}
	err := said(use(r.cluster))
	if err != nil && !errors.Is(err, web.ErrUnknown) {
		r.cluster.Close()
		r.cluster = nil
	}
	return err
}

// alone is with a connection of its own, for what takes its time: nobody else waits for it.
func (r *reach) alone(ctx context.Context, use func(*control.Cluster) error) error {
	c, err := control.Open(ctx, r.cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	return said(use(c))
}

// said makes errors of the cluster those that status knows, in the cluster's words.
func said(err error) error {
	var unknown *control.UnknownError
	switch {
	case errors.As(err, &unknown):
		return sameError{err, web.ErrUnknown}
	case errors.Is(err, control.ErrRefused):
		return sameError{err, web.ErrRefused}
	}
	return err
}

// sameError is one of status's errors in the cluster's words.
type sameError struct {
	error
	is error
}

func (e sameError) Is(target error) bool { return target == e.is }

func (e sameError) Unwrap() error { return e.error }

// Status is what `status --json` prints.
func (r *reach) Status(ctx context.Context) (text []byte, err error) {
	err = r.with(ctx, func(c *control.Cluster) error {
		s, err := c.Status(ctx)
		if err != nil {
			return err
		}
		text, err = json.Marshal(s)
		return err
	})
	return text, err
}

// History is what `history --json` prints.
func (r *reach) History(ctx context.Context, service string) (list []web.Activation, err error) {
	err = r.with(ctx, func(c *control.Cluster) error {
		var names []string
		if service != "" {
			names = append(names, service)
		}
		entries, err := c.History(ctx, names...)
		for _, a := range entries {
			list = append(list, web.Activation(a))
		}
		return err
	})
	return list, err
}

// Pause is what `pause` and `resume` do.
func (r *reach) Pause(ctx context.Context, service string, paused bool, by, why string) (changed bool, err error) {
	err = r.with(ctx, func(c *control.Cluster) (err error) {
		changed, err = c.Pause(ctx, service, paused, by, why)
		return err
	})
	return changed, err
}

// Switchover is what `switchover` does.
func (r *reach) Switchover(ctx context.Context, h web.Handover) (to string, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return "", errors.New("a switchover needs a deadline")
	}
	err = r.alone(ctx, func(c *control.Cluster) (err error) {
		to, err = c.Switchover(ctx, control.Handover{Service: h.Service, To: h.To, Force: h.Force, By: h.By, Deadline: deadline, Tell: h.Tell})
		return err
	})
	return to, err
}

// Restart is what `restart` does.
func (r *reach) Restart(ctx context.Context, service, by string) error {
	return r.alone(ctx, func(c *control.Cluster) error { return c.Restart(ctx, service, by) })
}

// Reload is what `reload` does.
func (r *reach) Reload(ctx context.Context, service, by string) error {
	return r.alone(ctx, func(c *control.Cluster) error { return c.Reload(ctx, service, by) })
}

// Close gives the connection up.
func (r *reach) Close() {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.cluster != nil {
		r.cluster.Close()
		r.cluster = nil
	}
}
