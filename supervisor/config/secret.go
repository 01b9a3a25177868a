package config

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// largestSecret bounds what is read from a file that should hold one line.
const largestSecret = 64 << 10

// ReadSecret reads a file that holds one secret and trims the newline at its end. The warning, when not empty, says
// that the file's mode lets others at it.
func ReadSecret(name string) (secret, warning string, err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would block for ever
	if err != nil {
		return "", "", fmt.Errorf("read secret: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", "", fmt.Errorf("read secret: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", "", fmt.Errorf("read secret: %s is not a regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(file, largestSecret+1))
	switch {
	case err != nil:
		return "", "", fmt.Errorf("read secret: %w", err)
	case len(text) > largestSecret:
		return "", "", fmt.Errorf("read secret: %s is larger than %d bytes", name, largestSecret)
	}
	secret = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case secret == "":
		return "", "", fmt.Errorf("read secret: %s is empty", name)
	case strings.ContainsAny(secret, "\n\x00"):
		return "", "", fmt.Errorf("read secret: %s must hold one line", name)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		warning = fmt.Sprintf("others have access to the secret in %s (mode %04o): chmod o-rwx %s", name, mode, name)
	}
	return secret, warning, nil
}
