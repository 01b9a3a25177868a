package service

import (
	"context"
	"errors"
	"sync"

	"understudy/supervisor/wait"
)

// news wakes the goroutine that serves, when its inbox has changed. Its capacity is 1.
type news chan struct{}

func newNews() news { return make(news, 1) }

// stir says that there is news.
func (n news) stir() { wait.Poke(n) }

// errNews ends a wait: there is news.
var errNews = errors.New("there is news")

// unless calls await with a context that ends with errNews when there is news.
func (n news) unless(ctx context.Context, await func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stirred := false
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-n:
			stirred = true
			cancel(errNews)
		case <-ctx.Done():
		}
	})
	err := await(ctx)
	cancel(nil)
	wg.Wait()
	if stirred && !errors.Is(err, errNews) {
		n.stir() // it came too late for this wait, and counts for the next one
	}
	return err
}
