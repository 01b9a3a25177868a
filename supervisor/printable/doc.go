// Package printable keeps what others wrote - programs, nodes, whoever reaches ZooKeeper - from being more than text where it is
// shown: a terminal obeys control characters, and whoever reads cannot see that something was hidden, moved or coloured.
package printable
