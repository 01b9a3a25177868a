package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/fencing"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/must"
)

// secured is a desk that takes only who has a certificate, and how it is asked. Its node is a, at "a"; b asks.
func secured(t *testing.T, authority *keytest.Authority, change func(asked, asker *KeyFiles)) (*desk, Method) {
	authority.Sign(t, "a", nil)
	authority.Sign(t, "b", nil)
	asked, asker := KeyFiles{TLS: authority.TLS("a")}, KeyFiles{TLS: authority.TLS("b")}
	if change != nil {
		change(&asked, &asker)
	}
	d := newDesk(t, nil)
	d.Keys = asked.Keys(nil)
	return d, Method{Keys: asker.Keys(nil), Dial: d.dial}
}

func askOnce(t *testing.T, m Method) error {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	return m.Fence(ctx, target)
}

func TestCertificatesAreEnough(t *testing.T) {
	for name, change := range map[string]func(asked, asker *KeyFiles){
		"certificates alone": nil,
		"names of nodes":     func(asked, asker *KeyFiles) { asked.TLS.ServerName, asker.TLS.ServerName = "{node}", "{node}" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, m := secured(t, keytest.New(t), change)
				if err := askOnce(t, m); err != nil || d.killed.Load() != 1 {
					t.Errorf("%v, asked %d times", err, d.killed.Load())
				}
				d.Promise = given
				if err := m.Promise(t.Context(), target.Address, request); err != nil {
					t.Errorf("no promise: %v", err)
				}
				d.wg.Wait()
			})
		})
	}
}

// Whoever is not of ours, or not any more, is turned away: nothing is killed, nothing is believed, and the log says why.
func TestStrangersAreTurnedAwayByTheirCertificates(t *testing.T) {
	old := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, ours *keytest.Authority, asked, asker *KeyFiles)
		says   string // the asked one's log
		fails  string // the asker's error
	}{
		"asker of another authority": {says: "unknown authority", change: func(t *testing.T, _ *keytest.Authority, _, asker *KeyFiles) {
			other, ca := keytest.New(t), asker.TLS.CAFile
			other.Sign(t, "b", nil)
			asker.TLS = other.TLS("b")
			asker.TLS.CAFile = ca
		}},
		"agent of another authority": {fails: "unknown authority", change: func(t *testing.T, _ *keytest.Authority, asked, _ *KeyFiles) {
			other, ca := keytest.New(t), asked.TLS.CAFile
			other.Sign(t, "a", nil)
			asked.TLS = other.TLS("a")
			asked.TLS.CAFile = ca
		}},
		"asker's expired": {says: "expired", change: func(t *testing.T, ours *keytest.Authority, _, _ *KeyFiles) { ours.Sign(t, "b", nil, old) }},
		"agent's expired": {fails: "expired", change: func(t *testing.T, ours *keytest.Authority, _, _ *KeyFiles) { ours.Sign(t, "a", nil, old) }},
		"asker's is a server's": {says: "incompatible key usage", change: func(t *testing.T, ours *keytest.Authority, _, _ *KeyFiles) {
			ours.Sign(t, "b", nil, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
		}},
		"agent of another name": {fails: "not a", change: func(t *testing.T, ours *keytest.Authority, asked, _ *KeyFiles) {
			ours.Sign(t, "c", nil)
			asked.TLS = ours.TLS("c")
		}},
		"asker of another name": {says: "is for another name", change: func(t *testing.T, ours *keytest.Authority, asked, asker *KeyFiles) {
			ours.Sign(t, "c", nil)
			asker.TLS = ours.TLS("c")
			asked.TLS.ServerName, asker.TLS.ServerName = "{node}", "{node}"
		}},
		"plain asker": {says: "TLS", change: func(t *testing.T, _ *keytest.Authority, _, asker *KeyFiles) {
			*asker = KeyFiles{Secret: secretFile(t, secret)}
		}},
		"plain agent": {fails: "TLS", change: func(t *testing.T, _ *keytest.Authority, asked, _ *KeyFiles) {
			*asked = KeyFiles{Secret: secretFile(t, secret)}
		}},
		"asker with another secret": {says: "not made with our secret", change: func(t *testing.T, _ *keytest.Authority, asked, asker *KeyFiles) {
			asked.Secret, asker.Secret = secretFile(t, secret), secretFile(t, []byte("another secret, which is wrong"))
		}},
		"asker without the secret": {says: "not made with our secret", change: func(t *testing.T, _ *keytest.Authority, asked, _ *KeyFiles) {
			asked.Secret = secretFile(t, secret)
		}},
		"asker whose authority is gone": {fails: "read the authorities", change: func(_ *testing.T, _ *keytest.Authority, _, asker *KeyFiles) {
			asker.TLS.CAFile += ".none"
		}},
		"agent that would take anybody": {says: "any client could ask", change: func(_ *testing.T, _ *keytest.Authority, asked, _ *KeyFiles) {
			asked.TLS.CAFile = ""
		}},
		"agent without keys": {says: "any client could ask", change: func(_ *testing.T, _ *keytest.Authority, asked, _ *KeyFiles) { *asked = KeyFiles{} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours := keytest.New(t)
				d, m := secured(t, ours, func(asked, asker *KeyFiles) { c.change(t, ours, asked, asker) })
				err := askOnce(t, m)
				if err == nil || d.killed.Load() != 0 || errors.Is(err, fencing.ErrNotDead) {
					t.Errorf("%v, asked %d times", err, d.killed.Load())
				} else if !strings.Contains(err.Error(), c.fails) {
					t.Errorf("the asker is not told %q: %v", c.fails, err)
				}
				d.Promise = func(PromiseRequest) error { t.Error("a stranger got a promise"); return nil }
				if err := m.Promise(t.Context(), target.Address, request); err == nil {
					t.Error("a stranger's promise is believed")
				}
				d.wg.Wait()
				if said := d.said(); !strings.Contains(said, c.says) || c.says != "" && !strings.Contains(said, "refused a client") {
					t.Errorf("the log does not say %q:\n%s", c.says, said)
				}
			})
		})
	}
}

