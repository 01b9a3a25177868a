package web

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
)

// crowd bounds those that are in at a time, in all and of one address. Once it is full, an address that has more in than others
// makes room: however many come from a few addresses, they shut nobody else out.
type crowd struct {
	most, mostOfOne int
	yields          bool // the newest guest gets in: one that can be spared leaves, however few its address has

	mu sync.Mutex // guards the fields below, and the guests
	n  int
	of map[string]*party // by address
}

// party is the guests of one address. Those that can be spared wait in lines, the first to go in front.
type party struct {
	n     int
	lines [2]list.List // of *guest: those that have asked nothing yet, and go first; those between two requests
}

// guest is one that is in.
type guest struct {
	from  string
	leave func() // makes it go; called once it is out

	place *list.Element // nil: it cannot be spared
	line  int
	since time.Time // when it got its place in line
	in    bool
}

// enter lets a guest in, which can be spared until it is busy. Out is the one that has to leave for it; without ok nobody can.
func (c *crowd) enter(g *guest) (out *guest, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]*party{}
	}
	own := c.of[g.from]
	if own == nil {
		own = &party{}
	}
	if full := own.n >= c.mostOfOne; full || c.n >= c.most {
		switch {
		case full && c.yields:
			out = own.first()
		case !full:
			out = c.spare(own.n)
		}
		if out == nil {
			return nil, false
		}
		c.remove(out)
	}
	c.n++
	own.n++
	c.of[g.from], g.in = own, true
	own.enqueue(g, 0)
	return out, true
}

// spare is the guest that has to leave for a new one whose address has so many: it is of the address with the most guests.
func (c *crowd) spare(has int) (out *guest) {
	most := 0
	for _, p := range c.of {
		g := p.first()
		if g == nil || p.n <= has && !c.yields || p.n < most {
			continue
		}
		if p.n > most || g.line < out.line || g.line == out.line && g.since.Before(out.since) {
			out, most = g, p.n
		}
	}
	return out
}

// busy keeps a guest from being spared.
func (c *crowd) busy(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.in {
		c.of[g.from].dequeue(g)
	}
}

// idle puts a guest that was served at the end of the line.
func (c *crowd) idle(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.in {
		c.of[g.from].dequeue(g)
		c.of[g.from].enqueue(g, 1)
	}
}

// exit lets a guest out. It may be called more than once.
func (c *crowd) exit(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(g)
}

func (c *crowd) remove(g *guest) {
	if !g.in {
		return
	}
	p := c.of[g.from]
	p.dequeue(g)
	g.in = false
	c.n--
	if p.n--; p.n == 0 {
		delete(c.of, g.from)
	}
}

func (p *party) first() *guest {
	for i := range p.lines {
		if e := p.lines[i].Front(); e != nil {
			return e.Value.(*guest)
		}
	}
	return nil
}

func (p *party) enqueue(g *guest, line int) {
	g.line, g.since, g.place = line, time.Now(), p.lines[line].PushBack(g)
}

func (p *party) dequeue(g *guest) {
	if g.place != nil {
		p.lines[g.line].Remove(g.place)
		g.place = nil
	}
}

// origin is the address that a connection counts for: an IPv4 address, or the /64 of an IPv6 address, since one host has a whole /64.
func origin(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	net64, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return net64.String()
}
