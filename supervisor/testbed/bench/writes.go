package main

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// writes measures how many writes the ensemble takes, and so how many nodes: an idle node makes 12 in two leases.
func (b *bench) writes(while time.Duration) {
	const clients, session = 20, 6 * time.Second
	counts, end := make(chan int), time.Now().Add(while)
	for i := range clients {
		conn, path := b.client(), fmt.Sprint("/bench-writes-", i)
		if _, err := conn.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			b.Fatalf("create: %v", err)
		}
		go func() {
			n := 0
			for ; time.Now().Before(end); n++ {
				if _, err := conn.Set(path, []byte("heartbeat"), -1); err != nil {
					n = 0 // what fails is not counted
					break
				}
			}
			counts <- n
		}()
	}
	sum := 0
	for range clients {
		sum += <-counts
	}
	rate := float64(sum) / while.Seconds()
	head(fmt.Sprintf("writes, over %v", while))
	fact(fmt.Sprintf("%d clients that write as fast as they are answered", clients), "%.0f per second", rate)
	fact(fmt.Sprintf("heartbeats of so many nodes (lease %v)", session/2), "%.0f nodes", rate*session.Seconds()/12)
}
