package notify

import "time"

// What reaches a socket costs little, however much is sent: so many are read in a while.
const (
	mostInAWhile = 64
	while        = 100 * time.Millisecond
)

// flood keeps that. It belongs to who runs the socket.
type flood struct {
	began time.Time // of the while that goes on
	read  int
}

// pause is how long nothing more is to be read, after one was.
func (f *flood) pause(now time.Time) time.Duration {
	if since := now.Sub(f.began); since < 0 || since >= while {
		f.began, f.read = now, 0
	}
	if f.read++; f.read < mostInAWhile {
		return 0
	}
	return while - now.Sub(f.began)
}
