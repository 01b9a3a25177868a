package web

import (
	"crypto/tls"
	"net"
	"net/http"
)

// secured speaks TLS on connections, by the certificate that is there when each is made. HTTP/2 is not spoken: a connection would be
// many requests, and what is bounded are connections.
func (s *Server) secured(l net.Listener) net.Listener {
	if s.cfg.Certificate == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			own, err := s.cfg.Certificate()
			if err != nil {
				s.unreadable.Say("", "error", err)
			}
			return own, err
		},
	})
}

// plainly is what net/http needs to be told so that it speaks HTTP/1 only.
func plainly() map[string]func(*http.Server, *tls.Conn, http.Handler) {
	return map[string]func(*http.Server, *tls.Conn, http.Handler){}
}
