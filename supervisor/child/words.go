package child

// words are lines for the log, in their order. They are written by a goroutine of their own: a log whose reader is slow holds up
// nothing that has a deadline.
type words chan line

type line struct {
	log  func(text string, pairs ...any)
	text string
	more []any
}

func newWords() words { return make(words, 64) }

// say leaves a line to be written. A log that is so many lines behind misses some.
func (w words) say(log func(text string, pairs ...any), text string, pairs ...any) {
	select {
	case w <- line{log, text, pairs}:
	default:
	}
}

// write writes until there is nothing more to come.
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
