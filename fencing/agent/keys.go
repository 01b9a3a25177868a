package agent

import (
	"context"
	"crypto/hmac"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"understudy/supervisor/keyfile"
)

// LeastSecret is the least length of a secret, because an attacker could guess it offline.
const LeastSecret = 16

// KeyFiles says where the keys of this node are kept: a secret, certificates, or both.
type KeyFiles struct {
	Secret string
	TLS    *keyfile.TLS
}

// Keys authenticate the nodes of a cluster to one another. With certificates and a secret, both have to be right.
type Keys struct {
	Secrets func() ([][]byte, error)    // the first one signs, each is accepted; nil: certificates are enough
	TLS     func() (*tls.Config, error) // our certificate, and the authorities for those of others; nil: there is no TLS
	Name    string                      // in the others' certificates, with {node} for a node's name; empty: the host in the address
}

// Shared is the keys of nodes that share one secret.
func Shared(secret []byte) *Keys {
	return &Keys{Secrets: func() ([][]byte, error) { return [][]byte{secret}, nil }}
}

// Keys reads the files again when they change. It tells failed why it cannot read one; then the previous content stays in force.
func (f KeyFiles) Keys(failed func(error)) *Keys {
	k := &Keys{}
	if f.Secret != "" {
		k.Secrets = keyfile.Cached(f.secrets, failed)
	}
	if f.TLS != nil {
		k.TLS, k.Name = keyfile.Cached(f.TLS.Config, failed), f.TLS.ServerName
	}
	return k
}

// Check returns why the keys are useless.
func (k *Keys) Check() error {
	if k.Secrets != nil {
		if _, err := k.Secrets(); err != nil {
			return err
		}
	}
	switch {
	case k.TLS != nil:
		_, err := k.certified()
		return err
	case k.Secrets == nil:
		return errNoKeys
	}
	return nil
}

func (k *Keys) certified() (*tls.Config, error) {
	c, err := k.TLS()
	if err == nil && (c.RootCAs == nil || len(c.Certificates) == 0) {
		err = errNoAuthority
	}
	return c, err
}

func (f KeyFiles) secrets() ([][]byte, error) {
	lines, err := keyfile.Lines(f.Secret)
	if err != nil {
		return nil, err
	}
	all := make([][]byte, 0, len(lines))
	for _, line := range lines {
		if len(line) < LeastSecret {
			return nil, fmt.Errorf("%s holds less than %d characters", f.Secret, LeastSecret)
		}
		all = append(all, []byte(line))
	}
	return all, nil
}

var (
	errNoAuthority = errors.New("no certificate, or no authority: any client could ask")
	errNoKeys      = errors.New("neither a secret nor certificates: any client could ask")
)

// channel is a connection, and the secrets that prove messages on it.
type channel struct {
	net.Conn
	secrets [][]byte
	peer    *x509.Certificate // nil without TLS
}

// answering is the asked side's end of a connection. Without TLS it does not prove yet which node asks.
func (k *Keys) answering(ctx context.Context, conn net.Conn) (channel, error) {
	return k.over(ctx, conn, func(c *tls.Config) *tls.Conn {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, c.RootCAs
		return tls.Server(conn, c)
	})
}

// asking is the asker's end of a connection to a node's agent.
func (k *Keys) asking(ctx context.Context, conn net.Conn, address, node string) (channel, error) {
	return k.over(ctx, conn, func(c *tls.Config) *tls.Conn {
		if c.ServerName = k.nameOf(node); c.ServerName == "" {
			c.ServerName, _, _ = net.SplitHostPort(address) // without a name, no certificate is good
		}
		return tls.Client(conn, c)
	})
}

func (k *Keys) nameOf(node string) string { return strings.ReplaceAll(k.Name, "{node}", node) }

func (k *Keys) over(ctx context.Context, conn net.Conn, secured func(*tls.Config) *tls.Conn) (c channel, err error) {
	c.Conn = conn
	if k.Secrets != nil {
		if c.secrets, err = k.Secrets(); err != nil {
			return c, err
		}
	}
	if k.TLS == nil {
		if len(c.secrets) == 0 {
			return c, errNoKeys
		}
		return c, nil
	}
	base, err := k.certified()
	if err != nil {
		return c, err
	}
	whole := secured(&tls.Config{
		Certificates: base.Certificates, RootCAs: base.RootCAs, MinVersion: tls.VersionTLS13,
		SessionTicketsDisabled: true,                                     // each connection proves everything again
		CurvePreferences:       []tls.CurveID{tls.X25519, tls.CurveP256}, // strangers can make us compute
	})
	if err := whole.HandshakeContext(ctx); err != nil {
		return c, fmt.Errorf("TLS: %w", err)
	}
	state := whole.ConnectionState()
	c.Conn, c.peer = whole, state.PeerCertificates[0]
	if k.Secrets == nil { // a secret that only the two ends of this very connection know
		secret, err := state.ExportKeyingMaterial("EXPORTER-understudy-agent", nil, macSize)
		if err != nil {
			return c, fmt.Errorf("TLS: %w", err)
		}
		c.secrets = [][]byte{secret}
	}
	return c, nil
}

// proved returns the secret with which a question of this purpose was sealed.
func (c *channel) proved(purpose string, nonce, body, mac []byte) ([]byte, error) {
	for _, secret := range c.secrets {
		if hmac.Equal(mac, seal(secret, purpose, nonce, body)) {
			return secret, nil
		}
	}
	return nil, errForged
}

// named requires that a peer's certificate belongs to the node that it claims to be, if the keys check names.
func (k *Keys) named(c channel, node string) error {
	if name := k.nameOf(node); c.peer != nil && name != "" {
		if err := c.peer.VerifyHostname(name); err != nil {
			return fmt.Errorf("the certificate of %s is for another name: %w", node, err)
		}
	}
	return nil
}
