// Package web shows the state of this node and its cluster over HTTP: to load balancers, monitoring and people.
//
// What it promises:
//
//   - Its clients can harm no service: nothing here waits for a client, and no other part of the supervisor waits for this one.
//   - /active/<service> is answered without asking ZooKeeper. It is 200 only while this node is active, its programs are ready
//     and not failing, and its lease lasts.
//   - It reads ZooKeeper once for all clients that ask at the same time.
//   - A client without the token can change nothing; if there is a token for reading, too, a client with neither learns only
//     what load balancers do.
//   - /active/<service>, /follower/<service>, /sync/<service>, /healthz and /readyz are answered whatever connections other
//     clients hold. Clients at a few addresses keep those at others from nothing.
//
// What it does not promise: its facts about other nodes are as old as the newest reading. Without a certificate it speaks plain
// HTTP: a token is then safe only on a loopback address or behind a proxy that does TLS.
package web
