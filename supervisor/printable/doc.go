// Package printable makes foreign text safe to show, whether a program, a node or a stranger in ZooKeeper wrote it: a terminal obeys
// control characters, and a reader cannot see that they hid, moved or coloured something.
package printable
