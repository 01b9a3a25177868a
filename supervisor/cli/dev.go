package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/election/zkmem"
	"understudy/supervisor"
	"understudy/supervisor/config"
)

// devTick is short: sessions end on a tick, so failovers are quick.
const devTick = 500 * time.Millisecond

func devCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run an in-memory ZooKeeper to try things with (not for production)",
		Long: "Runs a ZooKeeper server that lives in the memory of this one process: for development, with nothing else to\n" +
			"install. It is a single server, and its data is lost when it ends.",
		Example: "  understudy dev\n  understudy dev --listen 127.0.0.1:2182",
		Args:    exactArgs(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return dev(cmd.Context(), os.Stderr, listen) },
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:2181", "address to listen on")
	return cmd
}

// dev serves until ctx ends.
func dev(ctx context.Context, out io.Writer, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return usage("--listen: %q is not host:port: write 127.0.0.1:2181, or :2181 for all addresses", address)
	}
	l, err := net.Listen("tcp", address)
	if why := config.NoListening(address, err); why != "" {
		return fmt.Errorf("--listen: %s", why)
	} else if err != nil {
		return fmt.Errorf("cannot listen for ZooKeeper's clients (is another server running? choose an address with --listen): %w", err)
	}
	if _, err := io.WriteString(out, devWords(l.Addr().String())); err != nil {
		return errors.Join(err, l.Close())
	}
	supervisor.Forget(config.Default().ZooKeeper.Root, l.Addr().String()) // else a supervisor waits out the leases of the data before this
	server := zkmem.New(devTick)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	err = server.Serve(l)
	if errors.Is(err, zkmem.ErrClosed) {
		return nil
	}
	return err
}

// called is how this binary was called, for commands that are copied.
func called() string {
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "/go-build") {
		return "go run ."
	}
	return os.Args[0]
}

func devWords(address string) string {
	return fmt.Sprintf(`
  NOT FOR PRODUCTION: an in-memory ZooKeeper on %[1]s.
  It is a single server, and everything in it is gone when it stops. Clients
  other than Understudy have to be started again after it was. It grants session
  timeouts of %[2]v to %[3]v.

  Try next, each in a terminal of its own:
    %[4]s run --zk %[1]s --service hello --node a -- sleep 1000
    %[4]s run --zk %[1]s --service hello --node b -- sleep 1000
    %[4]s status --zk %[1]s
  then end the active one, and ask for the status again. Ctrl-C stops this server.

`, address, 2*devTick, 20*devTick, called())
}
