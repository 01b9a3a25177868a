package zkfaults

import (
	"maps"
	"net"
	"slices"
	"sync"
)

// clients is a server's connections. The server's lock guards it.
type clients struct {
	served    sync.WaitGroup // every ServeConn
	listeners map[net.Listener]struct{}
	open      map[*conn]struct{}
	opened    int64

	received, sent int64 // of connections that are no more
}

func (cs *clients) add(c *conn) {
	cs.served.Add(1)
	cs.opened++
	c.number = cs.opened
	cs.open[c] = struct{}{}
}

func (cs *clients) remove(c *conn) {
	delete(cs.open, c)
	cs.received += c.received.Load()
	cs.sent += c.sent.Load()
}

// inOrder is the connections in the order of their opening.
func (cs *clients) inOrder() []*conn {
	return slices.SortedFunc(maps.Keys(cs.open), func(a, b *conn) int { return int(a.number - b.number) })
}

// of is the connection that a session uses now, if any.
func (cs *clients) of(session int64) *conn {
	for c := range cs.open {
		if c.Session == session && c.Shaken && !c.over {
			return c
		}
	}
	return nil
}

func (cs *clients) traffic() (received, sent int64) {
	received, sent = cs.received, cs.sent
	for c := range cs.open {
		received += c.received.Load()
		sent += c.sent.Load()
	}
	return received, sent
}
