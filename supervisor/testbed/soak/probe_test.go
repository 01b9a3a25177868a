package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/supervisor/testbed/kit"
)

// probed is what a supervisor says of itself.
type probed struct {
	Goroutines, Heap int64
	Stacks           string
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

var frame = regexp.MustCompile(`(?m)^#\s+0x[0-9a-f]+\s+(\S+?)\+0x[0-9a-f]+\s+\S*/(\S+)$`)

// groups counts goroutines of one stack.
func (p probed) groups() map[string]int64 {
	groups := map[string]int64{}
	for block := range strings.SplitSeq(p.Stacks, "\n\n") {
		number, rest, ok := strings.Cut(block, " @")
		if i := strings.LastIndexByte(number, '\n'); i >= 0 {
			number = number[i+1:]
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			continue
		}
		var stack []string
		for _, m := range frame.FindAllStringSubmatch(rest, -1) {
			stack = append(stack, m[1]+" "+m[2])
		}
		groups[strings.Join(stack, " < ")] += n
	}
	return groups
}

// grown lists the stacks that more goroutines of a node have than before.
func grown(before, after figures, name string) []string {
	var all []string
	for stack, n := range after.stacks[name] {
		if was := before.stacks[name][stack]; n > was {
			all = append(all, fmt.Sprintf("%d -> %d %s", was, n, stack))
		}
	}
	return slices.Sorted(slices.Values(all))
}

// written is the memory that a process has for itself alone since it has written to it, in bytes.
func written(pid int) (n int64) {
	rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(rollup)) {
		if words := strings.Fields(line); words[0] == "Private_Dirty:" {
			n, _ = strconv.ParseInt(words[1], 10, 64)
		}
	}
	return n << 10
}

// sample looks at the memory of those that live on: after a collection, so that what is counted is what is held.
func (c *census) sample() {
	c.Helper()
	for _, name := range enduring {
		v := c.nodes[name]
		note := func(what string, n int64) { c.samples[name+": "+what] = append(c.samples[name+": "+what], n) }
		note("heap", c.probe(v.Pid).Heap)
		note("memory", written(v.Pid))
		var heap, memory int64
		for _, pid := range v.Guardians() {
			heap += c.probe(pid).Heap
			memory += written(pid)
		}
		note("heap of the guardians", heap)
		note("memory of the guardians", memory)
	}
}
