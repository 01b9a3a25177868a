package keyfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS names what connections are secured with.
type TLS struct {
	CAFile     string `json:"ca_file,omitempty"`   // who may sign for the other side; empty: the authorities that this machine trusts
	CertFile   string `json:"cert_file,omitempty"` // ours, where the other side asks for one
	KeyFile    string `json:"key_file,omitempty"`
	ServerName string `json:"server_name,omitempty"` // in the other side's certificate; empty: the name of who is asked
}

// Config reads the files, and so tells what is wrong with them.
func (t *TLS) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read the authorities: %s holds no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		own, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read our certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}
