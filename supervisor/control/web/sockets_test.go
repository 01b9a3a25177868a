package web

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/control"
)

// inBubbleless is inBubble with real sockets and real time: f is told the address.
func inBubbleless(t *testing.T, change func(*Config), f func(b *bed, at string)) {
	t.Helper()
	b := &bed{T: t, cluster: newCluster("db", "web"), began: time.Now(), log: &logged{}}
	b.board = NewBoard(func() time.Duration { return time.Since(b.began) })
	b.board.Lease(control.Lease{Session: "0x1", End: time.Minute})
	cfg := Config{
		Listen: "127.0.0.1:0", Node: "a", Version: "1.2.3", Board: b.board, Cluster: b.cluster, Logger: hclog.New(&hclog.LoggerOptions{Output: b.log}),
		Token: func() (string, error) { return "sesame", nil },
	}
	if change != nil {
		change(&cfg)
	}
	b.server = New(cfg)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", cfg.Listen)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.server.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	f(b, l.Addr().String())
}
