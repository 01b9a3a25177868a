package zktest

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const wordTimeout = 2 * time.Second

// FourLetter sends one of the four-letter words to server i and returns the answer.
func (e *Ensemble) FourLetter(i int, word string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wordTimeout)
	defer cancel()
	return e.servers[i].fourLetter(ctx, word)
}

func (s *server) fourLetter(ctx context.Context, word string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err == nil {
		s.mu.Lock()
		s.asked++
		s.mu.Unlock()
	}
	return string(answer), err
}

// mode is leader, follower or standalone, or nothing while it does not serve.
func (s *server) mode(ctx context.Context) string {
	if !s.up() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, wordTimeout)
	defer cancel()
	answer, err := s.fourLetter(ctx, "srvr")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(answer, "Mode: ")
	mode, _, _ := strings.Cut(rest, "\n")
	return mode
}

// Leader is the number of the server that leads now, or -1. A standalone server leads itself.
func (e *Ensemble) Leader() int {
	for i, s := range e.servers {
		switch s.mode(context.Background()) {
		case "leader", "standalone":
			return i
		}
	}
	return -1
}

// WaitReady returns once every server that was not stopped serves, one of them as the leader.
func (e *Ensemble) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, err := e.missing(ctx)
		if err == nil && missing == "" {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("zookeeper: %s: %w", missing, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// missing says what WaitReady waits for. An error says that it would wait in vain.
func (e *Ensemble) missing(ctx context.Context) (string, error) {
	up, leaders := 0, 0
	for i, s := range e.servers {
		if !s.up() {
			continue
		}
		up++
		switch s.mode(ctx) {
		case "":
			return fmt.Sprintf("server %d does not serve yet: %s", i, s.logTail()), nil
		case "leader", "standalone":
			leaders++
		}
	}
	switch {
	case up == 0:
		return "", fmt.Errorf("zookeeper: no server is up: %s", e.servers[0].logTail())
	case leaders != 1:
		return fmt.Sprintf("%d leaders", leaders), nil
	}
	return "", nil
}

// Requests is how many packets the running servers have received from clients since they were started, pings and
// handshakes included and the ensemble's own questions left out.
func (e *Ensemble) Requests() (int64, error) {
	var sum int64
	for i, s := range e.servers {
		if !s.up() {
			continue
		}
		counts, err := e.Counts(i)
		if err != nil {
			return 0, err
		}
		n, ok := counts["zk_packets_received"]
		if !ok {
			return 0, fmt.Errorf("server %d: mntr does not say how many packets it received", i)
		}
		s.mu.Lock()
		sum += n - s.asked
		s.mu.Unlock()
	}
	return sum, nil
}

// Counts is every number that server i gives for mntr.
func (e *Ensemble) Counts(i int) (map[string]int64, error) {
	answer, err := e.FourLetter(i, "mntr")
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			counts[key] = int64(f)
		}
	}
	return counts, nil
}
