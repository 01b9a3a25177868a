package election

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"understudy/supervisor/keyfile"
)

// TLS says how to speak TLS with ZooKeeper's servers. The files are read anew for each connection: a certificate that is
// renewed is taken up without a restart.
type TLS = keyfile.TLS

// over makes connections that speak TLS of plain ones.
func over(dial DialFunc, t *TLS) DialFunc {
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
			return nil, errors.Join(fmt.Errorf("TLS with %s: %w", address, err), plain.Close())
		}
		return conn, nil
	}
}

// dialing is how a server is reached: with TLS where it is configured.
func dialing(dial DialFunc, t *TLS) DialFunc {
	if dial == nil {
		dial = dialTCP
	}
	if t == nil {
		return dial
	}
	return over(dial, t)
}
