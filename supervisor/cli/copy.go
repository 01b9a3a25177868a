package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func copyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy FILE",
		Short: "Copy this binary to FILE: its image has no cp",
		Long: "Copy this binary to FILE. An init container with Understudy's image uses this to bring the binary into " +
			"a pod whose program has an image of\n" +
			"its own (examples/kubernetes.yml). A FILE that is there is replaced as a whole.",
		Example: "  understudy copy /shared/understudy",
		Args:    exactArgs(1, "one file, which is written"),
		RunE:    func(_ *cobra.Command, args []string) error { return copySelf(args[0]) },
	}
}

func copySelf(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory: name the file, as in %s", file, filepath.Join(file, "understudy"))
	}
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".part*") // a running binary cannot be written to
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // once it is renamed, there is none
	_, err = part.Write(text)
	err = errors.Join(err, part.Chmod(0o755), part.Close()) // whatever the umask
	if err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