// Who shows no certificate, or speaks an older TLS, gets no promiseReply out of an agent.
func TestNobodyGetsThroughWithoutACertificate(t *testing.T) {
	for name, change := range map[string]func(*tls.Config){
		"no certificate": func(c *tls.Config) { c.Certificates = nil },
		"an older TLS":   func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours := keytest.New(t)
				d, _ := secured(t, ours, nil)
				own, err := ours.TLS("b").Config()
				must.OK(t, err)
				own.ServerName = "a"
				change(own)
				plain, _ := d.dial(t.Context(), "")
				conn := tls.Client(plain, own)
				if nonce, err := greeted(conn); err == nil {
					t.Errorf("it is greeted: %x", nonce)
				}
				plain.Close()
				d.wg.Wait()
				if !strings.Contains(d.said(), "TLS") {
					t.Error(d.said())
				}
			})
		})
	}
}

// Who begins and does not go on is given as long as who puts a question slowly, and no longer.
func TestSlowHandshakeIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := secured(t, keytest.New(t), nil)
		conn, _ := d.dial(t.Context(), "")
		if _, err := conn.Write([]byte{22, 3, 1}); err != nil { // how a ClientHello begins
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(began) != helloPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		d.wg.Wait()
		if d.killed.Load() != 0 || !strings.Contains(d.said(), "refused a client") {
			t.Error(d.said())
		}
	})
}

// Who stands between two nodes, with a certificate that both take, can hand on nothing that he did not say himself.
func TestWhatIsHandedOnProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := keytest.New(t)
		d, m := secured(t, ours, nil)
		between := (&KeyFiles{TLS: ours.TLS("a")}).Keys(nil)
		m.Dial = lure(func(conn net.Conn) {
			front, err := between.answering(t.Context(), conn)
			if err != nil {
				return
			}
			onward, _ := d.dial(t.Context(), "")
			defer onward.Close()
			back, err := between.asking(t.Context(), onward, "a:1", "a")
			if err != nil {
				return
			}
			nonce, err := greeted(back)
			if err != nil {
				return
			}
			_ = greet(front, nonce)
			body, mac, err := receive(front)
			if err != nil {
				return
			}
			_ = send(back, body, mac)
			_, _, _ = receive(back)
		})
		if err := askOnce(t, m); err == nil || d.killed.Load() != 0 {
			t.Errorf("%v, asked %d times", err, d.killed.Load())
		}
		d.wg.Wait()
	})
}
