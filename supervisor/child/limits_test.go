package child

import (
	"syscall"
	"testing"
)

func TestLimitsAreKnownToTheKernel(t *testing.T) {
	for name, resource := range limits {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(resource, &limit); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(limits) != 16 {
		t.Errorf("Linux has 16 limits, not %d", len(limits))
	}
}
