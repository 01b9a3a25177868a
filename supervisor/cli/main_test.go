package cli

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"understudy/supervisor"
	"understudy/supervisor/child/guardian"
	"understudy/supervisor/testbed/apart"
)

// TestMain trusts whom the checkout belongs to, as if he had become root by sudo: it may be somebody else's than the tests' user. Guardians of
// a supervisor that a test starts are this binary, too.
func TestMain(m *testing.M) {
	if guardian.Is() {
		os.Exit(supervisor.Guardian())
	}
	if info, err := os.Stat("testdata"); err == nil {
		_ = os.Setenv("SUDO_UID", strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10))
	}
	apart.Run(m)
}
