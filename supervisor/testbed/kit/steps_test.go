package kit

import (
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/steps"
)

// In a millisecond that has all of them, what was committed comes after what had ended, and before what started.
func TestWhatHappensInOneMillisecondIsInOrder(t *testing.T) {
	mono := tick.Now()
	clock := time.Now().Add(-time.Duration(mono))
	at := clock.Add(time.Duration(mono)).Truncate(time.Millisecond).Add(time.Second)
	when := func(us int64) int64 { return int64(at.Sub(clock)) + us*1000 }
	runs := []Run{
		{ID: "before", First: when(-5000), Last: when(500)},
		{ID: "after", First: when(500), Last: when(5000)},
		{ID: "short", First: when(400), Last: when(600)},
	}
	txns := []steps.Txn{{Zxid: 1, At: at}, {Zxid: 2, At: at.Add(-time.Hour)}, {Zxid: 3, At: at.Add(2 * time.Millisecond)}}
	var turns []int
	for _, e := range eventsOf(steps.New("/x"), txns, runs) {
		turns = append(turns, e.turn)
	}
	if want := []int{2, 0, 1, 1, 2, 2, 3, 1, 0}; !slices.Equal(turns, want) {
		t.Error(turns)
	}
}
