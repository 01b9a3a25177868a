package zktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Config describes an ensemble. The zero value is a single server with ticks of 500 ms.
type Config struct {
	Servers   int           // 1 when zero: a standalone server
	TickTime  time.Duration // 500 ms when zero; session timeouts lie between 2 and 20 ticks
	SyncLimit int           // ticks a follower may lag; 4 when zero

	Addrs      []string                   // the address of each server; 127.0.0.1 when there is none
	Wrap       func(i int, cmd *exec.Cmd) // may change how server i is started; it must still become that process
	ExtraLines []string                   // more of zoo.cfg
	JavaArgs   []string                   // more for the virtual machine
	Dir        string                     // where data and logs go; a temporary directory when empty
}

func (c Config) withDefaults() (Config, error) {
	if c.Servers == 0 {
		c.Servers = max(1, len(c.Addrs))
	}
	if c.Servers < 0 || (len(c.Addrs) > 0 && len(c.Addrs) != c.Servers) {
		return c, fmt.Errorf("zktest: %d servers with %d addresses", c.Servers, len(c.Addrs))
	}
	for len(c.Addrs) < c.Servers {
		c.Addrs = append(c.Addrs, "127.0.0.1")
	}
	if c.TickTime == 0 {
		c.TickTime = 500 * time.Millisecond
	}
	if c.TickTime < time.Millisecond {
		return c, fmt.Errorf("zktest: tick time %v", c.TickTime)
	}
	if c.SyncLimit == 0 {
		c.SyncLimit = 4
	}
	return c, nil
}

// write puts zoo.cfg, and in an ensemble myid, where server s will look for them.
func (c Config) write(s *server, all []*server) error {
	if err := os.MkdirAll(s.dataDir(), 0o755); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tickTime=%d\ninitLimit=20\nsyncLimit=%d\n", c.TickTime.Milliseconds(), c.SyncLimit)
	fmt.Fprintf(&b, "dataDir=%s\nclientPort=%d\nclientPortAddress=%s\n", s.dataDir(), s.client.port, s.host)
	b.WriteString("admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n")
	if len(all) > 1 {
		for _, o := range all {
			fmt.Fprintf(&b, "server.%d=%s:%d:%d\n", o.index+1, o.host, o.quorum.port, o.election.port)
		}
		if err := os.WriteFile(filepath.Join(s.dataDir(), "myid"), fmt.Appendf(nil, "%d\n", s.index+1), 0o644); err != nil {
			return err
		}
	}
	for _, line := range c.ExtraLines {
		b.WriteString(line + "\n")
	}
	return os.WriteFile(s.configFile(), []byte(b.String()), 0o644)
}

func (c Config) command(s *server) *exec.Cmd {
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"}
	args = append(args, c.JavaArgs...)
	args = append(args, "-cp", classPath(), "org.apache.zookeeper.server.quorum.QuorumPeerMain", s.configFile())
	return exec.Command("java", args...)
}
