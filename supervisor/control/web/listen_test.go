package web

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/testbed/must"
)

// Why the address cannot be had is told, and that it can once it is free.
func TestAnAddressThatIsTakenIsToldUntilItIsFree(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	address, told := taken.Addr().String(), make(chan string)
	server := New(Config{
		Listen: address, Node: "a", Board: NewBoard(func() time.Duration { return 0 }), Cluster: newCluster(), Logger: hclog.NewNullLogger(),
		Unserved: func(why string) { told <- why },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.Run(ctx) }()
	if why := <-told; why != address+": address already in use" {
		t.Errorf("told: %q", why)
	}
	must.OK(t, taken.Close())
	if why := <-told; why != "" {
		t.Errorf("it is free: %q", why)
	}
	cancel()
	must.OK(t, <-done)
}
