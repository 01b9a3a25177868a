package ocf

import (
	"cmp"
	"context"
	"errors"
	"os"
)

// Stopped asks the agent's monitor action whether it is not running; nil: it is not. Its exit code is the answer: what it writes to stderr
// goes to stdout, since most agents log there, and whoever asks takes a complaint for not knowing.
func (r Resource) Stopped(ctx context.Context, monitor Action) error {
	err := r.run(ctx, monitor, os.Stdout, os.Stdout)
	if says(err, notRunning) {
		return nil
	}
	return cmp.Or(err, errors.New("it is running"))
}
