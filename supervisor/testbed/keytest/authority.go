// Package keytest makes certificates for tests.
package keytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/keyfile"
	"understudy/supervisor/testbed/must"
)

// Authority signs certificates, and keeps all files in one folder.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority.
func New(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{dir: tb.TempDir()}
	a.cert, a.key = a.Sign(tb, "ca", nil)
	return a
}

// File is where a certificate, a key (NAME-key) or both (NAME-both) are.
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name+".pem") }

// TLS is the files of who bears a name.
func (a *Authority) TLS(name string) *keyfile.TLS {
	return &keyfile.TLS{CAFile: a.File("ca"), CertFile: a.File(name), KeyFile: a.File(name + "-key")}
}

// Sign makes NAME.pem, NAME-key.pem, and NAME-both.pem, which is a keystore to ZooKeeper. The certificate is valid for a
// week, for the name and for ip, if there is one; change may change all of that.
func (a *Authority) Sign(tb testing.TB, name string, ip net.IP, change ...func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		must.OK(tb, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	must(err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7),
		IsCA: a.cert == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, DNSNames: []string{name},
	}
	if ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	for _, c := range change {
		c(template)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	for file, text := range map[string][]byte{name: public, name + "-key": private, name + "-both": append(private, public...)} {
		must(os.WriteFile(a.File(file), text, 0o600))
	}
	cert, err := x509.ParseCertificate(der)
	must(err)
	return cert, key
}
