package election

import (
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
func dialing(dial DialFunc, t *keyfile.TLS) DialFunc {
	if dial == nil {
		dial = resolved.dial
	}
	if t == nil {
		return dial
	}
	return over(dial, t)
}
