package cli

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/config"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/must"
)

// A renewed certificate is taken up; one that cannot be read leaves the previous in force.
func TestARenewedCertificateIsTakenUp(t *testing.T) { synctest.Test(t, renewedCertificate) }

func renewedCertificate(t *testing.T) {
	authority := keytest.New(t)
	authority.Sign(t, "first", nil)
	authority.Sign(t, "second", nil)
	files := &config.TLSFiles{CertFile: filepath.Join(t.TempDir(), "cert"), KeyFile: filepath.Join(t.TempDir(), "key")}
	put := func(from, to string) {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		must.OK(t, err)
	}
	if certificate(nil, hclog.NewNullLogger()) != nil {
		t.Error("a certificate without files")
	}
	get := certificate(files, hclog.NewNullLogger())
	if own, err := get(); err == nil {
		t.Errorf("%v of files that are not there", own)
	}
	serves := func(name string) {
		t.Helper()
		time.Sleep(1100 * time.Millisecond) // files are read at most once a second
		if own, err := get(); err != nil || own.Leaf.Subject.CommonName != name {
			t.Errorf("%v serves (%v), not %s", own, err, name)
		}
	}
	first, second := authority.TLS("first"), authority.TLS("second")
	put(first.KeyFile, files.KeyFile)
	put(first.CertFile, files.CertFile)
	serves("first")
	put(second.CertFile, files.CertFile) // whose key is still to come
	serves("first")
	put(second.KeyFile, files.KeyFile)
	serves("second")
}
