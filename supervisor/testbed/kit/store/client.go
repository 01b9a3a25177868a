package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Client writes for one run.
type Client struct {
	Addr    string
	Service string
	Token   int64
	Run     string
	Acks    *os.File // holds the number of the newest write that was acknowledged
	Every   time.Duration
}

const answerWithin = 500 * time.Millisecond

// Write writes 1, 2, 3... each as often as it takes to have it acknowledged, until the context ends or the store says that
// the token is old.
func (c *Client) Write(ctx context.Context) {
	n := int64(1)
	for again := time.NewTicker(c.Every); ctx.Err() == nil; {
		n = c.session(ctx, n)
		if n < 0 {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}

// session uses one connection for as long as it lasts; it returns the next write, or -1 when there is to be none.
func (c *Client) session(ctx context.Context, n int64) int64 {
	dialer := net.Dialer{Timeout: answerWithin}
	conn, err := dialer.DialContext(ctx, "tcp", c.Addr)
	if err != nil {
		return n
	}
	defer conn.Close()
	replies := bufio.NewReader(conn)
	again := time.NewTicker(c.Every)
	defer again.Stop()
	for {
		_ = conn.SetDeadline(time.Now().Add(answerWithin))
		if _, err := fmt.Fprintf(conn, "%s %d %s %d\n", c.Service, c.Token, c.Run, n); err != nil {
			return n
		}
		reply, err := replies.ReadString('\n')
		if err != nil {
			return n
		}
		switch Verdict(strings.TrimSpace(reply)) {
		case Taken, Again:
		default:
			return -1
		}
		if err := c.acknowledged(n); err != nil {
			return -1
		}
		n++
		select {
		case <-again.C:
		case <-ctx.Done():
			return -1
		}
	}
}

// acknowledged writes to the page cache, which survives the process.
func (c *Client) acknowledged(n int64) error {
	_, err := c.Acks.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(n)), 0)
	return err
}

// ReadAcks returns how many writes were acknowledged; zero where there is no such file.
func ReadAcks(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 8 {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(b))
}
