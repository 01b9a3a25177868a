package cli

import (
	"strings"
	"testing"
)

// Who was not found was started from another place, or is something else: the message has to say where was looked.
func TestReexecSaysWhomItHasNotFound(t *testing.T) {
	for words, want := range map[string]string{
		"--binary /nowhere/understudy":             "understudy: no supervisor of this user runs here that was started as /nowhere/understudy: --binary says where it was started from, --pid names another user's\n",
		"--binary /nowhere/understudy --pid 99999": "understudy: process 99999 is no supervisor that was started as /nowhere/understudy: --binary says where it was started from\n",
	} {
		code, out, errs := says(t, append([]string{"reexec"}, strings.Fields(words)...)...)
		if code != 1 || out != "" || errs != want {
			t.Errorf("%s: code %d, %q, %q", words, code, out, errs)
		}
	}
}
