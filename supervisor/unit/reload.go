package unit

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ReloadPatience is how long the programs have to live after their reload signal: it kills one that has no handler for it.
const ReloadPatience = time.Second

// FailedReload says what went wrong if a program has ended right after its reload signal.
func FailedReload(why error, who string, sig syscall.Signal) error {
	ended, ok := errors.AsType[*Ended](why)
	switch {
	case !ok:
		return nil
	case ended.Status.Signal == sig:
		return fmt.Errorf("%s ended by %s within %v; it has no handler for its reload signal: set reload_signal, or use restart",
			who, unix.SignalName(sig), ReloadPatience)
	}
	return fmt.Errorf("%s ended within %v of its reload signal, %s: %s", who, ReloadPatience, unix.SignalName(sig), Describe(ended.Status))
}
