package cli

import (
	"cmp"
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
		Long: "Copy this binary to FILE. An init container with Understudy's image uses this to bring the binary into " +
			"a pod whose program has an image of\n" +
			"its own (examples/kubernetes.yml). A program that is there is replaced as a whole.",
		Example: "  understudy copy /shared/understudy",
		Args:    exactArgs(1, "one file, which is written"),
		RunE:    func(_ *cobra.Command, args []string) error { return copySelf(args[0]) },
	}
}

func copySelf(file string) (err error) {
	switch info, err := os.Stat(file); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory: name the file, as in %s", file, filepath.Join(file, "understudy"))
	case err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0 && info.Size() > 0):
		return fmt.Errorf("%s is no program, and this binary would take its place: name another file", file)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	dir, name := filepath.Split(file)
	part, err := os.CreateTemp(cmp.Or(dir, "."), name+".part*") // a running binary cannot be written to
	if why, failed := errors.AsType[*fs.PathError](err); failed {
		if _, err := os.Stat(filepath.Dir(file)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: the folder %s does not exist", file, filepath.Dir(file))
		}
		return fmt.Errorf("%s cannot be written there: %w", file, why.Err)
	}
	defer func() {
		part.Close()
		if err != nil {
			os.Remove(part.Name())
		}
	}()
	if _, err := io.Copy(part, from); err != nil {
		return err
	}
	if err := part.Chmod(0o755); err != nil { // whatever the umask
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
