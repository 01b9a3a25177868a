package election

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/must"
)

// nameServer answers look-ups of one name.
type nameServer struct {
	mu     sync.Mutex // guards the fields below
	answer []string   // nil: it is away
	asked  int
}

func (n *nameServer) lookup(ctx context.Context, _ string) ([]string, error) {
	n.mu.Lock()
	answer := n.answer
	n.asked++
	n.mu.Unlock()
	if answer == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answer, nil
}

func (n *nameServer) says(answer ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = answer
}

// listen accepts connections at an address, all of which have one port.
func listen(t *testing.T, ip, port string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, port))
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l
}

func TestADialDoesNotWaitForTheNameServer(t *testing.T) {
	first := listen(t, "127.0.0.1", "0")
	_, port, _ := net.SplitHostPort(first.Addr().String())
	server := &nameServer{}
	n := &Resolver{Dial: dialTCP, Lookup: server.lookup}
	dial := func(limit time.Duration) (string, error) {
		ctx, enough := context.WithTimeout(t.Context(), limit)
		defer enough()
		c, err := n.dial(ctx, "zk1:"+port)
		if err != nil {
			return "", err
		}
		defer c.Close()
		at, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		return at, nil
	}
	if _, err := dial(10 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before any answer: %v", err)
	}
	server.says("127.0.0.9", "127.0.0.1") // nobody listens at the first one
	n = &Resolver{Dial: dialTCP, Lookup: server.lookup}
	if at, err := dial(time.Minute); at != "127.0.0.1" || err != nil {
		t.Errorf("at first: %q, %v", at, err)
	}
	server.says()
	if at, err := dial(10 * time.Second); at != "127.0.0.1" || err != nil {
		t.Errorf("without a name server: %q, %v", at, err)
	}
	// Nor does one to a server that is away, behind which the next server waits.
	_ = first.Close()
	if _, err := dial(10 * time.Second); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("to nobody, without a name server: %v", err)
	}
	// A guardian has the addresses from its supervisor.
	listen(t, "127.0.0.1", port)
	left := n.known([]string{"zk1:" + port, "zk2:1", "192.0.2.1:1"})
	if want := map[string][]string{"zk1": {"127.0.0.9", "127.0.0.1"}}; !reflect.DeepEqual(left, want) {
		t.Errorf("known: %v", left)
	}
	n = &Resolver{Dial: dialTCP, Lookup: server.lookup}
	n.keep(left)
	if at, err := dial(10 * time.Second); at != "127.0.0.1" || err != nil {
		t.Errorf("of what another process knew: %q, %v", at, err)
	}
}

// A server that has moved away from an address that answers nothing costs no more than the look-up.
func TestAnAddressThatIsNewIsDialedInPlaceOfOneThatDoesNotAnswer(t *testing.T) {
	l := listen(t, "127.0.0.1", "0")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	silent := silentAddress(t, port)
	n := &Resolver{Dial: dialTCP, Lookup: (&nameServer{answer: []string{"127.0.0.1"}}).lookup}
	n.keep(map[string][]string{"zk1": {silent}})
	began := time.Now()
	ctx, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	c, err := n.dial(ctx, "zk1:"+port)
	if err != nil || time.Since(began) > 20*time.Second {
		t.Fatalf("%v, after %v", err, time.Since(began))
	}
	_ = c.Close()
}

// silentAddress is one at which no connection is accepted, nor refused: the queue of a listener that is full.
func silentAddress(t *testing.T, port string) string {
	t.Helper()
	const ip = "127.0.0.3"
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	number, _ := strconv.Atoi(port)
	must.OK(t, errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 3}}), unix.Listen(fd, 0)))
	for range 4 {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(ip, port), 100*time.Millisecond)
		if err != nil {
			return ip
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("it accepts everything")
	return ""
}

func TestAChangedAddressIsTakenUp(t *testing.T) {
	first := listen(t, "127.0.0.1", "0")
	_, port, _ := net.SplitHostPort(first.Addr().String())
	listen(t, "127.0.0.2", port)
	server := &nameServer{answer: []string{"127.0.0.1"}}
	n := &Resolver{Dial: dialTCP, Lookup: server.lookup}
	for _, c := range []struct {
		says, at string
	}{{"127.0.0.1", "127.0.0.1"}, {"127.0.0.2", "127.0.0.2"}} {
		server.says(c.says)
		deadline, at := time.Now().Add(10*time.Second), ""
		for at != c.at && time.Now().Before(deadline) { // the look-up runs beside the dial
			conn, err := n.dial(t.Context(), "zk1:"+port)
			must.OK(t, err)
			at, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
			_ = conn.Close()
		}
		if at != c.at {
			t.Errorf("dialed %s, not %s", at, c.at)
		}
	}
}
