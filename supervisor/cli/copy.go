package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func copyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy FILE",
		Short: "Copy this binary to FILE: its image has no cp",
		Long: "Copy this binary to FILE. An init container with Understudy's image brings the binary so into a pod whose program has an image of\n" +
			"its own (examples/kubernetes.yml). A FILE that is there is replaced as a whole.",
		Example: "  understudy copy /shared/understudy",
		Args:    exactArgs(1, "one file, which is written"),
		RunE:    func(_ *cobra.Command, args []string) error { return copySelf(args[0]) },
	}
}

func copySelf(file string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	part := file + ".part" // a running binary cannot be written to
	to, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the folder %s does not exist", file, filepath.Dir(file))
	} else if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(part, 0o755) // whatever the umask
	}
	if err == nil {
		err = os.Rename(part, file)
	}
	return err
}
