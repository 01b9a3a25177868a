package cli

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/oklog/run"
	"github.com/spf13/cobra"

	"understudy/supervisor/address"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/config"
)

// otherAnswers is how long `address up` asks again while another machine answers: one that had the address may be about to remove it.
const otherAnswers = 2 * time.Second

// addressCommand has what a service with `address:` runs (config.Service.Members).
func addressCommand() *cobra.Command {
	var a address.Address
	var announce time.Duration
	var all []*address.Keeper
	cmd := &cobra.Command{
		Use: "address", Hidden: true, Args: subcommand,
		Short: "For services with `address:`: set an address, keep and announce it, remove it",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(word, short string, do func(ctx context.Context) error) *cobra.Command {
		one := &cobra.Command{
			Use: word + " [--device DEVICE] --ip IP/LENGTH", Short: short, Args: exactArgs(0, "no arguments"),
			Example: "  understudy address " + word + " --device eth0 --ip 192.0.2.10/32",
			RunE: func(cmd *cobra.Command, _ []string) error {
				if len(all) == 0 {
					return usage("--ip is missing, such as --ip 192.0.2.10/32")
				}
				ctx, stop := untilStopped(cmd.Context())
				defer stop()
				return do(ctx)
			},
		}
		one.Flags().Func("ip", "the address, and the length of its network; what belongs to it is given before",
			func(word string) (err error) {
				a.Prefix, err = netip.ParsePrefix(word)
				all = append(all, &address.Keeper{Address: a, Every: announce})
				return err
			})
		one.Flags().StringVar(&a.Device, "device", "",
			"the device (default: whose network holds the address, or that of the default route)")
		cmd.AddCommand(one)
		return one
	}
	add("up", "Set the address, unless another machine answers for it", func(ctx context.Context) error {
		if a.Here() {
			fmt.Fprintf(os.Stderr, "understudy: this host has %v already, and loses it when the service stops here: "+
				"if it is the host's own, give the service another\n", a.Prefix)
		}
		return failed(ctx, a.Up(ctx, otherAnswers), config.ExitUnfit)
	})
	add("down", "Remove the address, if it is there", func(context.Context) error { return a.Down() })
	keep := add("keep", "Announce addresses, and set them again when they are removed", func(ctx context.Context) error {
		keeping, stop := context.WithCancel(ctx)
		defer stop()
		var keepers run.Group
		for _, k := range all {
			again := make(chan os.Signal, 1)
			signal.Notify(again, config.AnnounceSignal)
			k.Again = again
			k.Say = func(line string) { fmt.Fprintln(os.Stderr, "understudy:", line) }
			k.Claimed = func() { _ = say(notify.Claimed + "=1") } // Say says it, too
			k.Lost = func(why string) { _ = say(notify.Lost + "=" + why) }
			keepers.Add(func() error { return k.Run(keeping) }, func(error) { stop() })
		}
		all[len(all)-1].Ready = sayReady // the others are announced at the same time
		return failed(ctx, keepers.Run(), exitFailed)
	})
	keep.Flags().DurationVar(&announce, "announce", time.Minute, "how often the address is announced")
	return cmd
}

// untilStopped ends with SIGTERM. Other signals are ignored: a reload signal goes to all programs of a service.
func untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1))
	return signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
}
