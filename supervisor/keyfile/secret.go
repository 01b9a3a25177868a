package keyfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// largest bounds what is read from a file that should hold a few lines.
const largest = 64 << 10

// ErrLines says that a file holds more lines than one, where there may be one only.
var ErrLines = errors.New("must hold one line")

// Line reads a file that holds one secret and trims the newline at its end. What the file holds is in no error.
func Line(name string) (secret string, err error) {
	all, err := Lines(name)
	switch {
	case err != nil:
		return "", err
	case len(all) > 1:
		return "", fmt.Errorf("%s %w", name, ErrLines)
	}
	return all[0], nil
}

// Lines is Line for a file that holds several secrets, each on a line of its own: while one is changed for another, both
// are good.
func Lines(name string) (secrets []string, err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would block for ever
	if err != nil {
		return nil, unwrapped(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, unwrapped(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(file, largest+1))
	switch {
	case err != nil:
		return nil, unwrapped(err)
	case len(text) > largest:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, largest)
	}
	for line := range strings.Lines(string(text)) {
		secret := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		switch {
		case strings.Contains(secret, "\x00"):
			return nil, fmt.Errorf("%s is not text", name)
		case secret != "":
			secrets = append(secrets, secret)
		}
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s is empty", name)
	}
	return secrets, nil
}

// unwrapped says the file and what is wrong with it, without the name of the call.
func unwrapped(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", at.Path, at.Err)
	}
	return err
}
