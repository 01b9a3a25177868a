// Package web shows the state of this node and its cluster over HTTP: to load balancers, monitoring and people.
//
// What it promises:
//
//   - What it serves can harm no service: nothing here waits for a client, and nothing of the supervisor waits for this.
//   - /active/<service> is answered without asking ZooKeeper. It is 200 only while this node is active, its programs are ready
//     and not failing, and its lease lasts.
//   - However many look, ZooKeeper is read once.
//   - Who has not shown the token changes nothing; where there is a token for those who look, who shows none of the two learns
//     only what load balancers do.
//   - However many connections and requests come from some addresses, others are answered.
//
// What it does not: it stands for no election, and what it says of other nodes is as old as the newest reading. Without a
// certificate it speaks plain HTTP: a token is then safe on a loopback address or behind a proxy that does TLS.
package web
