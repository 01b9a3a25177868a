// Package printable makes mere text of what programs, nodes and strangers at ZooKeeper wrote, before it is shown: a terminal obeys
// control characters, and a reader cannot see that something was hidden, moved or coloured.
package printable
