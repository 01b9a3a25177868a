package election

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// A server that takes one connection from each host takes the next one only when it has seen the end of the previous one.
func TestTheDeadConnectionIsClosedBeforeTheNextOneIsMade(t *testing.T) {
	var ends []net.Conn // the servers'
	cfg := &Config{Servers: []string{"a:1"}, Dial: func(context.Context, string) (net.Conn, error) {
		if len(ends) > 0 {
			_ = ends[0].SetWriteDeadline(time.Now())
			if _, err := ends[0].Write([]byte{0}); !errors.Is(err, io.ErrClosedPipe) {
				t.Error("the previous connection is open")
			}
			return nil, errors.New("that is all")
		}
		ours, theirs := net.Pipe()
		ends = append(ends, theirs)
		return ours, nil
	}}
	d := newDialer(t.Context(), cfg, func(handshake) {})
	defer d.shutdown()
	_, first := d.open("tcp", "a:1", 0)
	_, second := d.open("tcp", "a:1", 0)
	if first != nil || second == nil {
		t.Errorf("%v, %v", first, second)
	}
}

// A server that was down, and is silent once when it is back, costs a part of the lease. Where none answers in time, each may take longer.
func TestOnlySilenceMakesADialMorePatient(t *testing.T) {
	down := true
	cfg := &Config{Servers: []string{"a:1"}, Lease: 500 * time.Millisecond, Dial: func(context.Context, string) (net.Conn, error) {
		if down {
			return nil, syscall.ECONNREFUSED
		}
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		return ours, nil
	}}
	d := newDialer(t.Context(), cfg, func(handshake) {})
	defer d.shutdown()
	for range 2 * mostPatient {
		_, _ = d.open("tcp", "a:1", 0)
	}
	down = false
	for tries := range mostPatient + 1 {
		conn, err := d.open("tcp", "a:1", 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := d.limit * time.Duration(min(1+tries, mostPatient)); d.current.limit != want {
			t.Errorf("after %d times of silence: %v, not %v", tries, d.current.limit, want)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = conn.Read(make([]byte, 1))
	}
}
