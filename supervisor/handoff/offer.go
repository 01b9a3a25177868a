package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/supervisor/child/reexec"
)

// GoesOn is the hidden command that asks a binary which handovers it goes on with. It means nothing else in any version.
const GoesOn = "goes-on"

// How long a new binary may take to answer, and with how much.
const (
	tryLimit = 10 * time.Second
	mostSaid = 64 << 10
)

// Offer is what a binary says of itself.
type Offer struct {
	Handovers []int    `json:"handovers"`
	Node      string   `json:"node"`
	Root      string   `json:"root"`
	Cluster   string   `json:"cluster,omitempty"` // zookeeper.name
	Servers   []string `json:"servers"`
}

// OfferOf is this binary's, with a config of that node.
func OfferOf(node, root, cluster string, servers []string) Offer {
	return Offer{Handovers: Versions(), Node: node, Root: root, Cluster: cluster, Servers: servers}
}

// goesOnWith fails if a session of this process would not be one of the other binary's config.
func (p Offer) goesOnWith(here Offer) error {
	for _, c := range []struct{ key, there, here string }{
		{"node", p.Node, here.Node}, {"zookeeper.root", p.Root, here.Root}, {"zookeeper.name", p.Cluster, here.Cluster},
		{"zookeeper.servers", strings.Join(p.Servers, ", "), strings.Join(here.Servers, ", ")},
	} {
		if c.there != c.here {
			return fmt.Errorf("%s is %s by now, and was %s when this process began: that needs a restart, which hands the services over",
				c.key, c.there, c.here)
		}
	}
	return nil
}

// Try finds out whether the binary at path would go on with what a supervisor with these words and this environment, in dir,
// hands over: it starts, it knows how, and it takes the config. It runs in a session of its own without a terminal, so that nothing
// in it can type into the caller's.
func Try(ctx context.Context, path, dir string, words, environ []string) (p Offer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryLimit, fmt.Errorf("it has not answered within %v", tryLimit))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{GoesOn}, words...)...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true}
	cmd.Env = reexec.WithoutState(environ)
	cmd.WaitDelay = time.Second
	var said, complaint beginning
	cmd.Stdout, cmd.Stderr = &said, &complaint
	err = cmd.Run()
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	if err != nil {
		if why, failed := errors.AsType[*fs.PathError](err); failed {
			return p, fmt.Errorf("%s cannot be started: %w", path, why.Err)
		}
		return p, fmt.Errorf("it cannot go on: %w: %s", err, strings.TrimSpace(string(complaint)))
	}
	if err := json.Unmarshal(said, &p); err != nil {
		return p, fmt.Errorf("%s is another program: it does not answer as understudy does", path)
	}
	for _, version := range Versions() {
		if slices.Contains(p.Handovers, version) {
			return p, nil
		}
	}
	return p, fmt.Errorf("it reads states of versions %v, and this one writes %v", p.Handovers, Versions())
}

// beginning is the beginning of an output.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), mostSaid-len(*b))]...)
	return len(p), nil
}
