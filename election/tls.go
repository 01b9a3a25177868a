package election

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"

	"understudy/supervisor/keyfile"
)

// over turns plain connections into TLS connections. Each reads the files again, so a renewed certificate needs no restart.
func over(dial DialFunc, t *keyfile.TLS) DialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		c, err := t.Config()
		if err != nil {
			return nil, err
		}
		if c.ServerName == "" {
			if c.ServerName, _, err = net.SplitHostPort(address); err != nil {
				return nil, err
			}
		}
		plain, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(plain, c)
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(noTLS(address, err), plain.Close())
		}
		return conn, nil
	}
}

// dialing returns the dial function, with TLS if that is configured.
func (c *Config) dialing() DialFunc {
	if c.TLS == nil {
		return c.plain()
	}
	return over(c.plain(), c.TLS)
}

func (c *Config) plain() DialFunc {
	if c.Dial == nil {
		return c.resolver().dial
	}
	return c.Dial
}

func (c *Config) resolver() *Resolver { return cmp.Or(c.Resolver, resolved) }
