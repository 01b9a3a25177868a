//go:build race

package onethread

import (
	"runtime"
	"testing"
)

func init() {
	testing.Init() // before, so that as many tests as ever run in parallel
	runtime.GOMAXPROCS(1)
}
