package guardian

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

func TestClosingIsTriedAgain(t *testing.T) {
	tried := 0
	c, err := newClosing(func(context.Context, guard.Closing) error {
		if tried++; tried < 3 {
			return errors.New("no network")
		}
		return nil
	})
	must.OK(t, err)
	defer unix.Close(c.bell)
	c.start(guard.Closing{Epoch: 1, All: true})
	wire.PollOne(c.bell, unix.POLLIN, 20*time.Second)
	if ended := c.ended(); len(ended) != 1 || ended[0].Err != nil || ended[0].Epoch != 1 || !ended[0].All || tried != 3 {
		t.Fatalf("tried %d times: %+v", tried, ended)
	}
}
