package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"understudy/supervisor/testbed/kit"
)

// probed is what a supervisor says of itself.
type probed struct {
	Goroutines, Heap int64
	Stacks           string // how many goroutines have which
}

func (c *census) probe(pid int) (p probed) {
	c.Helper()
	kit.Until(c.soak, patience, "the probe answers", func() bool {
		conn, err := net.Dial("unix", fmt.Sprintf("@%s-%d", c.mark, pid))
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		text, err := io.ReadAll(conn) // to its end: a connection that is still open there would be counted
		return err == nil && json.Unmarshal(text, &p) == nil
	})
	return p
}

// sample looks at the memory of those that live on: after a collection, so that what is counted is what is held.
func (c *census) sample() {
	c.Helper()
	for _, name := range enduring {
		v := c.nodes[name]
		note := func(what string, n int64) { c.samples[name+": "+what] = append(c.samples[name+": "+what], n) }
		note("heap", c.probe(v.Pid).Heap)
		var heap int64
		for _, pid := range v.Guardians() {
			heap += c.probe(pid).Heap
		}
		note("heap of the guardians", heap)
	}
}
