package unit

import (
	"os"
	"testing"

	"understudy/supervisor/testbed/apart"
)

func TestMain(m *testing.M) { os.Exit(apart.Run(m)) }
