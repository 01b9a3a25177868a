package main

import (
	"fmt"
	"net"
	"path/filepath"

	"understudy/supervisor/testbed/kit/tick"
)

// life is where signs of life go.
type life interface{ Beat() }

// afar is an account that is kept, and stamped, by whoever gets these datagrams: on a machine whose clock is not the tests'.
type afar struct {
	conn net.Conn
	name []byte
}

// Beat says: still running.
func (a afar) Beat() { _, _ = a.conn.Write(a.name) } // there may be no network

// keep begins the account.
func keep(w words, name string, began int64) (life, error) {
	if w["to"] == "" {
		path := filepath.Join(w["dir"], name)
		account, err := tick.Open(path, began)
		if err != nil {
			return nil, err
		}
		return account, tick.Hold(path)
	}
	conn, err := net.Dial("udp", w["to"])
	if err != nil {
		return nil, fmt.Errorf("reach who keeps the account: %w", err)
	}
	a := afar{conn, []byte(name)}
	a.Beat()
	return a, nil
}
