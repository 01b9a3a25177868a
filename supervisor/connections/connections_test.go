package connections

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestPlacesAreBoundedInAllAndOfEachAddress(t *testing.T) {
	l := Limiter{All: 5, Each: 2}
	var releases []func()
	for i, c := range []struct {
		address string
		ok      bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", true}, {"b", false}, {"c", true}, {"c", false}, {"d", false}} {
		release, ok := l.Take(c.address)
		if ok != c.ok {
			t.Errorf("%d: %s gets a place: %v", i, c.address, ok)
		}
		if ok {
			releases = append(releases, release)
		}
	}
	releases[0]()
	releases[0]() // counts once
	if _, ok := l.Take("a"); !ok {
		t.Error("no place came back")
	}
	if _, ok := l.Take("a"); ok {
		t.Error("two places came back for one")
	}
	for _, release := range releases[1:] {
		release()
	}
	if l.taken != 1 || len(l.of) != 1 {
		t.Errorf("%d places are taken, by %d addresses", l.taken, len(l.of))
	}
}

// What is idle is closed for what is new, also by one address alone; what was taken out is left alone.
func TestTheOldestConnectionIsClosedForANewOne(t *testing.T) {
	const most = 3
	var q Queue
	var ends []net.Conn
	var removes []func()
	for range most + 2 {
		ours, theirs := net.Pipe()
		remove, closed := q.Add(theirs, most)
		if (closed != nil) != (len(ends) >= most) {
			t.Errorf("%d: closed %v", len(ends), closed)
		}
		ends, removes = append(ends, ours), append(removes, remove)
		if len(ends) == 2 {
			removes[1]()
			removes[1]()
		}
		if len(ends) == 3 {
			ours, theirs := net.Pipe()
			ends, removes = append(ends, ours), append(removes, nil)
			if removes[3], closed = q.Add(theirs, most); closed != nil {
				t.Error("one that was taken out holds its place")
			}
		}
	}
	for i, ours := range ends {
		if i == 0 || i == 2 { // the oldest of those that were not taken out
			_ = ours.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%d is open: %v", i, err)
			}
		}
		removes[i]()
		_ = ours.Close()
	}
	if len(q.conns) > 0 {
		t.Errorf("%d are left", len(q.conns))
	}
}

func TestAHostCountsAsOneAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:81": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:82": "2001:db8:1:2::/64",
		"[2001:db8:1:2::7]:83": "2001:db8:1:2::/64", "[fe80::1%eth0]:84": "fe80::/64", "pipe": "pipe",
	} {
		if got := Address(remote); got != want {
			t.Errorf("%s counts as %s, not %s", remote, got, want)
		}
	}
}
