package demo

import (
	"io"
	"net"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

func TestAShutGateLosesNothingAndLetsNothingThrough(t *testing.T) {
	g, err := newGate()
	must.OK(t, err)
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		c, err := g.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	c, err := net.Dial("tcp", g.Addr().String())
	must.OK(t, err)
	defer func() {
		c.Close()
		g.Close()
		<-echoed
	}()
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
		t.Fatalf("open: %q, %v", got, err)
	}
	g.set(true)
	if got, err := say("two", 100*milli); err == nil {
		t.Errorf("shut: %q came through", got)
	}
	g.set(false)
	buf := make([]byte, 3)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "two" {
		t.Errorf("open again: %q, %v", buf, err)
	}
}
