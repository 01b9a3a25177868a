package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/testbed/keytest"
)

// A stranger lacks nothing but what he is said to lack: with it, he is answered.
func TestStrangersComeAsFarAsTheirKeys(t *testing.T) {
	ours, others := keytest.New(t), keytest.New(t)
	ours.Sign(t, "a", nil)
	others.Sign(t, "a", nil)
	dress := func(by *keytest.Authority) *tls.Config {
		c := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // he does not care
		if by != nil {
			pair, err := tls.LoadX509KeyPair(by.File("a-both"), by.File("a-both"))
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		return c
	}
	const right, wrong = "a secret of all of them", "a secret of nobody's"
	plain, both := means{secret: true}, means{secret: true, certificates: true}
	taped := make([]byte, nonceSize)
	for name, c := range map[string]struct {
		agent   means
		who     stranger
		purpose string
		want    reached
	}{
		"the right secret":                       {plain, stranger{secret: []byte(right)}, asDeath, answered},
		"the right secret, about a promise":      {plain, stranger{secret: []byte(right)}, asPromise, answered},
		"another secret":                         {plain, stranger{secret: []byte(wrong)}, asDeath, greeted},
		"a record":                               {plain, stranger{secret: []byte(right), taped: taped}, asDeath, greeted},
		"no seal":                                {plain, stranger{secret: []byte(right)}, "", greeted},
		"certificate and secret":                 {both, stranger{dress: dress(ours), secret: []byte(right)}, asDeath, answered},
		"a certificate alone":                    {both, stranger{dress: dress(ours), secret: []byte(wrong)}, asDeath, greeted},
		"another authority's, but the secret":    {both, stranger{dress: dress(others), secret: []byte(right)}, asDeath, there},
		"no certificate, but the secret":         {both, stranger{dress: dress(nil), secret: []byte(right)}, asDeath, there},
		"no certificate and no TLS, but secret":  {both, stranger{secret: []byte(right)}, asDeath, there},
		"nothing, at somebody who does not live": {means{}, stranger{}, asDeath, nowhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring := keyring(t.TempDir())
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &agent.Server{
				Keys: c.agent.files(ring).Keys(nil), Self: agent.Answer{Node: "b"}, Logger: hclog.NewNullLogger(),
				Prove: func(context.Context, agent.Question) (fencing.Verdict, string, error) {
					return fencing.Unknown, "", nil
				},
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- s.Serve(ctx, l) }()
			defer func() { cancel(); <-ended }()
			if c.agent == (means{}) {
				l.Close()
			}
			w := newWorld(nil, means{})
			for file, text := range map[string]string{secretFile: lines(right), caFile: w.secrets.text(ours, "ca"), ownFile: w.secrets.text(ours, "a-both")} {
				if err := ring.put(file, text); err != nil {
					t.Fatal(err)
				}
			}
			var asked any = agent.Question{Service: "x", Token: 1, Node: "b", By: "a", ByToken: 2, Nonce: taped}
			if c.purpose == asPromise {
				asked = agent.PromiseRequest{Service: "x", Token: 1, Of: "b", By: "a", For: 1, Nonce: taped}
			}
			question, err := json.Marshal(asked)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.who.visit(l.Addr().String(), c.purpose, question); got != c.want {
				t.Errorf("he came as far as %d, not %d", got, c.want)
			}
		})
	}
}
