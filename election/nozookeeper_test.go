package election

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/keyfile"
	"understudy/supervisor/testbed/must"
)

// answering is a server that does the same with each connection.
func answering(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// saying is a server that answers whatever it is told with the same.
func saying(t *testing.T, words string) (address string) {
	return answering(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 100))
		_, _ = io.WriteString(conn, words)
	})
}

func TestAServerThatIsNoZooKeeperIsNamedWithWhatItSent(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler()) // says nothing before the end of a line
	t.Cleanup(web.Close)

	for name, c := range map[string]struct {
		server, want string
		tls          *keyfile.TLS
	}{
		"web server":            {saying(t, "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"), ` answers, and is no ZooKeeper (it sent "HTTP/1.1 400")`, nil},
		"patient web server":    {web.Listener.Addr().String(), ` answers, and is no ZooKeeper (it sent "HTTP/1.1 400")`, nil},
		"short answer":          {saying(t, "NO"), ` answers, and is no ZooKeeper (it sent "NO")`, nil},
		"control characters":    {saying(t, "\x1b[2Jab\xff cd"), ` answers, and is no ZooKeeper (it sent "?[2Jab? cd")`, nil},
		"TLS":                   {saying(t, "\x15\x03\x01\x00\x02\x02\x0a"), " speaks TLS: is this the secure port? set zookeeper.tls", nil},
		"one that hangs up":     {answering(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 100)) }), " hung up without an answer: a server without a quorum does", nil},
		"TLS to a plain port":   {saying(t, ""), ": it hung up (is this the secure port?)", &keyfile.TLS{}},
		"TLS without its files": {saying(t, ""), " answers: read our certificate: open /no/cert: no such file or directory", &keyfile.TLS{CertFile: "/no/cert", KeyFile: "/no/key"}},
		"TLS to a web server":   {saying(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), `: it sent "HTTP/" (is this the secure port?)`, &keyfile.TLS{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := Connect(ctx, Config{Servers: []string{c.server}, Lease: 2 * time.Second, Logger: hclog.NewNullLogger(), TLS: c.tls})
			if err == nil || !strings.Contains(err.Error(), c.server+c.want) {
				t.Errorf("%v, not %q", err, c.server+c.want)
			}
		})
	}
}
