package cli

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// commit is set when packages are built: they are built without what Go itself notes of a checkout.
var commit string

// build is what is known of this binary.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

func versionCommand(version string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show version, commit and Go version",
		Example: "  understudy version --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			b := buildOf(version)
			if asJSON {
				return writeJSON(os.Stdout, b)
			}
			fmt.Fprintln(stdout, b)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the same facts as JSON")
	return cmd
}

func buildOf(version string) build {
	b := build{Version: version, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.read(info)
	}
	return b
}

func (b *build) read(info *debug.BuildInfo) {
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
}

func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit
	}
	if b.Modified {
		commit += " with changes"
	}
	return fmt.Sprintf("understudy %s%s, %s", b.Version, commit, b.Go)
}
