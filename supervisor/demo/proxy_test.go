package demo

import (
	"io"
	"net"
	"testing"
	"time"
)

func TestACutProxyLosesNothingAndLetsNothingThrough(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	p, err := newProxy(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); p.serve() }()
	defer func() {
		p.close()
		server.Close()
		<-served
		<-echoed
	}()

	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func(what string, limit time.Duration) (string, error) {
		if _, err := io.WriteString(c, what); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64)
		_ = c.SetReadDeadline(time.Now().Add(limit))
		n, err := c.Read(buf)
		return string(buf[:n]), err
	}
	if got, err := say("one", 10*time.Second); got != "one" {
		t.Fatalf("whole: %q, %v", got, err)
	}
	p.cut()
	if got, err := say("two", 100*milli); err == nil {
		t.Errorf("cut: %q came through", got)
	}
	p.heal()
	buf := make([]byte, 3)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "two" {
		t.Errorf("healed: %q, %v", buf, err)
	}
}

func TestAClosedProxyHoldsNobody(t *testing.T) {
	p, err := newProxy("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); p.serve() }()
	p.cut()
	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.close()
	select {
	case <-served:
	case <-time.After(10 * time.Second):
		t.Fatal("serve does not return")
	}
}
