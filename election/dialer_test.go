package election

import (
	"context"
	"errors"
	"io"
	"net"
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
