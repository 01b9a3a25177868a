package containment

import (
	"errors"
	"testing"
)

func TestAModeThatIsUnknownIsRefused(t *testing.T) {
	if _, err := Choose(t.Context(), "nonsense", nil); !errors.Is(err, errNoContainer) {
		t.Error(err)
	}
}
