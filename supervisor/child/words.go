package child

// words are lines for the log, in their order. A goroutine of their own writes them, so that a log with a slow reader delays no work
// with a deadline.
type words chan line

type line struct {
	log  func(text string, pairs ...any)
	text string
	more []any
}

func newWords() words { return make(words, 64) }

// say queues a line. A log that is too many lines behind misses some.
func (w words) say(log func(text string, pairs ...any), text string, pairs ...any) {
	select {
	case w <- line{log, text, pairs}:
	default:
	}
}

// write writes until no more lines can come.
func (w words) write(stopped <-chan struct{}) {
	for {
		select {
		case l := <-w:
			l.log(l.text, l.more...)
			continue
		case <-stopped:
		}
		for {
			select {
			case l := <-w:
				l.log(l.text, l.more...)
			default:
				return
			}
		}
	}
}
