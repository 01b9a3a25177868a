package cli

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

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
	cmd := &cobra.Command{
		Use: "address", Hidden: true, Args: subcommand,
		Short: "For services with `address:`: set an address, keep and announce it, remove it",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(word, short string, run func(ctx context.Context) error) *cobra.Command {
		one := &cobra.Command{
			Use: word + " --ip IP/LENGTH [--device DEVICE]", Short: short, Args: exactArgs(0, "no arguments"),
			Example: "  understudy address " + word + " --ip 192.0.2.10/32 --device eth0",
			RunE: func(cmd *cobra.Command, _ []string) error {
				ctx, stop := untilStopped(cmd.Context())
				defer stop()
				return run(ctx)
			},
		}
		one.Flags().TextVar(&a.Prefix, "ip", netip.Prefix{}, "the address, and the length of its network")
		one.Flags().StringVar(&a.Device, "device", "", "the device (default: whose network holds the address, or that of the default route)")
		_ = one.MarkFlagRequired("ip") // it is there
		cmd.AddCommand(one)
		return one
	}
	add("up", "Set the address, unless another machine answers for it", func(ctx context.Context) error {
		return failed(ctx, a.Up(ctx, otherAnswers), config.ExitUnfit)
	})
	add("down", "Remove the address, if it is there", func(context.Context) error { return a.Down() })
	keep := add("keep", "Announce the address, and set it again when it is removed", func(ctx context.Context) error {
		again := make(chan os.Signal, 1)
		signal.Notify(again, config.AnnounceSignal)
		k := address.Keeper{
			Address: a, Every: announce, Ready: sayReady, Again: again,
			Say:     func(line string) { fmt.Fprintln(os.Stderr, "understudy:", line) },
			Claimed: func() { _ = say(notify.Claimed + "=1") }, // Say says it, too
			Lost:    func(why string) { _ = say(notify.Lost + "=" + why) },
		}
		return failed(ctx, k.Run(ctx), exitFailed)
	})
	keep.Flags().DurationVar(&announce, "announce", time.Minute, "how often the address is announced")
	return cmd
}

// untilStopped ends with SIGTERM. Other signals are ignored: a reload signal goes to all programs of a service.
func untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1))
	return signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
}
