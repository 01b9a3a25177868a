package kit

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func frame(fields ...any) []byte {
	var body []byte
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			body = binary.BigEndian.AppendUint32(body, uint32(f))
		case string:
			body = append(binary.BigEndian.AppendUint32(body, uint32(len(f))), f...)
		case bool:
			body = append(body, map[bool]byte{true: 1}[f])
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestRequestsAreRead(t *testing.T) {
	acl := []any{1, 31, "world", "anyone"}
	create := append([]any{1, false, -1, "/s/lock", "data"}, append(acl, 1)...)
	claim := append([]any{7, 14}, append(create, append(append([]any{1, false, -1, "/s/crumb", "data"}, acl...), 0, -1, true, -1)...)...)
	for _, c := range []struct {
		frame []byte
		want  Request
	}{
		{frame(1, 4, "/a/b", false), Request{Op: OpGet, Path: "/a/b"}},
		{frame(-2, 11), Request{Op: OpPing}},
		{frame(claim...), Request{Op: OpMulti, Parts: []Op{OpCreate, OpCreate}, Path: "/s/lock"}},
		{
			frame(9, 14, 2, false, -1, "/s/crumb", -1, 2, false, -1, "/s/lock", 0, -1, true, -1),
			Request{Op: OpMulti, Parts: []Op{OpDelete, OpDelete}, Path: "/s/crumb"},
		},
		{
			frame(9, 14, 13, false, -1, "/s/lock", -1, 5, false, -1, "/s/crumb", "x", 3, -1, true, -1),
			Request{Op: OpMulti, Parts: []Op{OpCheck, OpSet}, Path: "/s/lock"},
		},
	} {
		if diff := cmp.Diff(c.want, parseRequest(c.frame[4:])); diff != "" {
			t.Error(diff)
		}
	}
}

// parrot answers the handshake and every request with its own frame.
func parrot(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestProxyDecidesTheFateOfEveryRequest(t *testing.T) {
	p := newProxy(t, "127.0.0.1:0", parrot(t))
	p.Judge(func(r Request) Fate {
		return map[string]Fate{"/before": CutBefore, "/after": CutAfter, "/drop": DropReply, "/hold": HoldForever}[r.Path]
	})
	for path, want := range map[string][]int{
		"/pass": {1, 2}, "/before": {}, "/after": {}, "/drop": {2}, "/hold": {2},
	} {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		shake := frame("hello", 1, 2, 3)
		for _, f := range [][]byte{shake, frame(1, 4, path), frame(2, 4, "/pass")} {
			if _, err := conn.Write(f); err != nil {
				break // it may be cut already
			}
		}
		if f, err := readFrame(conn); err != nil || len(f) != len(shake) {
			if path != "/before" { // the cut may overtake the handshake
				t.Fatalf("%s: handshake: %v", path, err)
			}
		}
		got := []int{}
		for range want {
			f, err := readFrame(conn)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			got = append(got, int(binary.BigEndian.Uint32(f[4:])))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if len(want) == 0 {
			if _, err := readFrame(conn); err == nil {
				t.Errorf("%s: the connection is not cut", path)
			}
		}
	}
	if n := len(p.Seen()); n < 7 {
		t.Errorf("%d requests seen", n)
	}
}
