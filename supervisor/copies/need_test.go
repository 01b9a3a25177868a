package copies

import "testing"

func TestByDefaultAllKnownCopiesButOneHaveToReport(t *testing.T) {
	for _, c := range []struct {
		given, known int
		promoted     int64
		want         int
	}{
		{0, 5, 9, 4}, {0, 3, 9, 2}, {0, 2, 9, 1}, {0, 1, 9, 1}, {0, 0, 9, 1},
		{0, 5, 0, 2}, {0, 1, 0, 2}, {0, 0, 0, 2}, // and all that are known, see Judge: the others may be about to come, with data
		{1, 3, 9, 1}, {1, 1, 0, 1}, {3, 2, 9, 3}, // what the config gives
	} {
		if got := Need(c.given, c.known, c.promoted); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
